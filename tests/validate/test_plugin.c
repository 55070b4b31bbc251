/* test_plugin.c: a plug-in of another operator table is refused, by name and
 * number of what differs, before any of its operators is called.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "validate/validate.h"

typedef tt_ops *(*table_fn)(void);

static tt_ctx *ctx;
static char path[1024];

/* Refused with both sentences in its message; "" says nothing. */
static void refused(tt_status want, const char *first, const char *second)
{
    tt_plugin p;
    const tt_status got = tt_plugin_open(ctx, &p, path);
    expect(got == want && strstr(tt_message(ctx), first)
           && strstr(tt_message(ctx), second), "'%s' and '%s' expected: %s",
           first, second, tt_message(ctx));
    expect(!p.handle && !p.ops.silu, "nothing of it is left");
    tt_clear(ctx);
}

static int opened, closed;

static tt_status open_it(tt_ctx *c, const tt_ops *ops)
{
    opened++;
    return *(const int *)ops->self ? TT_OK
                                   : tt_fail(c, TT_EUNSUPPORTED, "no device");
}

static void close_it(const tt_ops *ops)
{
    closed += ops->self != NULL;
}

/* Every number of the handshake, wrong by one and back. */
static void test_abi(tt_ops *table)
{
    const tt_abi right = TT_ABI;
    const char *const what[] = {"version", "tt_real", "tt_ops", "tt_ctx",
                                "tt_tensor", "arguments"};
    int32_t *const part[] = {&table->abi.version, &table->abi.real,
                             &table->abi.table, &table->abi.context,
                             &table->abi.tensor, &table->abi.args};
    expect(!memcmp(&table->abi, &right, sizeof right), "the same numbers");
    for (size_t i = 1; i < sizeof part / sizeof part[0]; i++) {
        char numbers[64];
        const int32_t here = *part[i];
        *part[i] = here + 1;
        snprintf(numbers, sizeof numbers, "is %ld, here %ld", (long)here + 1,
                 (long)here);
        refused(TT_EUNSUPPORTED, what[i], numbers);
        *part[i] = here;
    }
    table->abi.version = 1;              /* then it gives nothing to 2 */
    refused(TT_EUNSUPPORTED, "gives nothing", "rebuild");
    table->abi.version = TT_OPS_VERSION;
}

static void gelu_pair(tt_ctx *c, const tt_linear_args *a)
{
    (void)c, (void)a;
}

static int64_t lay(tt_ctx *c, int64_t N, int64_t D)
{
    (void)c;
    return N * D;
}

static void test_lifetime(tt_ops *table)
{
    tt_plugin p;
    int present = 1;
    table->open = open_it;
    table->close = close_it;
    table->self = &present;
    expect_ok(tt_plugin_open(ctx, &p, path), "a plug-in that can run");
    expect(p.ops.self == &present && p.filled == 16, "it is taken whole");
    tt_plugin_close(&p);
    expect(opened == 1 && closed == 1, "opened and closed");
    present = 0;
    refused(TT_EUNSUPPORTED, "no device", "");
    expect(opened == 2 && closed == 1, "what did not open is not closed");
    table->open = NULL;
    table->close = NULL;
    table->cls = (tt_class)TT_CLASS_COUNT;
    refused(TT_EFORMAT, "class", "does not have");
    table->cls = TT_CLASS_F32;
}

/* Entries left out are ours; none at all is no plug-in. */
static void test_filled(tt_ops *table)
{
    const tt_ops whole = *table;
    tt_plugin p;
#define LEAVE_OUT(op, OP) table->op = NULL;
    TT_OPS(LEAVE_OUT)
    refused(TT_EFORMAT, "empty", "at least one");
    table->silu = whole.silu;
    expect_ok(tt_plugin_open(ctx, &p, path), "one operator");
    expect(p.filled == 1 && p.ops.silu == whole.silu
           && p.ops.linear == tt_ops_default()->linear, "the rest is ours");
    tt_plugin_close(&p);
    *table = whole;
}

/* Pairs of operators are all there or none, and what our attention lays out is
 * not given to theirs. */
static void test_adjacent(tt_ops *table)
{
    const tt_ops whole = *table;
    const tt_fused part = {.linear_gelu = gelu_pair};
    tt_plugin p;
    table->fused = &part;
    refused(TT_EFORMAT, "some of the pairs", "fused");
    table->fused = NULL;
    table->packed = tt_ops_default()->packed;
    expect_ok(tt_plugin_open(ctx, &p, path), "a copy of our table");
    expect(!p.ops.packed, "lays out nothing that stays");
    tt_plugin_close(&p);
    table->packed = lay;
    expect_ok(tt_plugin_open(ctx, &p, path), "a layout of its own");
    expect(p.ops.packed == lay, "is taken as it is");
    tt_plugin_close(&p);
    *table = whole;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    table_fn get = NULL;
    (void)argc;
    ctx = test_begin("validate/plugin");
    snprintf(path, sizeof path, "%.*s/mutants.so",
             slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    /* held open, so that what is changed in it stays */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "mutant_table") : NULL;
    memcpy(&get, &symbol, sizeof get);
    if (expect(get != NULL, "%s: %s", path, library ? "" : dlerror())) {
        test_abi(get());
        test_lifetime(get());
        test_filled(get());
        test_adjacent(get());
        tt_plugin p;
        expect_ok(tt_plugin_open(ctx, &p, path), "as it was");
        tt_plugin_close(&p);
    }
    if (library) dlclose(library);
    return test_end();
}
