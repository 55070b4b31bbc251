/* test_text.c: strings and numbers in the tables that analyze writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "analyze/text.h"

static void test_text(tt_ctx *ctx)
{
    text t;
    text_begin(&t, ctx);
    text_json(&t, "a\"\\\n\xff\xf0\x9f\x90\x88");
    expect(!strcmp(t.at, "\"a\\\"\\\\\\u000a\xef\xbf\xbd\xf0\x9f\x90\x88\""),
           "JSON: %s", t.at);
    text_end(&t);
    text_begin(&t, ctx);
    text_csv(&t, "plain");
    text_csv(&t, "a,\"b\"");
    text_number(&t, 0.1, "");
    text_number(&t, NAN, "-");
    text_number(&t, -3, "");
    expect(!strcmp(t.at, "plain\"a,\"\"b\"\"\"0.1--3"), "CSV: %s", t.at);
    text_end(&t);
}

int main(void)
{
    test_text(test_begin("analyze/text"));
    return test_end();
}
