/* generate_session.h: one `tether generate` from its settings to its videos.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_GENERATE_SESSION_H
#define CLI_GENERATE_SESSION_H

#include "cli/generate/decode.h"
#include "cli/generate/dump.h"
#include "cli/generate/generate.h"
#include "cli/ui/progress.h"

typedef enum video_state {
    VIDEO_NOT_BEGUN, VIDEO_COMPLETE, VIDEO_THERE, VIDEO_FAILED, VIDEO_STOPPED
} video_state;

typedef struct video_result {
    video_state state;
    double seconds;
    const char *output, *latents; /* NULL: none, or not begun                 */
    const char *why;     /* it failed or was stopped; NULL: neither           */
} video_result;

/* When the frames of a video are made. */
typedef struct decode_turns {
    int64_t video;
    tt_run_files files;
    bool decodes, during;
    tt_vae *vae;
    decoding *decoding;  /* NULL: its time has not come                       */
    int64_t before;      /* chunks that were there                            */
} decode_turns;

typedef struct session {
    tt_ctx *ctx;
    const tt_settings *settings;
    tt_run *run;
    progress progress;
    dump dump;
    inject inject;
    tt_run_facts facts;  /* for records                                       */
    tt_arena mem;        /* names                                             */
    char kept[4400];     /* files that a second signal leaves                */
    decode_turns turns;
    int64_t videos;
    video_result *result; /* [videos]; NULL: the work has not begun           */
    tt_arena result_mem;
    tt_arena made_mem;
    struct made *made;   /* run folders that were not there before            */
} session;

typedef struct made {
    const char *path;
    size_t there;        /* bytes of it that were                             */
    struct made *next;
} made;

/* Names of the files of video i, in s->mem; what is said about it in *v. */
tt_run_files session_names(session *s, int64_t i, tt_run_video *v);
/* Those of them that the decoder makes. */
decode_outputs session_outputs(session *s, const tt_run_files *v);
/* Can everything be written? Makes the run folders. */
tt_status session_check_names(session *s, const tt_run_files *v);
/* May the files that are there be replaced? With --overwrite, or with --resume
 * where the latents, complete or not, are of this very run; s->ctx->overwrite
 * says so from here on. Before the text is encoded latents of any run will do.
 * Errors  TT_EINVAL  they may not: names the first of them */
tt_status session_check_free(session *s, int64_t i, const tt_run_files *v,
                             bool encoded);
/* A run with other latents may have made a video of the same name in these
 * hours, and that stays. */
tt_status session_check_late(session *s, const decode_outputs *o);
/* The video was begun: with --decode during its outputs are opened, and get
 * what is there. */
tt_status session_decode_begin(session *s, int64_t i,
                               const tt_run_files *files);
/* A chunk is done; of the last one the frames come with the end. */
tt_status session_decode_chunk(session *s);
/* The rest of the frames; after a failure the outputs are given up. */
tt_status session_decode_end(session *s);
/* After a failure nothing is left of run folders that stayed empty. */
void session_remove_folders(session *s);

/* The list of what becomes of the videos. */
tt_status session_open_list(session *s);
/* With --resume and several videos: is everything of video i there? */
bool session_is_complete(session *s, int64_t i, const tt_run_files *v);
/* Video i is done, `there`: it was before. Of several videos one that failed is
 * said, and the failure is forgotten so that the next can begin. */
void session_result(session *s, int64_t i, const tt_run_files *v, bool there,
                    double seconds);
/* Are there unfinished latents, of any run? */
bool session_is_begun(session *s, const tt_run_files *v);

/* The table and the summary; a failure when a video failed. */
tt_status session_end_list(session *s);

/* What the run says; what Ctrl-C is answered with; a video that begins. */
tt_run_events session_events(session *s);
void session_stop_words(session *s);
void session_announce(session *s, int64_t i, const tt_run_video *v,
                      const tt_run_files *files);
/* What the run will take: one line, at its first video. */
void session_say_needs(session *s, int64_t i);
/* --plan: a table on the standard output, with times that are measured. */
tt_status session_plan(session *s);
void session_log_start(session *s, const tt_run_video *v,
                       const tt_run_files *files);

#endif
