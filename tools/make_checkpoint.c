/* make_checkpoint.c: random checkpoints of any shape in the true formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For measuring at real size and for trying the program without real weights.
 * What such a model generates is noise-like; shapes, names, types and file
 * layout are those of the published files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/checkpoint.h"

static const ck_dit dit_1_3b = {.dim = 1536, .layers = 30, .ffn = 8960,
                                .heads = 12, .freq = 256, .text_dim = 4096,
                                .text_len = 512, .channels = 16};
static const ck_t5 umt5_xxl = {.vocab = 256384, .dim = 4096, .heads = 64,
                               .head_dim = 64, .ffn = 10240, .layers = 24,
                               .buckets = 32};
static const ck_dit dit_demo = {.dim = 128, .layers = 6, .ffn = 512, .heads = 4,
                                .freq = 256, .text_dim = 64, .text_len = 32,
                                .channels = 16};
static const ck_t5 umt5_demo = {.vocab = 640, .dim = 64, .heads = 4,
                                .head_dim = 16, .ffn = 128, .layers = 2,
                                .buckets = 32};

static const char usage[] =
    "usage: make_checkpoint [options]\n"
    "  --preset wan1.3b DIR   a Wan2.1-T2V-1.3B folder (config.json, DiT F32\n"
    "                         safetensors, umT5-XXL bf16 .pth, VAE .pth,\n"
    "                         tokenizer) and DIR/self_forcing_dmd.pt; 23 GB\n"
    "  --parts LIST           of a preset only: dit,dmd,t5,vae,tokenizer\n"
    "  --preset demo DIR      a tiny model in the same folder layout; 8 MB\n"
    "  --dit FILE | --t5 FILE | --vae FILE | --spiece FILE\n"
    "                         one file; .pt and .pth are torch zips, anything\n"
    "                         else is safetensors\n"
    "  --config FILE          config.json of the transformer\n"
    "  --dtype f32|bf16|f16   (default: as published)\n"
    "  --ema | --generator    wrap the transformer of a .pt as generator_ema\n"
    "                         or generator, keys with 'model.' in front\n"
    "  --seed N\n"
    "  --dim --layers --ffn --heads --freq --text-dim --text-len --channels N\n"
    "  --t5-vocab --t5-dim --t5-heads --t5-head-dim --t5-ffn --t5-layers\n"
    "  --t5-buckets --vae-dim --vae-z N   sizes (default: as published)\n";

typedef struct options {
    ck_dit dit;
    ck_t5 t5;
    int64_t vae_dim, vae_z, seed;
    tt_dtype dtype;                   /* TT_NONE: as published                */
    const char *wrapper;
    const char *preset, *dir, *parts;
    const char *file_dit, *file_t5, *file_vae, *file_spiece, *file_config;
} options;

static bool ends(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* Write a list in the format its name asks for; frees the list. */
static bool write_file(const char *path, ck_list *l, const options *o,
                       tt_dtype published, const char *wrapper)
{
    const tt_dtype type = o->dtype ? o->dtype : published;
    int64_t n = 0;
    for (int64_t i = 0; i < l->n; i++) n += ck_count(&l->spec[i]);
    fprintf(stderr, "%s: %lld tensors, %lld parameters, %s\n", path,
            (long long)l->n, (long long)n, tt_dtype_name(type));
    const bool torch = ends(path, ".pt") || ends(path, ".pth");
    const bool ok =
        torch ? ck_write_torch(path, l, type, (uint64_t)o->seed, wrapper,
                               wrapper ? "model." : "")
              : ck_write_safetensors(path, l, type, (uint64_t)o->seed);
    free(l->spec);
    return ok;
}

static bool write_dit(const char *path, const options *o, const char *wrapper)
{
    ck_list l = {0};
    ck_list_dit(&l, &o->dit);
    return write_file(path, &l, o, TT_F32, wrapper);
}

static bool write_t5(const char *path, const options *o)
{
    ck_list l = {0};
    ck_list_t5(&l, &o->t5);
    return write_file(path, &l, o, TT_BF16, NULL);
}

static bool write_vae(const char *path, const options *o)
{
    ck_list l = {0};
    ck_list_vae(&l, o->vae_dim, o->vae_z);
    return write_file(path, &l, o, TT_F32, NULL);
}

static bool write_config(const char *path, const ck_dit *c)
{
    FILE *f = ck_open(path);
    if (!f) return false;
    fprintf(f, "{\n  \"_class_name\": \"WanModel\",\n  \"dim\": %lld,\n"
            "  \"eps\": 1e-06,\n  \"ffn_dim\": %lld,\n  \"freq_dim\": %lld,\n"
            "  \"in_dim\": %lld,\n  \"model_type\": \"t2v\",\n"
            "  \"num_heads\": %lld,\n  \"num_layers\": %lld,\n"
            "  \"out_dim\": %lld,\n  \"text_len\": %lld", (long long)c->dim,
            (long long)c->ffn, (long long)c->freq, (long long)c->channels,
            (long long)c->heads, (long long)c->layers, (long long)c->channels,
            (long long)c->text_len);
    if (c->text_dim != 4096)          /* the published config leaves it out   */
        fprintf(f, ",\n  \"text_dim\": %lld", (long long)c->text_dim);
    fputs("\n}\n", f);
    return ck_close(f, path);
}

/* ---- presets ------------------------------------------------------------- */

static bool make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    fprintf(stderr, "make_checkpoint: cannot make folder %s: %s\n", path,
            strerror(errno));
    return false;
}

/* The folders that a file's name goes through; NULL: no file is wanted. */
static bool make_folders_of(const char *path)
{
    char part[900];
    if (!path) return true;
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part) {
        fprintf(stderr, "make_checkpoint: %s: the name is too long\n", path);
        return false;
    }
    for (char *c = part + 1; *part && *c; c++) {
        if (*c != '/') continue;
        *c = 0;
        if (!make_folder(part)) return false;
        *c = '/';
    }
    return true;
}

/* "<dir>/<name>" in a buffer of this function, or NULL when `part` was not
 * asked for. */
static const char *part_path(const options *o, const char *part,
                             const char *name)
{
    static char path[900];
    char list[128], want[16];
    snprintf(list, sizeof list, ",%s,", o->parts);
    snprintf(want, sizeof want, ",%s,", part);
    if (strcmp(o->parts, "all") && !strstr(list, want)) return NULL;
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    return path;
}

static bool write_tokenizer(const options *o)
{
    const char *p = part_path(o, "tokenizer", "google");
    if (!p) return true;
    return make_folder(p)
           && make_folder(part_path(o, "tokenizer", "google/umt5-xxl"))
           && ck_write_spiece(part_path(o, "tokenizer",
                                        "google/umt5-xxl/spiece.model")) > 0;
}

static bool preset(options *o)
{
    const bool demo = !strcmp(o->preset, "demo");
    if (!demo && strcmp(o->preset, "wan1.3b")) {
        fprintf(stderr, "make_checkpoint: no preset '%s' (wan1.3b, demo)\n",
                o->preset);
        return false;
    }
    o->dit = demo ? dit_demo : dit_1_3b;
    o->t5 = demo ? umt5_demo : umt5_xxl;
    o->vae_dim = demo ? 12 : 96;
    o->vae_z = 16;
    if (demo && !o->dtype) o->dtype = TT_BF16;
    const char *t5 = demo ? "models_t5_umt5-xxl-enc-bf16.safetensors"
                          : "models_t5_umt5-xxl-enc-bf16.pth";
    const char *vae = demo ? "Wan2.1_VAE.safetensors" : "Wan2.1_VAE.pth";
    const char *p;
    if (!make_folder(o->dir)) return false;
    if ((p = part_path(o, "dit", "config.json")) && !write_config(p, &o->dit))
        return false;
    if ((p = part_path(o, "dit", "diffusion_pytorch_model.safetensors"))
        && !write_dit(p, o, NULL))
        return false;
    if (!demo && (p = part_path(o, "dmd", "self_forcing_dmd.pt"))
        && !write_dit(p, o, "generator_ema"))
        return false;
    if ((p = part_path(o, "vae", vae)) && !write_vae(p, o)) return false;
    if (!write_tokenizer(o)) return false;
    if ((p = part_path(o, "t5", t5)) && !write_t5(p, o)) return false;
    return true;
}

/* ---- options ------------------------------------------------------------- */

/* Sizes by name. */
static int64_t *size_option(options *o, const char *name)
{
    const struct { const char *name; int64_t *at; } table[] = {
        {"--dim", &o->dit.dim}, {"--layers", &o->dit.layers},
        {"--ffn", &o->dit.ffn}, {"--heads", &o->dit.heads},
        {"--freq", &o->dit.freq}, {"--text-dim", &o->dit.text_dim},
        {"--text-len", &o->dit.text_len}, {"--channels", &o->dit.channels},
        {"--t5-vocab", &o->t5.vocab}, {"--t5-dim", &o->t5.dim},
        {"--t5-heads", &o->t5.heads}, {"--t5-head-dim", &o->t5.head_dim},
        {"--t5-ffn", &o->t5.ffn}, {"--t5-layers", &o->t5.layers},
        {"--t5-buckets", &o->t5.buckets}, {"--vae-dim", &o->vae_dim},
        {"--vae-z", &o->vae_z},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name)) return table[i].at;
    return NULL;
}

static const char **text_option(options *o, const char *name)
{
    const struct { const char *name; const char **at; } table[] = {
        {"--dit", &o->file_dit}, {"--t5", &o->file_t5},
        {"--vae", &o->file_vae}, {"--spiece", &o->file_spiece},
        {"--config", &o->file_config}, {"--preset", &o->preset},
        {"--parts", &o->parts},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name)) return table[i].at;
    return NULL;
}

/* Is it an option that takes a value, and this one of its values? */
static bool take(options *o, const char *name, const char *v)
{
    int64_t *size = size_option(o, name);
    const char **text = text_option(o, name);
    if (size) {
        char *end;
        *size = strtoll(v, &end, 10);
        return !*end && *size >= 1 && *size <= 1 << 24;
    }
    if (!strcmp(name, "--dtype")) {
        o->dtype = !strcmp(v, "f32") ? TT_F32 : !strcmp(v, "bf16") ? TT_BF16
                   : !strcmp(v, "f16") ? TT_F16 : TT_NONE;
        return o->dtype != TT_NONE;
    }
    if (text) *text = v;
    else if (!strcmp(name, "--seed")) o->seed = strtoll(v, NULL, 10);
    else return false;
    return true;
}

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--ema")) o->wrapper = "generator_ema";
        else if (!strcmp(a, "--generator")) o->wrapper = "generator";
        else if (*a != '-' && !o->dir) o->dir = a;
        else if (++i == argc || !take(o, a, argv[i])) return false;
    }
    return (o->preset != NULL) == (o->dir != NULL)
           && (o->preset || o->file_dit || o->file_t5 || o->file_vae
               || o->file_spiece || o->file_config);
}

int main(int argc, char **argv)
{
    options o = {.dit = dit_1_3b, .t5 = umt5_xxl, .vae_dim = 96, .vae_z = 16,
                 .seed = 1, .parts = "all"};
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) < 0;
    if (!parse(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    const char *const file[] = {o.file_dit, o.file_t5, o.file_vae,
                                o.file_spiece, o.file_config};
    bool ok = true;
    for (int i = 0; i < 5 && ok; i++) ok = make_folders_of(file[i]);
    if (ok && o.preset) ok = preset(&o);
    if (ok && o.file_config) ok = write_config(o.file_config, &o.dit);
    if (ok && o.file_dit) ok = write_dit(o.file_dit, &o, o.wrapper);
    if (ok && o.file_t5) ok = write_t5(o.file_t5, &o);
    if (ok && o.file_vae) ok = write_vae(o.file_vae, &o);
    if (ok && o.file_spiece) ok = ck_write_spiece(o.file_spiece) > 0;
    return ok ? 0 : 1;
}
