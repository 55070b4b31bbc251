/* test_check.c: files that are well-formed and not what they should be.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the demo model's parts with holes, with what a download leaves,
 * under names of the hub's cache, and in folders of two experts. */
#include <string.h>
#include <sys/stat.h>

#include "io/file.h"
#include "io/weights.h"
#include "tests/folder.h"
#include "dit/dit.h"
#include "text/text.h"

static tt_ctx *ctx;
static unsigned char bytes[5 << 20];
static size_t size;

static const char *const part[] = {
    [TT_MODEL_DIT] = "demo/diffusion_pytorch_model.safetensors",
    [TT_MODEL_VAE] = "demo/Wan2.1_VAE.safetensors",
    [TT_MODEL_T5] = "demo/models_t5_umt5-xxl-enc-bf16.safetensors"};

static bool slurp(tt_model_kind kind)
{
    FILE *f = fopen(ref_path("%s", part[kind]), "rb");
    size = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f) fclose(f);
    return expect(size > 0 && size < sizeof bytes, "read %s", part[kind]);
}

static const char *put(const char *name)
{
    const char *path = at(name);
    FILE *f = fopen(path, "wb");
    expect(f && fwrite(bytes, 1, size, f) == size, "write %s", name);
    if (f) fclose(f);
    return path;
}

static void touch(const char *name)
{
    FILE *f = fopen(at(name), "wb");
    if (expect(f != NULL, "write %s", name)) fclose(f);
}

/* Zeros from byte `first` of a tensor on; n < 0: all of it. */
static void blank(const char *path, const char *name, int64_t first, int64_t n)
{
    tt_file *f;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return;
    const tt_entry *e = tt_file_find(f, name);
    if (expect(e != NULL, "%s", name)) {
        const int64_t from = (const uint8_t *)e->t.data - f->map.data;
        if (n < 0) n = tt_tensor_bytes(&e->t);
        memset(bytes + from + first, 0, (size_t)n);
    }
    tt_file_close(f);
}

/* Open and check: the status must be `want`, and the sentence say `word`. */
static void check(const char *path, tt_model_kind kind, tt_status want,
                  const char *word)
{
    tt_weights *w;
    tt_status s = tt_weights_open(ctx, &w, path, kind, NULL);
    if (!s) s = tt_weights_check(ctx, w);
    expect(s == want && (!word || strstr(tt_message(ctx), word)),
           "%s: %d, expected %d and '%s': %s", path, (int)s, (int)want,
           word ? word : "", tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(w);
}

static void verify(const char *path, tt_status want, const char *word)
{
    tt_file *f;
    tt_verify_report r;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return;
    const tt_status s = tt_file_verify(ctx, &r, f, NULL, NULL);
    expect(s == want && (!word || strstr(tt_message(ctx), word)),
           "%s: %d, expected %d and '%s': %s", path, (int)s, (int)want,
           word ? word : "", tt_message(ctx));
    tt_clear(ctx);
    tt_file_close(f);
}

/* ---- zeros --------------------------------------------------------------- */

/* One tensor, or a part of it, is zero in an otherwise right file. */
static void hole(tt_model_kind kind, const char *name, int64_t first, int64_t n)
{
    if (!slurp(kind)) return;
    const char *path = put("hole.safetensors");
    check(path, kind, TT_OK, NULL);
    blank(path, name, first, n);
    put("hole.safetensors");
    check(path, kind, TT_EFORMAT, name);
}

static void zeros(void)
{
    hole(TT_MODEL_DIT, "blocks.1.ffn.0.weight", 0, -1);
    hole(TT_MODEL_DIT, "blocks.1.ffn.0.weight", 100000, 4096);
    hole(TT_MODEL_DIT, "blocks.0.self_attn.q.weight", 0, 256);
    hole(TT_MODEL_DIT, "blocks.0.self_attn.norm_q.weight", 0, -1);
    hole(TT_MODEL_DIT, "blocks.2.modulation", 0, -1);
    hole(TT_MODEL_DIT, "head.head.weight", 0, -1);
    hole(TT_MODEL_VAE, "decoder.head.0.gamma", 0, -1);
    hole(TT_MODEL_VAE, "decoder.middle.0.residual.2.weight", 0, -1);
    hole(TT_MODEL_T5, "norm.weight", 0, -1);
    hole(TT_MODEL_T5, "token_embedding.weight", 0, -1);
    hole(TT_MODEL_T5, "token_embedding.weight", 32768, 16384);
    /* a page of a disk somewhere in a tensor */
    if (!slurp(TT_MODEL_DIT)) return;
    blank(put("page.safetensors"), "blocks.1.ffn.0.weight", 5002, 4096);
    verify(put("page.safetensors"), TT_EFORMAT, "4096 zeros, 5002 bytes");
    /* a bias may be zero */
    slurp(TT_MODEL_DIT);
    blank(put("bias.safetensors"), "blocks.0.self_attn.q.bias", 0, -1);
    check(put("bias.safetensors"), TT_MODEL_DIT, TT_OK, NULL);
}

/* The tail of a file, from a few rows to two thirds; a plan is not asked. */
static void tails(void)
{
    static const int part_of[] = {3, 10, 90, 300};
    for (int kind = 0; kind <= TT_MODEL_T5; kind++)
        for (int k = 0; k < 4; k++) {
            if (!slurp((tt_model_kind)kind)) return;
            const size_t left = size - (k ? size / (size_t)part_of[k]
                                          : 2 * size / 3);
            memset(bytes + left, 0, size - left);
            const char *path = put("tail.safetensors");
            if (kind != TT_MODEL_T5 || k < 3)
                check(path, (tt_model_kind)kind, TT_EFORMAT, "is zero");
            if (size - left >= 4096) verify(path, TT_EFORMAT, "zeros");
            tt_weights *w;
            const tt_weights_options plan = {.ema = -1, .shapes_alone = true};
            if (expect_ok(tt_weights_open(ctx, &w, path, (tt_model_kind)kind,
                                          &plan), path))
                expect_ok(tt_weights_check(ctx, w), "a plan");
            tt_weights_close(w);
        }
}

/* ---- downloads ----------------------------------------------------------- */

static void downloads(void)
{
    static const char *const ending[] = {".aria2", ".part", ".incomplete",
                                         ".crdownload", ".partial", ".st"};
    char name[64];
    slurp(TT_MODEL_T5);
    char path[1024];
    snprintf(path, sizeof path, "%s", put("down.safetensors"));
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        snprintf(name, sizeof name, "down.safetensors%s", ending[i]);
        touch(name);
        check(path, TT_MODEL_T5, TT_EFORMAT, ending[i]);
        unlink(at(name));
        check(path, TT_MODEL_T5, TT_OK, NULL);
        put(name);
        if (strcmp(ending[i], ".st"))
            check(at(name), TT_MODEL_T5, TT_EFORMAT, "says its name");
        else
            check(at(name), TT_MODEL_T5, TT_OK, NULL);
        unlink(at(name));
    }
    /* the hub's cache: a link to a blob */
    mkdir(at("blobs"), 0777);
    expect(!rename(path, at("blobs/abc")) && !symlink("blobs/abc", path),
           "a link");
    check(path, TT_MODEL_T5, TT_OK, NULL);
    touch("blobs/abc.incomplete");
    check(path, TT_MODEL_T5, TT_EFORMAT, ".incomplete");
    tt_tokenizer *tok;
    touch("spiece.model");
    touch("spiece.model.aria2");
    expect(tt_tokenizer_open(ctx, &tok, at("spiece.model")) == TT_EFORMAT
           && strstr(tt_message(ctx), ".aria2"), "a tokenizer: %s",
           tt_message(ctx));
    tt_clear(ctx);
}

/* ---- the hub's digest ---------------------------------------------------- */

static void digests(void)
{
    char hex[65], name[128];
    tt_sha256 s;
    tt_verify_report r;
    slurp(TT_MODEL_T5);
    tt_sha256_init(&s);
    tt_sha256_add(&s, bytes, size);
    tt_sha256_hex(&s, hex);
    snprintf(name, sizeof name, "blobs/%s", hex);
    put(name);
    expect(!symlink(name, at("blob.safetensors")), "a link");
    verify(at("blob.safetensors"), TT_OK, NULL);
    expect_ok(tt_digest_verify(ctx, &r, at(name)), "any file");
    expect(r.agree == 1 && r.bytes == (int64_t)size, "agrees");
    bytes[size - 1] ^= 1;
    put(name);
    verify(at("blob.safetensors"), TT_EFORMAT, hex);
    expect_status(tt_digest_verify(ctx, &r, at(name)), TT_EFORMAT, "any file");
    tt_clear(ctx);
    /* a folder of one's own, one level up */
    mkdir(at("own"), 0777);
    mkdir(at("own/vae"), 0777);
    mkdir(at("own/.cache"), 0777);
    mkdir(at("own/.cache/huggingface"), 0777);
    mkdir(at("own/.cache/huggingface/download"), 0777);
    mkdir(at("own/.cache/huggingface/download/vae"), 0777);
    const char *path = put("own/vae/x.safetensors");
    verify(path, TT_OK, NULL);
    FILE *f = fopen(at("own/.cache/huggingface/download/vae/x.safetensors"
                       ".metadata"), "w");
    fprintf(f, "0123456789abcdef\n%s\n1700000000.5\n", hex);
    fclose(f);
    verify(path, TT_EFORMAT, hex);
    bytes[size - 1] ^= 1;
    put("own/vae/x.safetensors");
    verify(path, TT_OK, NULL);
}

/* ---- two experts --------------------------------------------------------- */

static void index_says(const char *text, tt_status want)
{
    FILE *f = fopen(at("w/model_index.json"), "w");
    fputs(text, f);
    fclose(f);
    check(at("w"), TT_MODEL_DIT, want, want ? "two experts" : NULL);
    check(at("w/transformer/diffusion_pytorch_model.safetensors"),
          TT_MODEL_DIT, want, want ? "two experts" : NULL);
    unlink(at("w/model_index.json"));
}

static void experts(void)
{
    static const char *const folders[] = {"transformer_2", "high_noise_model",
                                          "low_noise_model"};
    static const char *const alone[] = {
        "wan2.2_t2v_high_noise_14B_fp16.safetensors",
        "Wan2.2-T2V-A14B-LowNoise-Q4_K_M.safetensors",
        "Wan2_2-T2V-A14B-HIGH_fp8_e4m3fn.safetensors"};
    char name[128];
    slurp(TT_MODEL_DIT);
    mkdir(at("w"), 0777);
    mkdir(at("w/transformer"), 0777);
    put("w/transformer/diffusion_pytorch_model.safetensors");
    check(at("w"), TT_MODEL_DIT, TT_OK, NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "w/%s", folders[i]);
        mkdir(at(name), 0777);
        check(at("w"), TT_MODEL_DIT, TT_EUNSUPPORTED, "two experts");
        strcat(name, "/diffusion_pytorch_model.safetensors");
        put(name);
        check(at(name), TT_MODEL_DIT, TT_EUNSUPPORTED, "two experts");
        unlink(at(name));
        *strrchr(name, '/') = 0;
        rmdir(at(name));
    }
    index_says("{\"boundary_ratio\": 0.875}", TT_EUNSUPPORTED);
    index_says("{\"transformer_2\": [\"diffusers\", \"W\"]}", TT_EUNSUPPORTED);
    index_says("{\"boundary_ratio\": null, \"transformer_2\": [null, null]}",
               TT_OK);
    index_says("not JSON", TT_OK);
    mkdir(at("c"), 0777);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "c/%s", alone[i]);
        check(put(name), TT_MODEL_DIT, TT_EUNSUPPORTED, "two experts");
        check(at("c"), TT_MODEL_DIT, TT_EUNSUPPORTED, "two experts");
    }
    put("c/Wan2.1-T2V-14B.safetensors"); /* the one that is meant */
    check(at("c"), TT_MODEL_DIT, TT_OK, NULL);
}

/* ---- relatives ----------------------------------------------------------- */

/* The demo's tensors under `prefix` and one more, whose name is the word that
 * must be said; values are those of the demo. */
static void relative(const char *prefix, const char *more, tt_status want,
                     const char *word)
{
    char name[256];
    tt_file *f;
    tt_st_writer *w;
    const float one[4] = {1, 1, 1, 1};
    const int64_t dim[2] = {2, 2};
    unlink(at("relative.safetensors"));
    if (!expect_ok(tt_file_open(ctx, &f, ref_path("%s", part[0])), "demo")
        || !expect_ok(tt_st_create(ctx, &w, at("relative.safetensors")), "w"))
        return;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_tensor *t = &tt_file_entry(f, i)->t;
        const bool flat = !*prefix && !more && t->rank == 3;
        snprintf(name, sizeof name, "%s%s", prefix, tt_file_entry(f, i)->name);
        tt_gather(bytes, t);   /* in the host's byte order */
        tt_st_add(w, name, t->dtype, t->rank - flat, t->dim + flat, bytes);
    }
    if (more) tt_st_add(w, more, TT_F32, 2, dim, one);
    expect_ok(tt_st_finish(w), "written");
    tt_file_close(f);
    check(at("relative.safetensors"), TT_MODEL_DIT, want, word);
    tt_weights *x;
    tt_dit *net = NULL;
    tt_weights_open(ctx, &x, at("relative.safetensors"), TT_MODEL_DIT, NULL);
    tt_dit_load(ctx, &net, x, NULL, 4);
    expect(ctx->status == want, "%s%s: loading gives %d: %s", prefix,
           more ? more : "", (int)ctx->status, tt_message(ctx));
    tt_clear(ctx);
    tt_dit_close(net);
}

static void relatives(void)
{
    static const char *const prefix[] = {"generator.model.", "transformer.",
        "generator_ema.model.", "pipe.dit.", "model.diffusion_model."};
    static const struct { const char *more, *word; } other[] = {
        {"fps_embedding.weight", "SkyReels"},
        {"blocks.0.to_gate_compress.weight", "FastWan"},
        {"blocks.0.self_attn.attn_op.local_attn.proj_l.weight", "TurboDiff"},
        {"condition_embedder.delta_embedder.linear_1.weight", "AnyFlow"},
        {"ref_conv.weight", "Phantom"},
        {"blocks.0.self_attn.q.weight_scale_inv", "quantised in blocks"},
        {"blocks.0.self_attn.q.lora_A.weight", "LoRA"}};
    relative("", NULL, TT_OK, NULL); /* modulations as [6, dim] */
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        relative(prefix[i], NULL, TT_OK, NULL);
    relative("", "model_type.SkyReels-V2-T2V-14B-540P", TT_OK, NULL);
    relative("", "freqs", TT_OK, NULL);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        relative("", other[i].more, TT_EUNSUPPORTED, other[i].word);
}

/* Latents of other models, whose transformers have Wan's names. */
static void channels(void)
{
    static const struct { int64_t in; const char *word; } other[] = {
        {48, "TI2V"}, {36, "I2V"}};
    static const float x[8 * 48 * 4] = {1};
    for (int i = 0; i < 2; i++) {
        tt_st_writer *w;
        expect_ok(tt_st_create(ctx, &w, at("relative.safetensors")), "w");
        tt_st_add(w, "patch_embedding.weight", TT_F32, 5,
                  (int64_t[]){8, other[i].in, 1, 2, 2}, x);
        tt_st_add(w, "patch_embedding.bias", TT_F32, 1, (int64_t[]){8}, x);
        tt_st_add(w, "head.modulation", TT_F32, 2, (int64_t[]){2, 8}, x);
        expect_ok(tt_st_finish(w), "written");
        check(at("relative.safetensors"), TT_MODEL_DIT, TT_EUNSUPPORTED,
              other[i].word);
    }
}

int main(void)
{
    ctx = test_begin("io/check");
    if (!folder_make()) return test_end();
    zeros();
    channels();
    tails();
    downloads();
    digests();
    experts();
    relatives();
    folder_remove();
    return test_end();
}
