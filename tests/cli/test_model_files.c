/* test_model_files.c: model files that are not what they should be, as `tether
 * generate`, `embed`, `convert` and `inspect` meet them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/program.h"

#define RUN_EMBEDS "-W 64 -H 64 --latents 3 --no-decode --latents-out o.st "
#define RUN "-p red " RUN_EMBEDS

static char demo[1100], other[2400];

/* A copy of the demo model in folder `name`. */
static void copy(const char *name)
{
    char line[2600];
    snprintf(line, sizeof line, "cp -r '%s' '%s' && chmod -R u+w '%s'", demo,
             at(name), at(name));
    expect(system(line) == 0, "copy to %s", name);
}

/* The demo's config.json with another value of a key, after `mark`. */
static void put_value(const char *path, const char *mark, const char *key,
                      const char *value)
{
    char text[8192], name[1200], quoted[64];
    snprintf(name, sizeof name, "%s/config.json", demo);
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *own = text_of(name), *old = strstr(own, quoted);
    if (!expect(old != NULL, "%s in %s", key, name)) return;
    const char *rest = old + strcspn(old, ",}");
    snprintf(text, sizeof text, "%s%.*s%s %s%s", mark, (int)(old - own), own,
             quoted, value, rest);
    put_file(path, text, 0644);
}

static void put_config(const char *path, const char *mark, const char *heads)
{
    put_value(path, mark, "num_heads", heads);
}

static bool same_as(const char *want)
{
    const bool is = same(at("o.st"), at(want));
    unlink(at("o.st"));
    return is;
}

/* The transformer's own config.json is the one that counts. */
static void test_config(void)
{
    expect(run("generate -m %s " RUN, demo) == 0, "the demo: %s", said);
    rename(at("o.st"), at("four.st"));
    copy("eight");
    put_config(at("eight/config.json"), "", "8");
    expect(run("generate -m eight " RUN) == 0, "eight heads: %s", said);
    expect(!same(at("o.st"), at("four.st")), "other bits");
    rename(at("o.st"), at("eight.st"));
    expect(run("generate -m %s --dit eight " RUN, demo) == 0
           && same_as("eight.st"), "--dit FOLDER with its config: %s", said);
    expect(run("generate -m eight --dit %s/diffusion_pytorch_model.safetensors "
               RUN, demo) == 0 && same_as("four.st"), "--dit FILE: %s", said);
    expect(run("generate -m %s --checkpoint eight/diffusion_pytorch_model."
               "safetensors " RUN, demo) == 0 && same_as("eight.st"),
           "--checkpoint FILE: %s", said);
    /* what else is read of it, for the prompt */
    put_value(at("eight/config.json"), "", "text_len", "16");
    expect(run("generate -m eight " RUN) == 0, "short texts: %s", said);
    rename(at("o.st"), at("short.st"));
    expect(run("generate -m %s --dit eight " RUN, demo) == 0
           && same_as("short.st") && !same(at("short.st"), at("four.st")),
           "its length of texts: %s", said);
    unlink(at("eight/config.json"));
    expect(run("generate -m %s --dit eight " RUN, demo) == 0
           && same_as("four.st"), "without one, that of -m: %s", said);
    put_config(at("eight/config.json"), "\xef\xbb\xbf", "8");
    expect(run("generate -m eight " RUN) == 0 && same_as("eight.st"),
           "a byte order mark: %s", said);
    /* a folder of ComfyUI's: the config is in its root */
    mkdir(at("eight/diffusion_models"), 0777);
    rename(at("eight/diffusion_pytorch_model.safetensors"),
           at("eight/diffusion_models/wan.safetensors"));
    expect(run("generate -m eight " RUN) == 0 && same_as("eight.st"),
           "ComfyUI's: %s", said);
}

/* The pieces that stand for padding and the end of a text change places. */
static void exchange_pieces(const char *path)
{
    enum { FIRST = 16, SECOND = 15 };
    char name[1300], two[FIRST + SECOND];
    snprintf(name, sizeof name, "%.1000s/google/umt5-xxl/spiece.model", demo);
    FILE *from = fopen(name, "rb"), *to = fopen(path, "r+b");
    if (expect(from && to && fread(two, sizeof two, 1, from) == 1
               && !memcmp(two + 4, "<pad>", 5), "pieces of %s", name)) {
        fwrite(two + FIRST, SECOND, 1, to);
        fwrite(two, FIRST, 1, to);
    }
    if (from) fclose(from);
    if (to) fclose(to);
}

static void test_tokenizer(void)
{
    char pub[1100];
    reference(pub, "t5_tokenizer/pub_b.model");
    refuses(1, "pieces, and the text encoder", "generate -m %s --tokenizer %s "
            RUN, demo, pub);
    refuses(1, "pieces, and the text encoder", "embed -m %s --tokenizer %s -p "
            "red -o e.st", demo, pub);
    expect(!exists(at("e.st")), "no embeddings");
    copy("wrong");
    snprintf(other, sizeof other, "cp '%s' '%s'", pub,
             at("wrong/google/umt5-xxl/spiece.model"));
    expect(system(other) == 0, "another tokenizer");
    expect(run("inspect wrong > out") == 0
           && strstr(text_of(at("out")), "pieces, and the text encoder"),
           "inspect: %.600s", text_of(at("out")));
    copy("ids");
    exchange_pieces(at("ids/google/umt5-xxl/spiece.model"));
    refuses(1, "has padding, </s> and <unk> as 1, 0 and 3", "generate -m ids "
            RUN);
}

static void test_inspect(void)
{
    copy("half");
    put_file(at("half/diffusion_pytorch_model.safetensors.aria2"), "", 0644);
    put_file(at("half/google/umt5-xxl/spiece.model.part"), "", 0644);
    refuses(1, ".aria2 is there", "generate -m half " RUN);
    refuses(1, ".aria2 is there", "convert half/diffusion_pytorch_model."
            "safetensors -o c.st");
    refuses(1, "spiece.model.part is there", "tokenize -m half -p red");
    expect(run("inspect half > out") == 0
           && strstr(text_of(at("out")), "safetensors.aria2 is there")
           && strstr(text_of(at("out")), "spiece.model.part is there"),
           "inspect: %.900s", text_of(at("out")));
    refuses(1, ".part is there", "inspect half --verify > out");
    expect(run("inspect half/diffusion_pytorch_model.safetensors --json > out")
           == 0 && strstr(text_of(at("out")), "\"problem\""), "JSON: %.300s",
           text_of(at("out")));
    unlink(at("half/diffusion_pytorch_model.safetensors.aria2"));
    rename(at("half/diffusion_pytorch_model.safetensors"),
           at("half/m-00002-of-00002.safetensors"));
    refuses(1, "m-00001-of-00002.safetensors is not there", "generate -m half "
            RUN);
    refuses(1, "m-00001-of-00002.safetensors is not there", "convert half/m-"
            "00002-of-00002.safetensors -o c.st");
    /* not its VAE in the place of the transformer */
    refuses(1, "m-00001-of-00002.safetensors is not there", "convert half -o "
            "c.st");
    expect(run("inspect half > out") == 0
           && strstr(text_of(at("out")), "00001-of-00002.safetensors is not"),
           "inspect: %.900s", text_of(at("out")));
    rename(at("half/m-00002-of-00002.safetensors"),
           at("half/diffusion_pytorch_model.safetensors"));
    mkdir(at("two"), 0777);
    rename(at("half"), at("two/high_noise_model"));
    refuses(1, "two experts", "generate -m two " RUN);
    expect(run("inspect two > out") == 0
           && strstr(text_of(at("out")), "two experts"), "inspect: %.600s",
           text_of(at("out")));
}

/* A model whose names are known, and whose scales are not. */
static void test_scales(void)
{
    const float v[4] = {1, 1, 1, 1};
    tt_st_writer *w;
    expect_ok(tt_st_create(ctx, &w, at("blocks.st")), "blocks.st");
    tt_st_add(w, "blocks.0.self_attn.q.weight", TT_F8_E4M3, 2,
              (int64_t[]){4, 4}, v);
    tt_st_add(w, "blocks.0.self_attn.q.weight_scale", TT_F32, 2,
              (int64_t[]){2, 2}, v);
    expect_ok(tt_st_finish(w), "blocks.st");
    expect(run("inspect blocks.st > out") == 0
           && strstr(text_of(at("out")), "scales per block"), "inspect: %.600s",
           text_of(at("out")));
}

/* A difference of one bias or norm, [n] ones. */
static void put_lora(const char *path, const char *key, int64_t n)
{
    float v[128];
    tt_st_writer *w;
    for (int i = 0; i < 128; i++) v[i] = 1;
    expect_ok(tt_st_create(ctx, &w, path), path);
    tt_st_add(w, key, TT_F32, 1, &n, v);
    expect_ok(tt_st_finish(w), path);
}

/* A LoRA that would change nothing is refused; one of another part is left to
 * the command that opens it. */
static void test_lora(void)
{
    put_lora(at("dit.st"), "blocks.0.self_attn.q.diff_b", 128);
    put_lora(at("t5.st"), "text_encoder.encoder.final_layer_norm.diff", 64);
    refuses(1, "dit.st holds nothing for the umT5", "embed -m %s -p red -o "
            "e.st --lora dit.st", demo);
    expect(!exists(at("e.st")), "no embeddings");
    expect(run("embed -m %s -p red -o e.st", demo) == 0
           && run("embed -m %s -p red -o f.st --lora t5.st", demo) == 0
           && !same(at("e.st"), at("f.st")), "embed --lora: %s", said);
    expect(run("generate -m %s --embeds f.st " RUN_EMBEDS, demo) == 0, "%s",
           said);
    rename(at("o.st"), at("merged.st"));
    expect(run("generate -m %s --lora t5.st " RUN, demo) == 0
           && same_as("merged.st"), "generate --lora: %s", said);
    expect(run("generate -m %s --lora t5.st --lora dit.st:0.5 " RUN, demo) == 0
           && !same(at("o.st"), at("merged.st")), "two: %s", said);
    unlink(at("o.st"));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/model_files", argv)) return test_end();
    test_scales();
    reference(demo, "demo");
    test_config();
    test_tokenizer();
    test_inspect();
    test_lora();
    return program_end();
}
