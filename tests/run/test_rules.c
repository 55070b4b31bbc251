/* test_rules.c: settings that a run refuses, and the lengths that it makes of
 * durations.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  every rule about settings says its sentence, and settings
 *   just inside of it are taken. */
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

#include "run/parts.h"
#include "run/run.h"

static tt_ctx *ctx;

/* "name=value name=value", after a prompt unless it brings its own text; a
 * blank in a value is written as _. */
static tt_settings settings_of(const char *list, bool prompt)
{
    char copy[400];
    tt_settings s = tt_settings_defaults();
    if (prompt) tt_settings_set(ctx, &s, "prompt", "red");
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        if (value) *value++ = 0;
        for (char *c = value; c && *c; c++)
            if (*c == '_') *c = ' ';
        expect_ok(tt_settings_set(ctx, &s, word, value), word);
    }
    return s;
}

static void check_refused(void)
{
    static const struct { const char *list, *words; bool own_text; } row[] = {
        {"", "give one of -p TEXT, --prompt-file FILE", true},
        {"prompt-file=x", "(2 were given)", false},
        {"prompt=_", "-p is empty", true},
        {"scene=a scene-file=x", "give only one of --scene and", true},
        {"scene=a", "bring their own prompts; leave out -p", false},
        {"scene-file=a", "bring their own prompts; leave out -p", false},
        {"seed-rule=odd", "--seed-rule is plain or official, but `odd`", false},
        {"num-samples=0", "--num-samples must be 1 to 1000000", false},
        {"num-samples=1000001", "--num-samples must be 1 to", false},
        {"sample=-1", "--sample must be 0 to 4294967295 with 1 sample", false},
        {"sample=4294967295 num-samples=2", "0 to 4294967294 with 2 samples",
         false},
        {"noise=n num-samples=2", "cannot be used with --num-samples 2", false},
        {"noise=n seed=1", "--seed has no effect with --noise", false},
        {"noise=n seed-rule=plain", "--seed-rule has no effect with", false},
        {"overlap=2 cache=causvid", "--overlap has no effect with one", false},
        {"restart=vae cache=causvid", "--restart has no effect with", false},
        {"cut-rule=readme", "--cut-rule has no effect without --scene", false},
        {"scene-file=x cut-rule=readme", "has no effect without --scene LIST",
         true},
        {"no-decode=yes vae-class=vdp",
         "--vae-class has no effect where nothing", false},
        {"no-decode=yes history-dir=.",
         "--history-dir has no effect where nothing", false},
        {"no-decode=yes vae-class=vdp cache=causvid rollouts=2 restart=latent",
         "--vae-class has no effect where", false},
        {"size=64x64 width=64", "give --size or -W and -H, not both", false},
        {"size=64x64 height=64", "give --size or -W and -H, not both", false},
        {"size=64", "--size needs WIDTHxHEIGHT like 832x480", false},
        {"size=64x64p", "but `64x64p` was given", false},
        {"size=8x64", "8 was given; the nearest is 16", false},
        {"height=20000", "20000 was given; the nearest is 16384", false},
        {"width=39", "39 was given; the nearest is 32", false},
        {"latents=9 frames=9", "give only one of --latents, --frames", false},
        {"latents=0", "the length must be positive", false},
        {"frames=0", "the length must be positive", false},
        {"seconds=0", "the length must be positive", false},
        {"latents=1000001", "the length is impossible", false},
        {"frames=4000001", "the length is impossible", false},
        {"seconds=250001", "the length is impossible", false},
        {"chunk=0", "--chunk must be 1 to 1024, but 0 was given", false},
        {"chunk=1025", "--chunk must be 1 to 1024, but 1025 was", false},
        {"dump-filter=a", "--dump-filter needs --dump FILE", false},
        {"inject-filter=a", "--inject-filter needs --inject FILE", false},
        {"inject=a resume=yes", "--inject and --resume: chunks that", false},
        {"label=a", "--label needs --analyze FOLDER", false},
        {"checkpoint-every=-1", "--checkpoint-every needs a number", false},
        {"image=a initial-video=b", "give only one of --initial-la", false},
        {"initial-latents=a image=b", "give only one of --initial-la", false},
        {"initial-frames=5", "--initial-frames needs --initial-video", false},
        {"initial-video=a initial-frames=0", "a number of frames from 1",
         false},
        {"initial-video=a initial-frames=2147483648", "frames from 1", false},
        {"image=a independent-first-frame=no", "cannot be used with --no-ind",
         false},
        {"rollouts=2 restart=odd", "--restart is vae or latent, but `odd`",
         false},
        {"vae-class=half", "--vae-class half is not known; the classes", false},
        {"scene=a cut-rule=odd", "--cut-rule is official or readme, but", true},
        {"steps=1000,x", "--steps needs up to", false},
        {"steps=500", "one number is the count of steps", false},
        {"steps=101", "one number is the count of steps", false},
        {"steps=2.5", "one number is the count of steps", false},
        {"steps=949,500", "begins near 1000 (950 or more)", false},
        {"steps=1001,500", "begins near 1000 (950 or more)", false},
        {"shift=0", "--shift must be positive, but 0 was given", false},
        {"context-noise=-1", "--context-noise must be 0 to 1000", false},
        {"context-noise=1001", "but 1001 was given", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tt_rollout_options o;
        tt_settings s = settings_of(row[i].list, !row[i].own_text);
        tt_settings_check(ctx, &s, &o);
        expect(ctx->status == TT_EINVAL
               && strstr(tt_message(ctx), row[i].words),
               "`%s` is refused with \"%s\": %s", row[i].list, row[i].words,
               tt_message(ctx));
        tt_clear(ctx);
        tt_settings_free(&s);
    }
}

static void check_taken(void)
{
    static const struct { const char *list; bool own_text; } row[] = {
        {"", false},
        {"embeds=x", true},
        {"scene=a cut-rule=readme", true},
        {"scene-file=x", true},
        {"sample=4294967294 num-samples=2 seed-rule=official", false},
        {"noise=n", false},
        {"noise=n overlap=2 cache=causvid", false},
        {"rollouts=2 overlap=2 restart=latent cache=causvid", false},
        {"size=16x16384", false},
        {"size=64*32", false},
        {"latents=1000000 chunk=1024", false},
        {"seconds=250000", false},
        {"dump=d dump-filter=a inject=i inject-filter=b", false},
        {"label=a analyze=f checkpoint-every=0", false},
        {"image=a", false},
        {"initial-video=a initial-frames=5", false},
        {"context-noise=1000 steps=1000,500 warp=yes shift=0.5", false},
        {"cache=causvid steps=1000,757,522,0", false},
        {"steps=950,500", false},
        {"steps=999", false},
        {"steps=[1000,500]", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tt_rollout_options o;
        tt_settings s = settings_of(row[i].list, !row[i].own_text);
        expect_ok(tt_settings_check(ctx, &s, &o), row[i].list);
        tt_clear(ctx);
        tt_settings_free(&s);
    }
    tt_rollout_options o;
    tt_settings s = settings_of("size=64*32 image=a steps=1000,500", true);
    expect_ok(tt_settings_check(ctx, &s, &o), "a size");
    expect(o.w == 8 && o.h == 4 && o.nsteps == 2, "%lldx%lld, %d steps",
           (long long)o.w, (long long)o.h, o.nsteps);
    expect(o.independent_first_frame, "an image is a chunk of one frame");
    tt_settings_free(&s);
}

/* Lengths, of 4n - 3 video frames without given ones, 4n after them. */
static void check_lengths(void)
{
    static const struct {
        const char *list;
        int64_t given, latents;      /* 0: refused                            */
        const char *words;
    } row[] = {
        {"", 0, 21, NULL},
        {"chunk=4", 0, 24, NULL},
        {"chunk=24", 0, 24, NULL},
        {"chunk=4 independent-first-frame=yes", 0, 21, NULL},
        {"cache=causvid", 0, 21, NULL},
        {"latents=9", 0, 9, NULL},
        {"latents=10", 0, 0, "nearest that are: 9 and 12"},
        {"latents=2", 0, 0, "the nearest that is: 3"},
        {"latents=10 independent-first-frame=yes", 0, 10, NULL},
        {"latents=10 independent-first-frame=yes", 3, 0, "are: 9 and 12"},
        {"frames=33", 0, 9, NULL},
        {"frames=34", 0, 0, "33 (9 latents) and 45 (12 latents)"},
        {"frames=45", 0, 12, NULL},
        {"frames=2", 0, 0, "the nearest that is: 9 (3 latents)"},
        {"frames=36", 3, 9, NULL},
        {"seconds=2", 0, 9, NULL},
        {"seconds=2.7", 0, 12, NULL},
        {"seconds=2.4", 0, 0, "2.0625 (9 latents) and 2.8125 (12 latents)"},
        {"seconds=0.1", 0, 0, "the nearest that is: 0.5625 (3 latents)"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tt_rollout_options o;
        tt_settings s = settings_of(row[i].list, true);
        expect_ok(tt_settings_check(ctx, &s, &o), row[i].list);
        o.latents = 0;               /* as where no noise brings them         */
        o.initial_frames = row[i].given;
        const tt_status status = settings_length(ctx, &s, &o);
        if (row[i].latents)
            expect(!status && o.latents == row[i].latents,
                   "`%s` after %lld is %lld latents: %lld, %s", row[i].list,
                   (long long)row[i].given, (long long)row[i].latents,
                   (long long)o.latents, status ? tt_message(ctx) : "taken");
        else
            expect(status == TT_EINVAL
                   && strstr(tt_message(ctx), row[i].words),
                   "`%s` after %lld is refused: %s", row[i].list,
                   (long long)row[i].given, tt_message(ctx));
        tt_clear(ctx);
        tt_settings_free(&s);
    }
}

int main(void)
{
    ctx = test_begin("run/rules");
    check_refused();
    check_taken();
    check_lengths();
    return test_end();
}
