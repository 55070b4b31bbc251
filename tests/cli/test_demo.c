/* test_demo.c: the model that ships, from the prompt to the picture.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * ref_data/demo is a trained model, so its output means something: besides the
 * bits, these tests look at the picture. ref_data/demo/hashes.txt has, per
 * class of arithmetic, the SHA-256 of the latents and of the y4m file of one
 * prompt; a mismatch prints what was found. tokens.tsv is from SentencePiece.*/
#include "tests/cli/program.h"
#include "io/io.h"
#include "text/text.h"
#include "io/video.h"

enum { SIDE = 64, PIXELS = SIDE * SIDE };

static char model[1100];

static const char prompt[] =
    "a red circle moves left and bounces, on a blue background";

/* ---- files --------------------------------------------------------------- */

/* SHA-256 of the bytes of a file, or "" if it cannot be read. */
static const char *digest(const char *path)
{
    static char ring[4][65];
    static int turn;
    char *hex = ring[turn++ % 4];
    static unsigned char block[65536];
    FILE *f = fopen(path, "rb");
    tt_sha256 s;
    hex[0] = 0;
    if (!f) return hex;
    tt_sha256_init(&s);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        tt_sha256_add(&s, block, n);
    fclose(f);
    tt_sha256_hex(&s, hex);
    return hex;
}

/* SHA-256 of the values of the latents in a file: not of the whole file, whose
 * metadata names versions. */
static const char *latents_digest(const char *path)
{
    static char hex[65];
    tt_file *f = NULL;
    hex[0] = 0;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return hex;
    const tt_entry *e = tt_file_find(f, "latents");
    if (expect(e != NULL, "latents in %s", path))
        expect_ok(tt_tensor_digest(ctx, hex, &e->t), path);
    tt_file_close(f);
    return hex;
}

/* Every file of the model is the one that was measured. */
static void test_files(void)
{
    char line[256], hex[65], name[128], path[1300];
    int n = 0;
    snprintf(path, sizeof path, "%s/SHA256SUMS", model);
    FILE *f = fopen(path, "r");
    if (!expect(f != NULL, "%s is there", path)) return;
    while (fgets(line, sizeof line, f)) {
        if (!expect(sscanf(line, "%64s %127s", hex, name) == 2, "%s", line))
            break;
        snprintf(path, sizeof path, "%s/%s", model, name);
        expect(!strcmp(digest(path), hex), "%s has the stored digest", name);
        n++;
    }
    fclose(f);
    expect(n == 5, "%d files in SHA256SUMS, expected 5", n);
}

/* ---- tokenizer ----------------------------------------------------------- */

/* The ids are SentencePiece's, and their pieces spell the text again. */
static void check_text(const tt_tokenizer *tok, const char *text,
                       const char *ids)
{
    int64_t id[64];
    tt_token_row row = {.length = 64, .ids = id};
    char found[512] = "", spelled[512] = "";
    if (!expect_ok(tt_tokenizer_encode_prompt(ctx, &row, tok, text,
                                              strlen(text), true), text))
        return;
    for (int64_t i = 0; i < row.seq_len; i++) {
        size_t len, at = strlen(found), to = strlen(spelled);
        snprintf(found + at, sizeof found - at, "%s%lld", i ? " " : "",
                 (long long)id[i]);
        const char *piece = tt_tokenizer_piece(tok, id[i], &len);
        if (i + 1 < row.seq_len)
            snprintf(spelled + to, sizeof spelled - to, "%.*s", (int)len,
                     piece);
    }
    expect(!strcmp(found, ids), "'%s': ids %s, SentencePiece: %s", text, found,
           ids);
    if (strstr(spelled, "<0x")) return;        /* bytes of foreign letters   */
    char again[512] = "";                      /* U+2581 is a space          */
    for (const char *c = spelled; *c;) {
        const bool space = !strncmp(c, "\xe2\x96\x81", 3);
        snprintf(again + strlen(again), 2, "%c", space ? ' ' : *c);
        c += space ? 3 : 1;
    }
    expect(!strcmp(again + (again[0] == ' '), text), "'%s' is spelled '%s'",
           text, again);
}

static void test_tokenizer(void)
{
    char path[1300], line[1024];
    int n = 0;
    tt_tokenizer *tok = NULL;
    snprintf(path, sizeof path, "%s/google/umt5-xxl/spiece.model", model);
    if (!expect_ok(tt_tokenizer_open(ctx, &tok, path), "spiece.model")) return;
    snprintf(path, sizeof path, "%s/tokens.tsv", model);
    FILE *f = fopen(path, "r");
    if (expect(f != NULL, "%s is there", path)) {
        while (fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            char *tab = strchr(line, '\t');
            if (!expect(tab != NULL, "a line of tokens.tsv: %s", line)) break;
            *tab = 0;
            check_text(tok, line, tab + 1);
            n++;
        }
        fclose(f);
    }
    expect(n > 30, "%d texts in tokens.tsv", n);
    tt_tokenizer_close(tok);
}

/* ---- bits ---------------------------------------------------------------- */

/* The digests stored for a class of arithmetic. */
static bool stored(const char *class, char latents[65], char video[65])
{
    char path[1300], line[256], name[16];
    latents[0] = video[0] = 0;
    snprintf(path, sizeof path, "%s/hashes.txt", model);
    FILE *f = fopen(path, "r");
    if (!expect(f != NULL, "%s is there", path)) return false;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%15s", name) == 1 && !strcmp(name, class))
            expect(sscanf(line, "%*s %64s %64s", latents, video) == 2, "%s",
                   line);
    fclose(f);
    return expect(*latents && *video, "%s in hashes.txt", class);
}

/* Twelve latent frames, 45 pictures: video.y4m or, in another class,
 * <class>.y4m */
static void make_video(const char *name, const char *options)
{
    expect(run("generate -q -m %s -p '%s' -s 1 -W 64 -H 64 --latents 12 -o "
               "%s.y4m --latents-out %s.safetensors%s", model, prompt, name,
               name, options) == 0, "generate: %s", said);
}

static void check_bits(const char *class, const char *name)
{
    char latents[65], video[65], file[32];
    stored(class, latents, video);
    snprintf(file, sizeof file, "%s.safetensors", name);
    const char *got = latents_digest(at(file));
    expect(!strcmp(got, latents), "%s latents %s, stored: %s", class, got,
           latents);
    snprintf(file, sizeof file, "%s.y4m", name);
    expect(!strcmp(digest(at(file)), video), "%s video %s, stored: %s", class,
           digest(at(file)), video);
}

/* Digests are stored for the classes that promise bits everywhere. A build in
 * double is for comparing with float64 references and has none. */
static void test_bits(void)
{
    if (sizeof(tt_real) != 4) {
        make_video("video", "");
        return;
    }
    make_video("video", " --backend exact");
    check_bits("f32", "video");
    make_video("bf16", " --backend exact --class bf16");
    check_bits("bf16", "bf16");

    /* the backends and thread counts that promise the same bits */
    const char *head = "generate -q --no-decode -W 64 -H 64 --latents 3 -s 1";
    expect(run("%s -m %s -p '%s' --latents-out b --backend exact -t 1", head,
               model, prompt) == 0, "exact: %s", said);
    expect(run("%s -m %s -p '%s' --latents-out c --backend golden -t 2", head,
               model, prompt) == 0, "golden: %s", said);
    expect(run("decode -q -m %s --latents b -o b.y4m", model) == 0
           && run("decode -q -m %s --latents c -o c.y4m", model) == 0,
           "decode: %s", said);
    expect(same(at("b.y4m"), at("c.y4m")),
           "exact and golden give the same frames");
}

/* ---- meaning ------------------------------------------------------------- */

/* What one frame shows: how much is red, where, and how much is background.*/
typedef struct seen {
    double red, back, x;
} seen;

/* Frame `number` of a y4m file with 64x64 pictures. */
static seen look(const char *path, int number)
{
    static uint8_t yuv[3 * PIXELS], rgb[3 * PIXELS];
    seen s = {0, 0, 0};
    FILE *f = fopen(path, "rb");
    if (!expect(f != NULL, "%s is there", path)) return s;
    int c;
    while ((c = getc(f)) != '\n' && c != EOF) continue;
    const long frame = 6 + 3 * PIXELS;                    /* "FRAME\n"        */
    fseek(f, number * frame + 6, SEEK_CUR);
    if (expect(fread(yuv, 1, sizeof yuv, f) == sizeof yuv, "frame %d of %s",
               number, path))
        tt_rgb_from_yuv(rgb, yuv, yuv + PIXELS, yuv + 2 * PIXELS, PIXELS,
                        false);
    fclose(f);
    for (int i = 0; i < PIXELS; i++) {
        const uint8_t *p = rgb + 3 * i;
        if (p[0] > 150 && p[1] < 100 && p[2] < 100) {
            s.red++;
            s.x += i % SIDE;
        }
        s.back += p[0] < 90 && p[1] > 40 && p[1] < 130 && p[2] > 110;
    }
    s.x /= s.red > 0 ? s.red : 1;
    s.red /= PIXELS;
    s.back /= PIXELS;
    return s;
}

/* A circle of radius 11 to 14.5 covers 9 to 16 % of the picture. */
static void expect_object(const char *video, int frame)
{
    const seen s = look(video, frame);
    expect(s.red > 0.05 && s.red < 0.25, "%s, frame %d: %.1f %% is red", video,
           frame, 100 * s.red);
    expect(s.back > 0.7, "%s, frame %d: %.1f %% is background", video, frame,
           100 * s.back);
}

/* The video of test_bits: a red object on blue that moves left first. */
static void test_meaning(void)
{
    const char *video = at("video.y4m");
    for (int i = 0; i <= 44; i += 11) expect_object(video, i);
    const double moved = look(video, 20).x - look(video, 0).x;
    expect(moved < -8, "moves left: by %.1f pixels in 20 frames", moved);
}

/* Long after the first eviction there is still the same object. */
static void test_long(void)
{
    expect(run("generate -q -m %s -p '%s' -s 2 -W 64 -H 64 --latents 60 "
               "--no-decode --latents-out long.safetensors", model, prompt)
           == 0, "60 latents: %s", said);
    expect(run("decode -q -m %s --latents long.safetensors -o long.y4m", model)
           == 0, "decode: %s", said);
    for (int i = 0; i < 4; i++)
        expect_object(at("long.y4m"), 236 - 30 * i);
}

static void test_program(void)
{
    expect(run("demo --list > list") == 0, "--list: %s", said);
    expect(strstr(text_of(at("list")), prompt) != NULL, "--list has '%s'",
           prompt);
    expect(run("demo -q -m %s --latents 3 -o out", model) == 0, "demo: %s",
           said);
    refuses(2, "--promt", "demo --promt x");
    refuses(2, "-o is a folder", "demo -m %s -o film.y4m", model);
    expect(!exists(at("film.y4m")), "and none is made");
    expect(exists(at("out/sheet.png")) && exists(at("out/run.json")),
           "the sheet and the record");
    expect(run("demo -q -m %s --latents 3 -s 4 -o out", model) == 0,
           "in the place of another demo: %s", said);
    put_file(at("out/sheet.png"), "mine", 0644);
    unlink(at("out/demo.latents.safetensors"));
    refuses(2, "is there, and demo replaces only", "demo -q -m "
            "%s --latents 3 -o out", model);
    expect(!strcmp(text_of(at("out/sheet.png")), "mine"), "it stays");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (program_begin("cli/test_demo", argv) && *reference(model, "demo")) {
        test_files();
        test_tokenizer();
        test_bits();
        test_meaning();
        test_long();
        test_program();
    }
    return program_end();
}
