/* foreign.c: see foreign.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   Rows are read from above: the first whose option the command has, or
 *         that needs none, answers. A command's own table (options.h) is asked
 *         before. */
#include "cli/ui/foreign.h"

#include <string.h>

#define DISTILLED "not needed: the model is distilled, and runs without "      \
                  "guidance and without a negative prompt"
#define ONE_SAMPLER "there is one sampler, that of Self-Forcing; --steps and " \
                    "--shift set its schedule"
#define SPARES "not needed: weights stay in their files, and parts of the "    \
               "model are in memory one after the other; --kv-dir and "        \
               "--history-dir save more"
#define STORED "weights are read in the type they are stored in (`tether "     \
               "convert --dtype` makes another file), and --class says how "   \
               "products are computed"
#define ONE_WAY "not needed: what kernels there are is a matter of --backend"

static const struct { const char *names, *use, *words; } rows[] = {
    /* length and size */
    {" num-frames video-frames n-frames nframes frame-num frames-num num-frame "
     "frame-count video-length length total-frames num-video-frames "
     "video-total-frames max-frames ", "frames",
     "which counts video frames: 1 + 4 (latents - 1)"},
    {" num-output-frames num-latents num-latent-frames latent-frames "
     "num-latent latent-length num-frames-latent ", "latents", NULL},
    {" duration video-seconds length-seconds video-duration secs ", "seconds",
     NULL},
    {" resolution video-size image-size frame-size sample-size ", "size",
     "as in 832x480"},
    {" video-width image-width w ", "width", NULL},
    {" video-height image-height h ", "height", NULL},
    /* the model */
    {" ckpt-dir model-dir model-path model-id model-name model-folder "
     "model-name-or-path pretrained-model-name-or-path pretrained-model-path "
     "pretrained-path base-model base-model-path checkpoint-dir wan-dir "
     "wan-model-dir wan-path dir local-dir repo-id repo models-path ", "model",
     NULL},
    {" checkpoint-path ckpt ckpt-path ckpt-name generator-ckpt generator-path "
     "checkpoint-file causal-checkpoint dit-checkpoint ", "checkpoint", NULL},
    {" diffusion-model dit-path dit-model transformer transformer-path "
     "transformer-model unet unet-path model-file gguf "
     "dit-file ", "dit", NULL},
    {" t5xxl t5 t5-path t5-model t5-file t5-checkpoint umt5 umt5-path "
     "text-encoder-path text-encoder-model text-encoder-dir llm ",
     "text-encoder", NULL},
    {" clip clip-l clip-g clip-path clip-vision clip-vision-h clip-model "
     "clip-skip image-encoder ", NULL,
     "not needed: the text encoder is umT5 alone (--text-encoder FILE)"},
    {" vae-path vae-model vae-file vae-checkpoint vae-dir ", "vae", NULL},
    {" taesd taehv tae tiny-autoencoder taew taew2-1 preview-vae ", "tiny-vae",
     NULL},
    {" tokenizer-path tokenizer-model tokenizer-file spiece spm ", "tokenizer",
     NULL},
    {" use-ema ema-weights load-ema ", "ema", NULL},
    {" no-use-ema raw-weights ", NULL, "use --no-ema"},
    {" config config-path config-file config-name yaml ", NULL,
     "sizes are read from the config.json of the weights, and settings are "
     "options"},
    {" version ", NULL, "`tether --version` prints it"},
    {" task mode model-type pipeline causal ", NULL,
     "not needed: Wan2.1's text-to-video transformer is what runs; --image "
     "FILE gives the first frame"},
    {" i2v img2vid image-to-video ", "image", NULL},
    {" loras lora-path lora-weight lora-weights lora-file lora-model "
     "lora-checkpoint lora-ckpt adapter adapter-path ", "lora", NULL},
    {" lora-scale lora-strength lora-alpha lora-multiplier ", "lora",
     "whose strength follows the name of the file"},
    {" lora-dir lora-model-dir ", "lora", "which takes one file"},
    {" high-noise-steps high-noise-cfg-scale high-noise-sampling-method "
     "high-noise-scheduler high-noise-checkpoint low-noise-checkpoint "
     "high-noise-diffusion-model transformer-2 moe-boundary boundary "
     "boundary-ratio ", NULL,
     "there is one transformer, without a second expert (--dit FILE)"},
    {" control-net controlnet control-image control-video control-strength "
     "vace vace-strength src-mask mask canny photo-maker pm-id-images "
     "ip-adapter ", NULL, "there is no control model: Wan2.1's text-to-video "
     "transformer is what runs"},
    /* text */
    {" text positive-prompt prompt-text positive ", "prompt", NULL},
    {" prompts prompt-path prompt-list prompts-file prompts-path data-path "
     "txt-file input-file ", "prompt-file", NULL},
    {" extended-prompt-path extended-prompt extended-prompts ",
     "extended-prompt-file", NULL},
    {" negative-prompt neg-prompt n-prompt negative negative-prompts "
     "sample-neg-prompt uncond-prompt neg ", NULL, DISTILLED},
    {" cfg cfg-scale guidance guidance-scale sample-guide-scale guide-scale "
     "guidance-scale-2 true-cfg-scale cfg-weight text-guidance-scale "
     "img-cfg-scale embedded-cfg-scale guidance-rescale cfg-rescale "
     "embedded-guidance-scale classifier-free-guidance "
     "distilled-guidance slg-scale slg skip-layers apg do-cfg ", NULL,
     DISTILLED},
    {" use-prompt-extend prompt-extend-method prompt-extend-model "
     "prompt-extend-target-lang prompt-extend prompt-enhance enhance-prompt "
     "prompt-upsampling upsample-prompt rewrite ", NULL,
     "prompts are taken as they are given; extend them elsewhere"},
    {" embeddings prompt-embeds text-embeds embeds-file text-embeddings ",
     "embeds", NULL},
    {" max-sequence-length max-length text-len ", NULL,
     "not needed: text_len of config.json says how many tokens are read, 512 "
     "in Wan"},
    /* sampler */
    {" num-inference-steps sample-steps sampling-steps infer-steps "
     "inference-steps num-steps n-steps num-sampling-steps denoising-steps "
     "denoising-step-list denoise-steps sampler-steps step sigmas timesteps ",
     "steps", NULL},
    {" flow-shift sample-shift timestep-shift time-shift shift-scale "
     "discrete-flow-shift sigma-shift flow-matching-shift ", "shift", NULL},
    {" warp-denoising-step ", "warp", NULL},
    {" num-frame-per-block num-frames-per-block frames-per-block block-size "
     "chunk-size num-frames-per-chunk frame-per-block chunk-frames ", "chunk",
     NULL},
    {" scheduler scheduler-type sampler sampler-name sampling-method "
     "sample-method sample-solver solver eta schedule noise-schedule "
     "prediction ", NULL,
     ONE_SAMPLER},
    {" strength denoise denoising-strength noise-strength ", NULL,
     "a video is made from noise alone; --image and --initial-video give "
     "frames to go on from"},
    {" random-seed base-seed noise-seed manual-seed generator-seed rng-seed "
     "generator rand-seed ", "seed", NULL},
    {" rng ", NULL, "the noise is that of a generator of its own, the same on "
     "every machine; --noise FILE brings another one"},
    {" num-videos num-videos-per-prompt num-images-per-prompt batch-count "
     "batch-size batch num-samples-per-prompt samples n-samples n-iter "
     "num-outputs ", "num-samples", NULL},
    {" init-img init-image input-image image-path start-image first-frame "
     "first-frame-image ref-image reference-image img image-start "
     "src-ref-images ", "image", NULL},
    {" init-img init-image input-image image-path image img input-path "
     "input-video video-path video ", "input", NULL},
    {" init-video input-video video-path video source-video src-video ",
     "initial-video",
     NULL},
    {" last-image end-img end-image last-frame image-end ", NULL,
     "a last frame cannot be given: chunks are made one after the other"},
    {" latents-path latent-path latents-file ", "initial-latents", NULL},
    {" latents-path latent-path latents-file ", "latents", NULL},
    {" cache-backend cache-policy kv-cache policy cache-mode kv-policy "
     "cache-type ", "cache", NULL},
    {" local-attn-size kv-cache-size cache-size window window-size kv-window "
     "attention-window attn-window max-attention-size ", "budget", NULL},
    {" sink-size sinks num-sink num-sinks sink-frames sink-tokens ", "sink",
     NULL},
    {" recent-size recent-frames num-recent ", "recent", NULL},
    {" memory-size memory-frames num-memory ", "memory", NULL},
    /* memory and machine */
    {" low-memory lowvram low-vram medvram offload-model offload cpu-offload "
     "enable-model-cpu-offload enable-sequential-cpu-offload offload-to-cpu "
     "offload-folder vae-tiling vae-slicing enable-vae-tiling vae-tile-size "
     "vae-tile-overlap tile-size tiled vae-on-cpu clip-on-cpu t5-cpu "
     "control-net-cpu save-memory gradient-checkpointing ctx-size mlock mmap "
     "no-mmap free-memory teacache easycache cache-threshold highvram "
     "normalvram novram sequential-cpu-offload sequential-offload "
     "group-offload vram-limit max-vram ", NULL, SPARES},
    {" attention attn attn-mode attn-impl attention-backend flash-attn fa "
     "flash-attention diffusion-fa use-flash-attn use-flash-attention sdpa "
     "xformers xformers-memory-efficient-attention sage sage-attn sageattn "
     "sage-attention diffusion-conv-direct vae-conv-direct compile "
     "torch-compile cudnn-benchmark use-compile tf32 allow-tf32 ", NULL,
     ONE_WAY},
    {" device devices gpu gpus gpu-id gpu-ids use-gpu use-cuda cuda "
     "cuda-device cuda-devices device-id n-gpu-layers gpu-layers ngl "
     "accelerator device-map mps metal vulkan rocm ", "backend",
     "cuda on a GPU where it is built in (`tether --version`), exact on the "
     "CPU"},
    {" cpu use-cpu no-cuda no-gpu force-cpu ", NULL,
     "not needed: the CPU is what computes unless --backend says otherwise"},
    {" precision torch-dtype data-type weight-type weight-dtype type "
     "output-type out-type to quant quantize quantization outtype ", "dtype",
     NULL},
    {" dtype precision torch-dtype data-type compute-dtype weight-type type "
     "fp16 bf16 fp32 half float16 bfloat16 float32 mixed-precision ", "arith",
     NULL},
    {" dtype precision torch-dtype data-type weight-type weight-dtype type "
     "compute-dtype fp16 bf16 fp32 fp8 half float16 bfloat16 float32 quant "
     "quantize quantization t5-fp8 use-fp8 load-in-8bit load-in-4bit "
     "mixed-precision no-half force-type convert-model-dtype ", NULL, STORED},
    {" n-threads num-threads cpu-threads nthreads thread num-workers jobs "
     "threads-batch ", "threads", NULL},
    {" num-gpus n-gpus world-size nproc nproc-per-node ulysses-size ring-size "
     "ulysses-degree ring-degree sp-size tp-size dit-fsdp t5-fsdp fsdp "
     "tensor-parallel tensor-parallel-size master-port master-addr local-rank "
     "rank nnodes node-rank ", NULL,
     "ranks are started by `mpirun -n N tether generate ...`, where MPI is "
     "built in"},
    /* output */
    {" output-path output-file out out-file outfile out-path save-file "
     "save-path save-to output-video output-name filename result-path output "
     "export save ", "output", NULL},
    {" output-folder output-dir outdir out-dir save-dir results-dir result-dir "
     "output-directory ", "output",
     "which names the video itself; with --vbench-name it is a folder"},
    {" frame-rate video-fps save-fps output-fps export-fps framerate "
     "frames-per-second ", "fps", NULL},
    {" fps frame-rate video-fps save-fps output-fps export-fps framerate "
     "frames-per-second ", NULL,
     "16 frames a second is what the model makes; `tether decode --fps` "
     "writes another rate"},
    {" format output-format container codec output-type video-format ext ",
     NULL, "the ending of -o says the format: .mp4 .mov .webm .mkv .gif "
     ".apng .y4m or frames/%05d.png"},
    {" crf quality bitrate video-quality ", NULL,
     "-o video.y4m keeps every bit, for an encoder of your choice"},
    {" save-latents output-latents latent-out latents-output dump-latents ",
     "latents-out", NULL},
    {" save-with-index ", NULL, "of several videos each has a name of its own; "
     "--vbench-name calls them by their prompts"},
    {" skip-decode latents-only no-vae ", "no-decode", NULL},
    {" log-level loglevel debug verbosity log ", "verbose", NULL},
    {" silent no-progress no-progress-bar ", "quiet", NULL},
    {" force yes replace overwrite-output ", "overwrite", NULL},
    {" resume-from continue resume-from-checkpoint restart-from ", "resume",
     NULL},
    {" upscale upscaler upscale-model esrgan interpolate rife ", NULL,
     "frames are written as the VAE makes them"},
    {" model-path input input-path file path dir model-dir ckpt ", NULL,
     "the file or folder is given without an option: `tether COMMAND FILE`"},
    {" dry-run estimate memory-estimate ", "plan", NULL},
};

/* Is " name " in the list? */
static bool has_word(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)) != NULL; p++)
        if (p > list && p[-1] == ' ' && p[n] == ' ') return n > 0;
    return false;
}

/* "enable-x" is x, where nothing is called so. */
static const char *without_verb(const char *name)
{
    static const char *const verbs[] = {"enable-", "use-", "with-", "do-",
                                        "disable-"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const size_t n = strlen(verbs[i]);
        if (!strncmp(name, verbs[i], n)) return name + n;
    }
    return NULL;
}

bool foreign_find(foreign_answer *out, const char *name,
                  bool (*has)(const void *user, const char *name),
                  const void *user)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!has_word(rows[i].names, name)) continue;
        if (rows[i].use && !has(user, rows[i].use)) continue;
        *out = (foreign_answer){rows[i].use, rows[i].words};
        return true;
    }
    name = without_verb(name);
    return name && foreign_find(out, name, has, user);
}

const char *foreign_letter(char letter)
{
    static const struct { char letter; const char *name; } letters[] = {
        {'S', "random-seed"}, {'d', "model-dir"}, {'g', "guidance"},
        {'n', "negative-prompt"}, {'M', "task"}, {'b', "batch-count"},
        {'i', "init-img"}, {'r', "ref-image"}, {'f', "prompts-file"},
        {'z', "tokenizer-path"}, {'e', "ckpt"}, {'c', "ckpt"},
        {'N', "num-frames"}, {'y', "yes"}, {'x', "data-type"},
        {'F', "num-frames"},
    };
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == letter) return letters[i].name;
    return NULL;
}
