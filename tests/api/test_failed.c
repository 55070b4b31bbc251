/* test_failed.c: every public function after a failure.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  none: a failed context stays as it is, objects that were never
 *   made are NULL, and no one crashes. The names come from the headers, so a
 *   new public function fails this test until it stands in a table here.
 * Each call has a process and an empty folder of its own. */
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/folder.h"
#include "tether/mathfn.h"
#include "tether/tether.h"
#include "tether/validate.h"

static const char sentence[] = "the model folder is missing";
static const int64_t dim[] = {2, 3};
static tt_real x[64];
static uint8_t bytes[64];
static char text[256];

/* ---- the tables ---------------------------------------------------------- */

/* GIVES  returns the status of the failed context
 * MAKES  also sets its object, named second, to NULL
 * NONE   returns NULL
 * SOME   returns something that can be read
 * WANTS  returns a status other than TT_OK: no context, no object
 * RUNS   has nothing to return */
#define CALLS(GIVES, MAKES, NONE, SOME, WANTS, RUNS)                           \
    /* arena.h */                                                              \
    NONE(tt_alloc, c, &(tt_arena){0}, 3, 8, "numbers")                         \
    NONE(tt_alloc0, c, &(tt_arena){0}, 3, 8, "numbers")                        \
    NONE(tt_strdup, c, &(tt_arena){0}, "text")                                 \
    NONE(tt_scratch, c, 3)                                                     \
    RUNS(tt_arena_free, &(tt_arena){0})                                        \
    /* context.h */                                                            \
    RUNS(tt_warn, c, "nothing is wrong with %s", "this")                       \
    /* dit.h */                                                                \
    MAKES(tt_dit_load, tt_dit, c, &made, NULL, NULL, 0)                        \
    MAKES(tt_prompt_make, tt_prompt, c, &made, NULL, NULL, 4)                  \
    RUNS(tt_dit_close, NULL)                                                   \
    SOME(tt_dit_get_config, NULL)                                              \
    RUNS(tt_prompt_free, NULL)                                                 \
    /* io.h */                                                                 \
    MAKES(tt_file_open, tt_file, c, &made, "model.safetensors")                \
    MAKES(tt_weights_open, tt_weights, c, &made, "model", TT_MODEL_DIT, NULL)  \
    MAKES(tt_st_create, tt_st_writer, c, &made, "file.safetensors")            \
    RUNS(tt_file_close, NULL)                                                  \
    RUNS(tt_file_count, NULL)                                                  \
    NONE(tt_file_entry, NULL, 0)                                               \
    NONE(tt_file_find, NULL, "name")                                           \
    RUNS(tt_weights_close, NULL)                                               \
    NONE(tt_weights_find, NULL, "name")                                        \
    RUNS(tt_weights_count, NULL)                                               \
    SOME(tt_weights_name, NULL, 0)                                             \
    WANTS(tt_st_meta, NULL, "key", "value")                                    \
    WANTS(tt_st_add, NULL, "name", TT_F32, 2, dim, x)                          \
    RUNS(tt_st_finish, NULL)                                                   \
    RUNS(tt_st_abort, NULL)                                                    \
    /* ops.h */                                                                \
    GIVES(tt_ops_use, c, "golden")                                             \
    /* plugin.h */                                                             \
    GIVES(tt_plugin_open, c, &(tt_plugin){0}, "./plugin.so")                   \
    RUNS(tt_plugin_close, &(tt_plugin){0})                                     \
    /* policy.h */                                                             \
    RUNS(tt_cache_report, NULL, NULL)                                          \
    /* rollout.h */                                                            \
    MAKES(tt_rollout_open, tt_rollout, c, &made, NULL, NULL, NULL)             \
    GIVES(tt_rollout_next, c, NULL, &(const tt_real *){NULL}, &(int64_t){0})   \
    GIVES(tt_rollout_save, c, NULL, "state")                                   \
    GIVES(tt_rollout_restore, c, NULL, "state")                                \
    RUNS(tt_rollout_close, NULL)                                               \
    RUNS(tt_rollout_on_progress, NULL, NULL, NULL)                             \
    /* status.h */                                                             \
    GIVES(tt_fail, c, TT_EINVAL, "a later failure")                            \
    /* text.h */                                                               \
    MAKES(tt_tokenizer_open, tt_tokenizer, c, &made, "spiece.model")           \
    GIVES(tt_tokenizer_encode_prompt, c, &(tt_token_row){0}, NULL, "text", 4,  \
          true)                                                                \
    MAKES(tt_umt5_open, tt_umt5, c, &made, "model")                            \
    GIVES(tt_prompt_embed, c, NULL, NULL, NULL, "text", 4, 8, NULL)            \
    RUNS(tt_tokenizer_close, NULL)                                             \
    RUNS(tt_umt5_close, NULL)                                                  \
    /* vae.h */                                                                \
    MAKES(tt_vae_load, tt_vae, c, &made, NULL)                                 \
    MAKES(tt_vae_decoder_open, tt_vae_decoder, c, &made, NULL, 8, 8)           \
    GIVES(tt_vae_decode_next, c, NULL, NULL, NULL, NULL)                       \
    MAKES(tt_vae_encoder_open, tt_vae_encoder, c, &made, NULL, 64, 64)         \
    GIVES(tt_vae_encode_next, c, NULL, NULL, &(bool){false}, NULL)             \
    RUNS(tt_vae_close, NULL)                                                   \
    RUNS(tt_vae_decoder_close, NULL)                                           \
    RUNS(tt_vae_encoder_close, NULL)                                           \
    /* validate.h */                                                           \
    MAKES(tt_report_new, tt_report, c, &made, "title", tt_arith_find("f32"))   \
    GIVES(tt_report_text, c, NULL, "file", true)                               \
    GIVES(tt_report_json, c, NULL, "file")                                     \
    GIVES(tt_opcheck, c, NULL, c->ops, &(tt_opcheck_options){0})               \
    MAKES(tt_shadow_open, tt_shadow, c, &made, NULL, c->ops,                   \
          tt_arith_find("f32"))                                                \
    RUNS(tt_shadow_close, c, NULL)                                             \
    RUNS(tt_report_free, NULL)                                                 \
    RUNS(tt_report_passed, NULL)                                               \
    GIVES(tt_schedule_init, c, &(tt_schedule){0}, 5, NULL, 0, true, 0)         \
    GIVES(tt_rope_make, c, &(tt_arena){0}, &(tt_rope_table){0}, 8, 4)          \
    SOME(tt_file_format, NULL)                                                 \
    NONE(tt_file_meta, NULL, "class")                                          \
    SOME(tt_weights_origin, NULL)                                              \
    NONE(tt_rollout_cache, NULL)                                               \
    /* run.h */                                                                \
    RUNS(tt_settings_free, &(tt_settings){0})                                  \
    GIVES(tt_settings_set, c, &(tt_settings){0}, "latents", "9")               \
    NONE(tt_settings_get, NULL, "latents", text, sizeof text)                  \
    MAKES(tt_run_open, tt_run, c, &made, &(tt_settings){0}, NULL)              \
    RUNS(tt_run_close, NULL)                                                   \
    NONE(tt_run_settings, NULL)                                                \
    NONE(tt_run_dit, NULL)                                                     \
    GIVES(tt_run_next, c, NULL, &(const tt_host *){NULL}, &(int64_t){0})       \
    /* video.h */                                                              \
    MAKES(tt_video_open, tt_video, c, &made, "video.y4m",                      \
          &(tt_video_format){.fps = 16})                                       \
    WANTS(tt_video_frame, NULL, bytes)                                         \
    WANTS(tt_video_finish, NULL)                                               \
    RUNS(tt_video_abort, NULL)

/* Not called above, and why. */
static const char *const apart[] = {
    /* begin, end or read the failure itself */
    "tt_ctx_init", "tt_ctx_free", "tt_clear", "tt_message", "tt_assert_failed",
    /* neither context nor object: arithmetic on what they are given */
    "tt_arena_here", "tt_arena_reset", "tt_gather", "tt_exp", "tt_log",
    "tt_tanh", "tt_pow", "tt_sincos", "tt_sincos_turn", "tt_expf", "tt_tanhf",
    "tt_tensor_count", "tt_tensor_bytes", "tt_tensor_make", "tt_widen_at",
    "tt_widen_at_f32", "tt_schedule_index", "tt_noise_frame", "tt_format_round",
    "tt_rgb8_from_real",
    /* the same: tables, names and defaults of this build */
    "tt_dtype_size", "tt_dtype_block", "tt_dtype_name",
    "tt_ops_find", "tt_ops_default",
    "tt_ops_at", "tt_ops_class", "tt_class_name", "tt_class_find",
    "tt_class_names", "tt_policy_find", "tt_policy_at", "tt_policy_defaults",
    "tt_rollout_defaults", "tt_arith_find", "tt_arith_names",
    "tt_outcome_name", "tt_fpenv_get", "tt_fpenv_set", "tt_fpenv_begin",
    "tt_version", "tt_settings_defaults",
    "tt_git_revision", "tt_real_name", "tt_compiler",
    /* a policy's helpers and the size of a cache: called by tt_cache_* with a
     * cache that was made */
    "tt_layer_move", "tt_layer_roll", "tt_layer_put",
};
enum { NAPART = sizeof apart / sizeof apart[0] };

/* ---- one function a call ------------------------------------------------- */

#define AS_GIVES(name, ...)                                                    \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        return name(__VA_ARGS__) == c->status;                                 \
    }
#define AS_MAKES(name, type, ...)                                              \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        type *made = (type *)(void *)x;                                        \
        return name(__VA_ARGS__) == c->status && !made;                        \
    }
#define AS_NONE(name, ...)                                                     \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        (void)c;                                                               \
        return name(__VA_ARGS__) == NULL;                                      \
    }
#define AS_SOME(name, ...)                                                     \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        (void)c;                                                               \
        return name(__VA_ARGS__) != NULL;                                      \
    }
#define AS_WANTS(name, ...)                                                    \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        (void)c;                                                               \
        return name(__VA_ARGS__) != TT_OK;                                     \
    }
#define AS_RUNS(name, ...)                                                     \
    static bool call_##name(tt_ctx *c)                                         \
    {                                                                          \
        (void)c;                                                               \
        (void)name(__VA_ARGS__);                                               \
        return true;                                                           \
    }
CALLS(AS_GIVES, AS_MAKES, AS_NONE, AS_SOME, AS_WANTS, AS_RUNS)

static const struct {
    const char *name;
    bool (*call)(tt_ctx *c);
} calls[] = {
#define ROW(name, ...) {#name, call_##name},
    CALLS(ROW, ROW, ROW, ROW, ROW, ROW)
};
enum { NCALLS = sizeof calls / sizeof calls[0] };

/* ---- calling them -------------------------------------------------------- */

static void fail(tt_ctx *c)
{
    tt_ctx_init(c);
    tt_fail(c, TT_EIO, "%s", sentence);
}

/* In a process of its own: 0 as it should be, 1 not, 2 the failure changed. */
static int alone(const char *where, bool (*call)(tt_ctx *c))
{
    const struct rlimit none = {0, 0};
    tt_ctx c;
    setrlimit(RLIMIT_CORE, &none);
    if (chdir(where)) return 3;
    fail(&c);
    const bool right = call(&c);
    if (c.status != TT_EIO || strcmp(c.message, sentence) != 0 || !c.ops)
        return 2;
    tt_ctx_free(&c);
    return right ? 0 : 1;
}

static const char *verdict(int status)
{
    static char buf[64];
    if (WIFSIGNALED(status)) {
        snprintf(buf, sizeof buf, "dies by signal %d", WTERMSIG(status));
        return buf;
    }
    return WEXITSTATUS(status) == 1 ? "does not return what it should"
         : WEXITSTATUS(status) == 2 ? "changes the failure" : "cannot be tried";
}

static void try_alone(const char *name, bool (*call)(tt_ctx *c))
{
    int status = -1;
    fflush(NULL);
    mkdir(at(name), 0777);
    const pid_t child = fork();
    if (child == 0) _exit(alone(at(name), call));
    if (!expect(child > 0 && waitpid(child, &status, 0) == child,
                "%s: a process", name)) return;
    expect(status == 0, "%s after a failure: %s", name, verdict(status));
    expect(rmdir(at(name)) == 0, "%s after a failure: leaves a file", name);
}

/* ---- the names of the headers -------------------------------------------- */

/* Blank out what is no declaration: comments, directives, bodies in braces. */
static void strip(char *s)
{
    int depth = 0;
    bool directive = false, comment = false;
    for (; *s; s++) {
        if (!comment && s[0] == '/' && s[1] == '*') comment = true;
        if (comment) {
            const bool end = s[0] == '*' && s[1] == '/';
            *s = ' ';
            if (end) *++s = ' ';
            comment = !end;
            continue;
        }
        if (*s == '#') directive = true;
        if (directive) {
            if (*s == '\n' && s[-1] != '\\') directive = false;
            if (*s != '\\') *s = directive ? ' ' : '\n';
            continue;
        }
        if (*s == '{') depth++;
        const bool inside = depth > 0;
        if (*s == '}') depth--;
        if (inside || *s == '\n') *s = ' ';
    }
}

/* The function that the declaration `s` declares, "" for anything else. */
static const char *declared(char *s)
{
    char *open = strchr(s, '(');
    if (strstr(s, "typedef") || !open) return "";
    while (open && !strncmp(open, "((", 2)) open = strchr(open + 2, '(');
    while (open > s && open[-1] == ' ') open--;
    if (!open) return "";
    *open = 0;
    char *name = open;
    while (name > s && (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9')
                        || (name[-1] >= 'a' && name[-1] <= 'z'))) name--;
    return strncmp(name, "tt_", 3) ? "" : name;
}

static bool listed(const char *name)
{
    for (size_t i = 0; i < NCALLS; i++)
        if (!strcmp(calls[i].name, name)) return true;
    for (size_t i = 0; i < NAPART; i++)
        if (!strcmp(apart[i], name)) return true;
    return false;
}

/* Check the declarations of one header; `seen` counts those of each call. */
static void check_header(const char *path, int seen[NCALLS], int *count)
{
    static char s[1 << 17];
    FILE *f = fopen(path, "r");
    if (!expect(f != NULL, "%s can be read", path)) return;
    const size_t n = fread(s, 1, sizeof s - 1, f);
    fclose(f);
    s[n] = 0;
    expect(n < sizeof s - 1, "%s is short enough", path);
    strip(s);
    for (char *part = strtok(s, ";"); part; part = strtok(NULL, ";")) {
        const char *name = declared(part);
        if (!*name) continue;
        ++*count;
        expect(listed(name), "%s of %s: add a call to tests/api/test_failed.c",
               name, path);
        for (size_t i = 0; i < NCALLS; i++)
            seen[i] += !strcmp(calls[i].name, name);
    }
}

static void check_names(void)
{
    static int seen[NCALLS];
    int count = 0;
    DIR *d = opendir("include/tether");
    if (!expect(d != NULL, "include/tether can be read")) return;
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        if (!strstr(e->d_name, ".h")) continue;
        snprintf(path, sizeof path, "include/tether/%s", e->d_name);
        check_header(path, seen, &count);
    }
    closedir(d);
    for (size_t i = 0; i < NCALLS; i++)
        expect(seen[i] == 1, "%s is declared once", calls[i].name);
    expect(count > 100, "%d functions were found", count);
}

int main(void)
{
    test_begin("api/failed");
    if (folder_make()) {
        check_names();
        for (size_t i = 0; i < NCALLS; i++)
            try_alone(calls[i].name, calls[i].call);
        folder_remove();
    }
    return test_end();
}
