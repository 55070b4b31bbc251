/* test_dumps.c: diff, validate --dump, export and check, as a user meets them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties     a dump injected into the run that made it changes no bit; an
 *                honest run passes and one in a shorter arithmetic does not
 *                pass for a longer; every named point of the model is known,
 *                and in the table of src/validate/names.md with its type. */
#include <ctype.h>

#include "validate/validate.h"
#include "tests/cli/program.h"
#include "tests/page.h"

static char model[1100], inputs[1100], vae[1100], small[1100];

#define RUN "generate -m %s --embeds %s -W 48 -H 32 -t 1 --latents 12 " \
            "--budget 9 --sink 2 --recent 4 "
#define WRITE "--no-decode -q --overwrite --latents-out "

static int validate(const char *args)
{
    return run("%s -- " RUN "> out", args, model, inputs);
}

/* Equal latents; the headers tell what was injected from what was not. */
static bool same_latents(const char *a, const char *b)
{
    tt_file *f[2] = {0};
    const tt_entry *e[2] = {0};
    const char *names[2] = {a, b};
    for (int i = 0; i < 2; i++)
        if (!tt_file_open(ctx, &f[i], at(names[i])))
            e[i] = tt_file_find(f[i], "latents");
    const bool equal = e[0] && e[1]
        && tt_tensor_count(&e[0]->t) == tt_tensor_count(&e[1]->t)
        && !memcmp(e[0]->t.data, e[1]->t.data,
                   (size_t)tt_tensor_count(&e[0]->t) * sizeof(tt_real));
    for (int i = 0; i < 2; i++) tt_file_close(f[i]);
    return equal;
}

/* What was begun with injected tensors does not go on without. */
static void test_inject_is_another_run(void)
{
    expect(run(RUN WRITE "li --inject ours", model, inputs) == 0
           && rename(at("li"), at("li.unfinished")) == 0, "%s", said);
    refuses(2, "injected tensors", RUN "--no-decode --latents-out li --resume",
            model, inputs);
    unlink(at("li.unfinished"));
}

static void make_dumps(void)
{
    expect(run(RUN WRITE "l1 --dump ours", model, inputs) == 0, "%s", said);
    expect(run(RUN WRITE "l2 --dump again --inject ours", model, inputs) == 0,
           "%s", said);
    expect(same(at("ours"), at("again")) && same_latents("l1", "l2"),
           "injecting what was computed changes nothing");
    expect(run(RUN WRITE "l2 --dump bf16 --backend arith-bf16", model, inputs)
           == 0, "%s", said);
    expect(!same_latents("l1", "l2"), "the emulation is no float32");
    expect(run(RUN WRITE "l2 --dump caches --dump-filter 'chunk.*/cache.*'",
               model, inputs) == 0, "%s", said);
}

static void test_points(void)
{
    tt_file *f;
    int keeps = 0;
    if (!expect_ok(tt_file_open(ctx, &f, at("ours")), "the dump")) return;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const char *name = tt_file_entry(f, i)->name;
        expect(*tt_tap_operators(name), "%s: operators are known", name);
        keeps += strstr(name, "grab.keep") != NULL;
    }
    expect(keeps > 0 && tt_file_find(f, "chunk.3/step.4/block.1/admit.0/"
                                     "tame.mean_k"),
           "GRAB's picks and TAME's statistics are named");
    tt_file_close(f);
    if (!expect_ok(tt_file_open(ctx, &f, at("caches")), "the dump")) return;
    expect(tt_file_find(f, "chunk.0/cache.1/k")
           && tt_file_count(f) == 4 * 2 * 4,
           "what is in the cache, when asked for");
    tt_file_close(f);
}

/* ---- the table of names -------------------------------------------------- */

/* "`chunk.N/step.N/x`" for chunk.2/step.0/x. */
static void general(char *out, const char *name)
{
    *out++ = '`';
    for (; *name; name++) {
        *out++ = *name;
        if (*name != '.' || !isdigit((unsigned char)name[1])) continue;
        while (isdigit((unsigned char)name[1])) name++;
        *out++ = 'N';
    }
    memcpy(out, "`", 2);
}

/* The page's words for extents that are one number all through a dump. */
static const char *const words[] = {"T", "H", "D", "F", "C", "L", "dim", "nt",
                                    "patch", "rows", "text_len", "rgb"};
enum { WORDS = sizeof words / sizeof *words };

/* Numbers of a cell "F32 [1, T, dim]" are those of the tensor, and its words
 * have the extents they had in the tensors before. */
static void shape_is(const char *cell, const tt_entry *e, int64_t seen[WORDS])
{
    const char *s = strchr(cell, '[');
    for (int i = 0; s && i < e->t.rank; i++) {
        s += 1 + strspn(s + 1, " ");
        const size_t n = strcspn(s, ",]");
        const int64_t is = e->t.dim[i];
        int k = 0;
        while (k < WORDS && (strlen(words[k]) != n
                             || strncmp(words[k], s, n))) k++;
        /* the width of the text encoder is its own */
        if (k < WORDS && strncmp(e->name, "text/", 5)) {
            if (!seen[k]) seen[k] = is;
            expect(seen[k] == is, "%s: the page's %s is %lld here, %lld above",
                   e->name, words[k], (long long)is, (long long)seen[k]);
        }
        if (isdigit((unsigned char)*s))
            expect(atoll(s) == is, "%s: the page says %.*s, it is %lld",
                   e->name, (int)n, s, (long long)is);
        s += n;
    }
}

/* Every tensor of a dump has a row, and the row its type and shape. */
static void names_of(page *names, const char *dump)
{
    int64_t seen[WORDS] = {0};
    tt_file *f;
    if (!expect_ok(tt_file_open(ctx, &f, at(dump)), dump)) return;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        char label[200];
        int rank = 1;
        general(label, e->name);
        const char *cell = page_row(names, label);
        if (!cell) continue;
        while (*cell == ' ') cell++;
        for (const char *s = cell; *s && *s != ']'; s++) rank += *s == ',';
        /* the page's F32 is the compute type */
        const bool real = !strncmp(cell, "F32", 3);
        const char *type = tt_dtype_name(e->t.dtype);
        if (real && e->t.dtype == TT_F64 && sizeof(tt_real) == 8) type = "F32";
        expect(rank == e->t.rank && !strncmp(cell, type, strlen(type)),
               "%s: the page says %.12s, it is %s of rank %d", e->name, cell,
               type, e->t.rank);
        if (rank == e->t.rank) shape_is(cell, e, seen);
    }
    tt_file_close(f);
}

/* The runs of this test show every name of the page, and no other. */
static void test_names(void)
{
    page names;
    if (!page_open(&names, "src/validate/names.md")) return;
    char *table = strstr(names.text, "\n| name");
    if (!expect(table != NULL, "the page has the table of names")) return;
    const char *demo = "generate -q -t 1 -m %s -W 64 -H 64 --latents 3 "
                       "--steps 1000 -p 'a red circle' --cache full "
                       "-o %s.y4m --dump %s.st";
    char all[1100];
    reference(all, "demo");
    expect(run(demo, all, "demo", "demo") == 0, "%s", said);
    expect(run("generate -q -t 1 -m %s -W 64 -H 64 --latents 3 --steps 1000 "
               "-p 'a red circle' --initial-video demo.y4m -o film.y4m "
               "--dump film.st --dump-filter 'vae_encoder*'", all) == 0, "%s",
           said);
    names_of(&names, "ours");
    names_of(&names, "caches");
    names_of(&names, "demo.st");
    names_of(&names, "film.st");
    for (char *s = table; (s = strstr(s, "\n| `")); s++)
        expect(names.seen[strchr(s + 2, '|') - names.text],
               "no run shows %.*s", (int)strcspn(s + 3, "|"), s + 3);
    page_close(&names, NULL);
}

/* Take n bytes at `s` out of a text. */
static void cut(char *s, size_t n)
{
    memmove(s, s + n, strlen(s + n) + 1);
}

/* The failing example of the page is what the program says here, but for the
 * element in brackets and line breaks. */
static void test_example(void)
{
    static const char begin[] = "FAIL: first wrong tensor: context at [";
    page text;
    if (sizeof(tt_real) == 8) return; /* it is of the float program */
    if (!page_open(&text, "src/validate/README.md")) return;
    char line[1000], *example = strstr(text.text, begin);
    char *end = example ? strstr(example, "\n```") : NULL;
    if (expect(end != NULL, "the page has the example")) {
        *end = 0;
        for (char *c = example; *c; c++) if (*c == '\n') *c = ' ';
        cut(strchr(example, '['), strcspn(strchr(example, '['), "]"));
        expect(run("validate --dump bf16 --against ours > out") == 1,
               "validate: %s", said);
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text_of(at("out")),
                 "\n"), text_of(at("out")));
        char *open = strchr(line, '[');
        if (open) cut(open, strcspn(open, "]"));
        expect(!strcmp(line, example), "the page says `%s`, the program `%s`",
               example, line);
    }
    free(text.text);
    free(text.seen);
}

/* Opens a file where the data of a tensor begin; data end where it does. */
static FILE *open_data(const char *path, const char *tensor, int64_t *values)
{
    tt_file *f;
    const char *end = NULL;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return NULL;
    const tt_entry *e = tt_file_find(f, tensor);
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_tensor *t = &tt_file_entry(f, i)->t;
        const char *behind = (const char *)t->data + tt_tensor_bytes(t);
        if (!end || behind > end) end = behind;
    }
    const long place = e ? (long)(end - (const char *)e->t.data) : 0;
    *values = e ? tt_tensor_count(&e->t) : 0;
    tt_file_close(f);
    FILE *file = fopen(path, "r+b");
    expect(file && place && !fseek(file, -place, SEEK_END), "%s of %s", tensor,
           path);
    return file;
}

/* Turns the last bit of the first value of a float32 tensor. */
static void nudge(const char *path, const char *tensor)
{
    int64_t n;
    FILE *file = open_data(path, tensor, &n);
    if (!file) return;
    const int byte = fgetc(file);
    expect(!fseek(file, -1, SEEK_CUR) && fputc(byte ^ 1, file) != EOF,
           "%s is changed", path);
    fclose(file);
}

/* Turns the highest bit of a float32's fraction. */
static void nudge_far(const char *path, const char *tensor)
{
    int64_t n;
    FILE *file = open_data(path, tensor, &n);
    if (!file) return;
    fseek(file, sizeof(tt_real) == 4 ? 2 : 6, SEEK_CUR);
    const int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ (sizeof(tt_real) == 4 ? 0x40 : 8), file);
    fclose(file);
}

/* Its values, float32, in bf16: cut, or rounded to nearest. */
static void narrow(const char *path, const char *tensor, bool cut)
{
    int64_t n;
    float x;
    FILE *file = open_data(path, tensor, &n);
    for (int64_t i = 0; file && i < n; i++) {
        if (!fread(&x, sizeof x, 1, file)) break;
        x = tt_format_round(cut ? TT_FMT_BF16_CUT : TT_FMT_BF16, x);
        fseek(file, -(long)sizeof x, SEEK_CUR);
        fwrite(&x, sizeof x, 1, file);
        fseek(file, 0, SEEK_CUR);
    }
    if (file) fclose(file);
}

/* A copy of a dump in which one bit differs. */
static void copy_off(const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cd %s && cp %.50s %.50s", folder, from,
             to);
    expect(system(for_shell(command)) == 0, "copied");
    nudge(at(to), "context");
}

static void test_diff(void)
{
    expect(run("diff ours again > out") == 0 && !strncmp(text_of(at("out")),
           "PASS", 4), "equal dumps: %s", text_of(at("out")));
    expect(run("diff ours bf16 > out") == 1 &&
           !strncmp(text_of(at("out")), "FAIL: first wrong tensor: context",
                    33), "the first difference comes first: %s",
           text_of(at("out")));
    expect(run("diff ours caches > out") == 1, "other names");
    if (sizeof(tt_real) == 4) {
        copy_off("ours", "nudged");
        expect(run("diff ours again --arith f32 > out") == 0
               && strstr(text_of(at("out")), "bits: f32"), "both name f32: %s",
               text_of(at("out")));
        expect(run("diff ours nudged --arith f32 > out") == 1
               && strstr(text_of(at("out")), "bits: f32"), "one bit: %s",
               text_of(at("out")));
        expect(run("diff bf16 ours --arith f32 > out") == 1
               && strstr(text_of(at("out")), "limits: f32"), "one names it: %s",
               text_of(at("out")));
    }
    refuses(3, "absent", "diff ours absent");
    refuses(3, "stderr", "diff stderr ours");
    refuses(2, "two files", "diff ours");
    refuses(2, "bf16-stored", "diff ours ours --arith half");
}

static void test_validate(void)
{
    expect(validate("validate --dump ours --json r.json --html r.html "
                    "--junit r.xml") == 0, "ours passes: %s%s", said,
           text_of(at("out")));
    expect(strstr(text_of(at("r.json")), "tether-validate/2") && exists(
           at("r.html")) && exists(at("r.xml")), "reports");
    expect(strstr(text_of(at("out")), "free running") != NULL, "a curve");
    expect(validate("validate --dump bf16 --arith bf16") == 0,
           "honest bf16 passes: %s", text_of(at("out")));
    /* what is wrong is looked for with operators on values of the host */
    expect(test_guarded() || validate("validate --dump bf16") == 1,
           "but not as float32");
    expect(validate("validate --dump caches --partial") == 1 &&
           strstr(text_of(at("out")), "nothing was compared"),
           "nothing compared: %s", text_of(at("out")));
    expect(run("validate --dump bf16 --against ours --emulated bf16 "
               "--arith bf16 > out") == 0, "files: %s", text_of(at("out")));
    expect(run("validate --dump bf16 --against ours > out") == 1, "files, f32");
    refuses(2, "--against", "validate --dump ours");
    refuses(2, "--against", "validate --dump ours --emulated bf16");
    refuses(2, "chosen here", "validate --dump ours -- generate --dump x");
    refuses(2, "--f64", "validate --dump ours --f64 absent -- generate");
    refuses(2, "expected", "validate");
    refuses(3, "absent", "validate --dump absent --against ours");
}

/* A dump of nothing but what a chunk came to. */
static void test_latents_alone(void)
{
    char name[64];
    for (int step = 3; step <= 4; step++) {    /* the last, and the clean pass */
        snprintf(name, sizeof name, "'chunk.*/step.%d/x0'", step);
        expect(run(RUN WRITE "l2 --dump last --dump-filter %s", model, inputs,
                   name) == 0, "%s", said);
        for (int i = 0; i < 2; i++) {
            if (i) nudge_far(at("last"), step == 3 ? "chunk.1/step.3/x0"
                                                   : "chunk.1/step.4/x0");
            expect(run("validate --dump last --filter %s -- " RUN "> out", name,
                       model, inputs) == i && !*said
                   && !strncmp(text_of(at("out")), i ? "FAIL: first wrong "
                               "tensor: chunk.1/step." : "PASS: 4 tensors",
                               i ? 39 : 15), "%s: %s%s", name, said,
                   text_of(at("out")));
            expect((step == 4) == (strstr(text_of(at("out")), "goes on from: "
                   "compared with a free run") != NULL), "%s: %s", name,
                   text_of(at("out")));
        }
    }
}

/* Tensors of the VAE are compared whatever the command writes, and what it
 * names is not written. */
static void test_pictures(void)
{
    static const struct {
        const char *more, *word;
        int status;
    } c[] = {{"", "PASS: ", 0}, {"-o mine.y4m", "PASS: ", 0},
             {"--no-decode --latents-out mine.y4m", "--no-decode: tensors of "
              "the VAE are not compared", 1}};
#define PICTURES "generate -m %s --vae %s --embeds %s -W 16 -H 16 -t 1 "       \
                 "--latents 3 --cache full "
    expect(run(PICTURES "-q -o video.y4m --dump pictures.st --dump-filter "
               "'vae/*'", model, vae, inputs) == 0, "%s", said);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        expect(run("validate --dump pictures.st --partial -- " PICTURES
                   "%s > out", model, vae, inputs, c[i].more) == c[i].status
               && strstr(text_of(at("out")), c[i].word), "%s: %s%s", c[i].more,
               said, text_of(at("out")));
        expect(!exists(at("mine.y4m")), "%s: not ours to write", c[i].more);
    }
}

/* What explains it looks at calls of this module alone: tables of the
 * transformer are gone. */
static void test_wrong_picture(void)
{
#define VIDEO "generate -m %s -W 48 -H 32 --latents 3 -p x "
    expect(run(VIDEO "-q -o wrong.y4m --dump wrong.st", small) == 0, "%s",
           said);
    nudge_far(at("wrong.st"), "vae/frame.2/up.3/t.1");
    expect(run("validate --dump wrong.st -- " VIDEO "> out", small) == 1
           && !strncmp(text_of(at("out")), "FAIL: first wrong tensor: "
                       "vae/frame.2/up.3/t.1 ", 46), "%s%s", said,
           text_of(at("out")));
}

/* A dump that names its class is checked by its bits, in that class. */
static void test_classes(void)
{
    expect(run(RUN WRITE "l3 --class vdp --dump vdp", model, inputs) == 0,
           "%s", said);
    expect(validate("validate --dump vdp --arith vdp --json r.json --html "
                    "r.html") == 0 && strstr(text_of(at("out")), "bits: vdp"),
           "its bits: %s", text_of(at("out")));
    const char *said_of = strstr(text_of(at("out")), " of ");
    expect(said_of && strstr(said_of, "tensors equal in every bit")
           && strstr(text_of(at("r.json")), "\"compared\": \"by bits\"")
           && strstr(text_of(at("r.html")), " tensors equal in every bit."),
           "every report says it: %s", text_of(at("out")));
    expect(validate("validate --dump vdp --arith amx") == 0
           && strstr(text_of(at("out")), "limits: amx"),
           "it says nothing of amx: %s", text_of(at("out")));
    expect(test_guarded()
           || (validate("validate --dump vdp --arith amx --bits") == 1
           && strstr(text_of(at("out")), "tensor: context at [0, ")
           && strstr(text_of(at("out")), ": linear: it computes class vdp")
           && strstr(text_of(at("out")), "has the bits of class vdp")),
           "another class is named: %s", text_of(at("out")));
    expect(test_guarded() || (validate("validate --dump bf16 --bits") == 1
           && strstr(text_of(at("out")), "bits: f32")), "f32 by its bits: %s",
           text_of(at("out")));
    expect(run("validate --dump vdp --against ours --arith vdp > out") == 1
           && strstr(text_of(at("out")), "bits: vdp"), "files: %s",
           text_of(at("out")));
    refuses(2, "is no class", "validate --dump bf16 --against ours --arith "
            "bf16 --bits");
    refuses(2, "is no class", "validate --backend golden --arith bf16 --bits");
    expect(run("validate --backend golden --arith vdp --op linear > out") == 0
           && strstr(text_of(at("out")), "bits: vdp"), "a backend: %s",
           text_of(at("out")));
}

/* Layers that are too large to be tried whole: rows of them. */
static void test_large_layers(void)
{
    const char *large = "generate -m %s -W 192 -H 192 -t 1 --latents 3 "
                        "--steps 1000 -p x ";
    char all[1100], way[1400];
    if (test_guarded()) return;
    reference(all, "demo");
    snprintf(way, sizeof way, large, all);
    expect(run("%s --no-decode -q --latents-out big --class vdp --dump big.st",
               way) == 0, "%s", said);
    expect(run("validate --dump big.st --arith amx --bits --filter "
               "'*block.0/ffn' -- %s > out", way) == 1
           && strstr(text_of(at("out")), ": linear: it computes class vdp"),
           "the class by some rows: %s", text_of(at("out")));
}

/* case.json of a model says what its tensors do not. */
static void case_facts(void)
{
    static const char *const kind[] = {"block", "forward", "rollout"};
    for (int i = 0; i < 3; i++) {
        char path[100];
        tt_arena mem = {0};
        const tt_json *j = NULL;
        snprintf(path, sizeof path, "cases/model_%s/case.json", kind[i]);
        expect_ok(tt_json_file(ctx, &mem, &j, at(path), 1 << 20), path);
        const tt_json *net = tt_json_get(j, "network");
        const tt_json *grid = tt_json_get(j, "grid");
        const tt_json *t = tt_json_get(j, "timesteps");
        expect(tt_json_int(net, "heads", 0) == 2
               && tt_json_int(net, "dim", 0) == 40
               && tt_json_num(net, "eps", 0) == 1e-6, "%s: network", path);
        expect(tt_json_count(grid) == 2
               && tt_json_real(tt_json_at(grid, 0)) == 2
               && tt_json_real(tt_json_at(grid, 1)) == 3, "%s: grid", path);
        if (i < 2) expect(tt_json_num(j, "t", -1) == 1000, "%s: t", path);
        else expect(tt_json_count(t) == 5
                    && tt_json_real(tt_json_at(t, 1)) == 937.5,
                    "%s: timesteps", path);
        tt_arena_free(&mem);
    }
}

static void test_cases(void)
{
    expect(run("validate export cases --each 1 -- " RUN, model, inputs) == 0,
           "export: %s", said);
    expect(exists(at("cases/op_rope_0/inputs.safetensors")) &&
           exists(at("cases/model_rollout/expected_bf16.safetensors")) &&
           !exists(at("cases/model_vae")), "operators and pieces of the run");
    case_facts();
    char command[400];
    snprintf(command, sizeof command, "cd %s && mkdir got && for c in cases/*; "
             "do cp $c/expected_bf16.safetensors got/${c#cases/}.safetensors; "
             "done", folder);
    expect(system(for_shell(command)) == 0, "copied");
    expect(run("validate check cases --got got --arith bf16 > out") == 0,
           "honest bf16: %s", text_of(at("out")));
    expect(run("validate check cases --got got > out") == 1, "as float32");
    remove(at("got/op_silu_0.safetensors"));
    expect(run("validate check cases --got got --arith bf16 > out") == 1 &&
           strstr(text_of(at("out")), "op_silu_0 is missing"), "no answer");
    expect(run("validate check cases --got got --arith bf16 --partial > out")
           == 0, "no answer wanted");
    put_file(at("got/op_silu_0.unsupported"), "no vectors of 3\n", 0644);
    expect(run("validate check cases --got got --arith bf16 > out") == 0
           && strstr(text_of(at("out")), "; 1 are unsupported")
           && strstr(text_of(at("out")), "no vectors of 3"), "unsupported: %s",
           text_of(at("out")));
    expect(run("validate check cases --got got --arith bf16 --case op_silu_0 "
               "> out") == 1 && strstr(text_of(at("out")),
               "nothing was compared; 1 are unsupported"), "and nothing else");
    put_file(at("got/op_silu_0.safetensors"), "no tensors", 0644);
    refuses(3, "op_silu_0", "validate check cases --got got --arith bf16");
    refuses(3, "no cases", "validate check got --got got");
    refuses(2, "--got", "validate check cases");
}

/* Of every operator results that are float32 sums stored in bf16: rounded they
 * are right, cut they are found and named. */
static void test_cut_cases(void)
{
    static const char *const ops[] = {
        "linear", "attention", "conv", "layer_norm", "rms_norm",
        "channel_norm", "modulate", "gate_add", "add", "mul", "gelu_tanh",
        "silu", "rope", "col_blend"};
    char command[400], name[64], row[96];
    if (sizeof(tt_real) == 8) return;
    expect(run("validate export stored") == 0, "export: %s", said);
    for (int cut = 0; cut < 2; cut++) {
        snprintf(command, sizeof command, "cd %s && mkdir -p in16 && for c in "
                 "stored/*; do cp $c/expected.safetensors "
                 "in16/${c#stored/}.safetensors; done", folder);
        expect(system(for_shell(command)) == 0, "copied");
        for (int i = 0; i < 3 * 14; i++) {
            snprintf(name, sizeof name, "in16/op_%s_%d.safetensors", ops[i / 3],
                     i % 3);
            narrow(at(name), "y", cut);
        }
        expect(run("validate check stored --got in16 --arith bf16-stored "
                   "--all > out") == cut, "%s: %s", cut ? "cut" : "rounded", text_of(at("out")));
    }
    const char *out = text_of(at("out"));
    for (int i = 0; i < 14; i++) {
        bool found = false;
        for (int k = 0; k < 3 && !found; k++) {
            snprintf(row, sizeof row, "op_%s_%d/y at", ops[i], k);
            const char *line = strstr(out, row);
            const char *hint = line ? strchr(line, '\n') : NULL;
            found = hint && !strncmp(hint + 1 + strspn(hint + 1, " "),
                                     "bf16 results are cut", 20);
        }
        expect(found, "%s that is cut is named: %s", ops[i], out);
    }
}

/* Results that name the class of their cases are checked by its bits. */
static void test_class_cases(void)
{
    char command[500];
    if (sizeof(tt_real) == 8) return;
    expect(run("validate export pairs --each 1 --class vdp") == 0, "export: %s",
           said);
    snprintf(command, sizeof command, "cd %s && mkdir bits && for c in pairs/*; "
             "do cp $c/expected.safetensors bits/${c#pairs/}.safetensors; "
             "done", folder);
    expect(system(for_shell(command)) == 0, "copied");
    expect(run("validate check pairs --got bits --arith vdp > out") == 0
           && strstr(text_of(at("out")), "by every bit of class vdp"),
           "the class itself: %s", text_of(at("out")));
    nudge(at("bits/op_linear_0.safetensors"), "y");
    expect(run("validate check pairs --got bits --arith vdp > out") == 1
           && strstr(text_of(at("out")), "op_linear_0/y"), "one bit: %s",
           text_of(at("out")));
    expect(run("validate check pairs --got bits --arith bf16 > out") == 0,
           "inside the limits: %s", text_of(at("out")));
    expect(run("validate export others --each 1 --class amx") == 0, "%s", said);
    snprintf(command, sizeof command, "cd %s && sed '1s/\"bf16\"/\"vdp\" /' "
             "others/op_linear_0/expected.safetensors "
             "> bits/op_linear_0.safetensors", folder);
    expect(system(for_shell(command)) == 0, "said to be vdp's");
    expect(run("validate check pairs --got bits --arith vdp > out") == 1
           && strstr(text_of(at("out")), ": it computes class amx"),
           "another class: %s", text_of(at("out")));
}

/* The part of a run that decodes: what stands in the case, that it says so when
 * an answer is wrong, and that what was given is not asked for again. */
static void test_vae_case(void)
{
    const char *case_ = "pictures/model_vae";
    tt_file *f;
    int rgb = 0;
    expect(run("validate export pictures --each 1 -- generate -m %s --vae %s "
               "--embeds %s -W 16 -H 16 -t 1 --latents 3 --cache full "
               "-o out.y4m", model, vae, inputs) == 0, "export: %s", said);
    if (!expect(exists(at("pictures/model_vae/case.json")), "%s", case_))
        return;
    if (!expect_ok(tt_file_open(ctx, &f, at("pictures/model_vae/"
                                            "expected.safetensors")), case_))
        return;
    for (int64_t i = 0; i < tt_file_count(f); i++)
        rgb += strstr(tt_file_entry(f, i)->name, "vae/frame.0/rgb/") != NULL;
    expect(rgb == 1 && tt_file_find(f, "vae/frame.0/conv2") &&
           !tt_file_find(f, "vae/frame.0/denorm"), "points of frame 0");
    tt_file_close(f);
    char command[500];
    snprintf(command, sizeof command, "cd %s && mkdir answers && cp "
             "pictures/model_vae/expected_bf16.safetensors "
             "answers/model_vae.safetensors", folder);
    expect(system(for_shell(command)) == 0, "copied");
    expect(run("validate check pictures --got answers --partial --arith bf16 "
               "> out") == 0, "honest bf16: %s", text_of(at("out")));
    expect(run("validate check pictures --got answers --partial > out") == 1
           && strstr(text_of(at("out")), "model_vae/vae/frame.0/conv2"),
           "as float32 the first point fails: %s", text_of(at("out")));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/dumps", argv)) return test_end();
    reference(model, "policy_models/a");
    reference(inputs, "policy_sf_full/inputs.safetensors");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(small, "demo");
    make_dumps();
    test_inject_is_another_run();
    test_points();
    test_names();
    test_example();
    test_diff();
    test_validate();
    test_latents_alone();
    test_pictures();
    test_wrong_picture();
    test_classes();
    test_cases();
    test_cut_cases();
    test_class_cases();
    test_large_layers();
    test_vae_case();
    return program_end();
}
