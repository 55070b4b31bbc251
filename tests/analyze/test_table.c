/* test_table.c: strings and numbers in the tables that analyze writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analyze/table.h"
#include "tests/folder.h"

int main(void)
{
    table t;
    tt_ctx *ctx = test_begin("analyze/table");
    if (!folder_make()) return test_end();
    table_begin(&t, ctx, "name,x");
    table_row(&t), table_str(&t, "plain"), table_num(&t, 0.1);
    table_row(&t), table_str(&t, "a,\"b\""), table_num(&t, NAN);
    table_row(&t), table_str(&t, "\\\n<"), table_num(&t, -3);
    expect_ok(table_save(&t, at("t"), true, true), "save");
    table_end(&t);
    expect(!strcmp(text_of(at("t.csv")), "name,x\nplain,0.1\n\"a,\"\"b\"\"\",\n"
                                         "\"\\\n<\",-3\n"),
           "CSV: %s", text_of(at("t.csv")));
    expect(!strcmp(text_of(at("t.json")), "{\"columns\": [\"name\", \"x\"],\n"
                   "\"rows\": [\n[\"plain\", 0.1],\n[\"a,\\\"b\\\"\", null],\n"
                   "[\"\\\\\\n\\u003c\", -3]\n]}\n"),
           "JSON: %s", text_of(at("t.json")));
    folder_remove();
    return test_end();
}
