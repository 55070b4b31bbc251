/* test_nearest.c: which known name a word probably means.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/nearest.h"

#include <string.h>

#include "tests/harness.h"

static const char *const names[] = {"f32", "tf32", "f16", "bf16", "generate",
                                    "cuda"};
enum { N = sizeof names / sizeof *names };

int main(void)
{
    static const struct { const char *word, *name, *value; } row[] = {
        {"f32", "f32", "f32"}, {"F32", "f32", "f32"}, {"fp16", "f16", "f16"},
        {"float-16", NULL, "f16"}, {"BFloat16", NULL, "bf16"},
        {"gpu", NULL, "cuda"}, {"genrate", "generate", "generate"},
        {"gen", "generate", "generate"}, {"int4", NULL, NULL},
        {"", NULL, NULL}, {"tf23", "tf32", "tf32"},
        {"a word that is longer than any name that there is", NULL, NULL}};
    char hint[NEAREST_HINT];
    test_begin("core/nearest");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *name = nearest_name(row[i].word, names, N);
        const char *value = nearest_value(row[i].word, names, N);
        expect(name == row[i].name
               || (name && row[i].name && !strcmp(name, row[i].name)),
               "nearest_name of %s: %s", row[i].word, name ? name : "none");
        expect(value == row[i].value
               || (value && row[i].value && !strcmp(value, row[i].value)),
               "nearest_value of %s: %s", row[i].word, value ? value : "none");
    }
    expect(!strcmp(nearest_hint(hint, "half", names, N),
                   " (did you mean f16?)"), "a hint: %s", hint);
    expect(!*nearest_hint(hint, "f16", names, N), "none for the name itself");
    expect(!strcmp(nearest_class(hint, "fp32"), " (did you mean f32?)"),
           "a class: %s", hint);
    return test_end();
}
