/* generate.h: what the parts of `tether generate` share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   generate_names.c     what the files of a video are called
 *   generate_outputs.c   all that is written, and whether it may be
 *   generate_decode.c    its frames, after the latents or during them
 *   generate_say.c       what is said meanwhile
 *   generate_plan.c      what it will take
 *   generate_batch.c     what became of each of several videos
 *   cmd_generate.c       the order of it all
 * What a run is made from, and its latents, are the library's (run.h). */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "cli/ui/options.h"
#include "run/run.h"

/* What is planned where no text was given. */
#define GENERATE_PROMPT                                                        \
    "a red circle moves left and bounces, on a blue background"

/* Its options are the settings of a run. */
const opt_command *generate_command(void);

/* Make the videos of these settings, as `tether generate` does; argv is what
 * records show as the command. The exit status, after its sentence; without
 * one, of a part of another command, where not one tensor was injected. */
enum { GENERATE_IDLE = 5 };
int generate_videos(tt_ctx *ctx, const tt_settings *s, const cli_common *common,
                    int argc, char **argv);

/* Would generate_videos refuse to begin? Reads scenes and the headers of
 * files, checks every rule about settings and writes nothing: for commands
 * that run it several times. 0, or the exit status after its sentence. */
int generate_try(tt_ctx *ctx, const tt_settings *s, const cli_common *common);

/* All names of one video, from the settings; in `mem`.
 *   several   prompts get a video each */
tt_run_files names_make(tt_ctx *ctx, tt_arena *mem, const tt_settings *s,
                        const tt_run_video *video, bool several);
/* FOLDER/NAME in `mem`; NULL without a folder. */
const char *names_in(tt_ctx *ctx, tt_arena *mem, const char *folder,
                     const char *name);

#endif
