/* test_folder.c: folders whose files stand in for memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  a folder without a name, one that is not there, a file and a path
 *             that is too long are refused, and so is a disk without the room;
 *             the sentence names who asked and the folder. */
#include <string.h>

#include "core/folder.h"
#include "tests/folder.h"
#include "tests/harness.h"
#include "tether/arena.h"

static tt_ctx *ctx;

static void refused(const char *path, int64_t bytes, const char *why)
{
    char message[sizeof ctx->message];
    const tt_status s = folder_check(ctx, path, bytes, "--some-dir");
    snprintf(message, sizeof message, "%s", tt_message(ctx));
    expect_status(s, TT_EIO, why);
    expect(strstr(message, "--some-dir ") && strstr(message, why), "%s: %s",
           why, message);
}

int main(void)
{
    char longest[5000];
    tt_arena nameless = {.folder = ""};
    ctx = test_begin("core/folder");
    if (!folder_make()) return test_end();
    expect_ok(folder_check(ctx, folder, 1, "--some-dir"), "a folder");
    refused(at("nobody"), 0, "No such file");
    FILE *f = fopen(at("file"), "wb");
    if (expect(f != NULL, "a file")) fclose(f);
    refused(at("file"), 0, "Not a directory");
    unlink(at("file"));
    refused(folder, INT64_MAX, "of its disk are needed");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    expect_status(folder_check(ctx, longest, 0, "--some-dir"), TT_EIO,
                  "a path that is too long");
    /* not a file next to the root */
    void *p = tt_alloc(ctx, &nameless, 1, 1, "values");
    expect(!p, "no block of a folder without a name");
    expect_status(ctx->status, TT_EIO, "no name");
    tt_arena_free(&nameless);
    folder_remove_empty();
    return test_end();
}
