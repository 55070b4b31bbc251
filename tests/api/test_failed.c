/* test_failed.c: every public function after a failure.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  none: a failed context stays as it is, objects that were never
 *   made are NULL, and nobody crashes. The names come from the headers, so a
 *   new public function fails this test until it stands in a table here.
 * Each call has a process and an empty folder of its own. */
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/folder.h"
#include "tether/machine.h"
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
    /* analyze.h */                                                            \
    MAKES(tt_recorder_open, tt_recorder, c, &made, NULL,                       \
          &(tt_recorder_options){0})                                           \
    MAKES(tt_recording_open, tt_recording, c, &made, "run")                    \
    RUNS(tt_recording_set_label, c, NULL, "label")                             \
    GIVES(tt_analyze, c, NULL, 0, &(tt_analyze_options){0})                    \
    GIVES(tt_analyze_pixels, c, NULL, 0, &(tt_analyze_options){0})             \
    GIVES(tt_analyze_clips, c, "folder", "video.y4m", 0.5)                     \
    GIVES(tt_vbench_layout, c, "folder", NULL, 0)                              \
    GIVES(tt_analyze_folder, c, "folder")                                      \
    GIVES(tt_report_write, c, "page.html", "title", NULL, 0,                   \
          &(tt_analyze_options){0})                                            \
    WANTS(tt_recorder_chunk, NULL, 0, 3, x)                                    \
    RUNS(tt_recorder_shift, NULL, 3)                                           \
    WANTS(tt_recorder_finish, NULL)                                            \
    RUNS(tt_recorder_abort, NULL)                                              \
    RUNS(tt_recording_close, NULL)                                             \
    RUNS(tt_recording_decision, NULL)                                          \
    GIVES(tt_recording_explain, c, stdout, NULL, 0, 0)                         \
    SOME(tt_recording_label, NULL)                                             \
    NONE(tt_recording_prompt, NULL)                                            \
    RUNS(tt_recording_video, NULL)                                             \
    RUNS(tt_recording_set_seconds, NULL, 1.0)                                  \
    /* arena.h */                                                              \
    NONE(tt_alloc, c, &(tt_arena){0}, 3, 8, "numbers")                         \
    NONE(tt_alloc0, c, &(tt_arena){0}, 3, 8, "numbers")                        \
    NONE(tt_strdup, c, &(tt_arena){0}, "text")                                 \
    NONE(tt_scratch, c, 3)                                                     \
    NONE(tt_arena_values, c, &(tt_arena){0})                                   \
    RUNS(tt_arena_free, &(tt_arena){0})                                        \
    /* context.h */                                                            \
    RUNS(tt_warn, c, "nothing is wrong with %s", "this")                       \
    GIVES(tt_check_interrupt, c)                                               \
    RUNS(tt_scope_end, c, tt_scope(c, "scope"))                                \
    RUNS(tt_scope, c, "scope")                                                 \
    RUNS(tt_tap_emit, c, "name", TT_F32, NULL, 2, dim)                         \
    RUNS(tt_tap_show, c, "name", TT_F32, NULL, 2, dim)                         \
    RUNS(tt_tap_values, c, "name", NULL, 2, dim)                               \
    RUNS(tt_profile_add, c, "name", 1.0, 1.0)                                  \
    /* device.h */                                                             \
    NONE(tt_values_in, c, &(tt_arena){0}, 4, "numbers")                        \
    NONE(tt_values0_in, c, &(tt_arena){0}, 4, "numbers")                       \
    NONE(tt_values, c, 4)                                                      \
    NONE(tt_wides, c, 4)                                                       \
    NONE(tt_indices, c, &(tt_arena){0}, 4)                                     \
    NONE(tt_get, c, x, 4)                                                      \
    NONE(tt_get_wides, c, NULL, 4)                                             \
    NONE(tt_get_indices, c, NULL, 4)                                           \
    RUNS(tt_put_wides, c, NULL, NULL, 4)                                       \
    RUNS(tt_put_indices, c, NULL, NULL, 4)                                     \
    RUNS(tt_locate, c, NULL)                                                   \
    RUNS(tt_pick, c, NULL)                                                     \
    NONE(tt_room, c, x, 4)                                                     \
    NONE(tt_send, c, x, 4)                                                     \
    RUNS(tt_place, c, &(tt_arena){0}, &(tt_tensor){0})                         \
    RUNS(tt_put, c, NULL, NULL, 4)                                             \
    RUNS(tt_copy, c, NULL, x, 4)                                               \
    RUNS(tt_narrow, c, NULL, x, 4)                                             \
    RUNS(tt_zero, c, NULL, 4)                                                  \
    RUNS(tt_zero_all, c, NULL, 1, 0, 4)                                        \
    /* dit.h */                                                                \
    MAKES(tt_dit_load, tt_dit, c, &made, NULL, NULL, 0)                        \
    MAKES(tt_dit_random, tt_dit, c, &made, NULL, 1)                            \
    MAKES(tt_prompt_make, tt_prompt, c, &made, NULL, NULL, 4)                  \
    GIVES(tt_dit_forward, c, NULL, NULL, NULL, NULL)                           \
    RUNS(tt_dit_time, c, NULL, NULL, NULL, NULL, NULL, 1)                      \
    RUNS(tt_dit_patch, c, NULL, NULL, NULL, 1, 2, 2)                           \
    RUNS(tt_dit_text, c, NULL, NULL, NULL, 4)                                  \
    RUNS(tt_dit_qkv, c, NULL, 0, NULL, NULL, NULL, NULL, 4)                    \
    RUNS(tt_dit_self_attention, c, NULL, 0, NULL, NULL, NULL)                  \
    RUNS(tt_dit_cross_kv, c, NULL, 0, NULL, NULL, NULL, 4)                     \
    RUNS(tt_dit_cross_attention, c, NULL, 0, NULL, NULL, 4, NULL)              \
    RUNS(tt_dit_block, c, NULL, 0, NULL, NULL, NULL, 1, NULL)                  \
    RUNS(tt_dit_head, c, NULL, NULL, NULL, 4, NULL, 1)                         \
    RUNS(tt_dit_close, NULL)                                                   \
    SOME(tt_dit_get_config, NULL)                                              \
    NONE(tt_dit_weights, NULL)                                                 \
    RUNS(tt_prompt_free, NULL)                                                 \
    /* io.h */                                                                 \
    MAKES(tt_file_open, tt_file, c, &made, "model.safetensors")                \
    NONE(tt_read_real, c, &(tt_arena){0}, NULL)                                \
    NONE(tt_read_double, c, &(tt_arena){0}, NULL)                              \
    MAKES(tt_weights_open, tt_weights, c, &made, "model", TT_MODEL_DIT, NULL)  \
    GIVES(tt_folder_files, c, &(tt_arena){0}, &(char **){NULL}, &(int64_t){0}, \
          "folder")                                                            \
    MAKES(tt_st_create, tt_st_writer, c, &made, "file.safetensors")            \
    GIVES(tt_convert, c, "out.safetensors", "in.safetensors",                  \
          &(tt_convert_options){.kind = -1})                                   \
    GIVES(tt_tensor_digest, c, text, NULL)                                     \
    GIVES(tt_lora_next, c, &(const char *){"a.safetensors"}, &(tt_lora){"", 1})\
    GIVES(tt_file_verify, c, &(tt_verify_report){0}, NULL, NULL, NULL)         \
    GIVES(tt_digest_verify, c, &(tt_verify_report){0}, "file")                 \
    GIVES(tt_weights_check, c, NULL)                                           \
    RUNS(tt_file_close, NULL)                                                  \
    SOME(tt_file_format, NULL)                                                 \
    RUNS(tt_file_count, NULL)                                                  \
    NONE(tt_file_meta, NULL, "class")                                          \
    NONE(tt_file_entry, NULL, 0)                                               \
    NONE(tt_file_find, NULL, "name")                                           \
    RUNS(tt_file_bytes, NULL)                                                  \
    RUNS(tt_weights_close, NULL)                                               \
    SOME(tt_weights_path, NULL)                                                \
    SOME(tt_weights_origin, NULL)                                              \
    NONE(tt_weights_find, NULL, "name")                                        \
    RUNS(tt_weights_count, NULL)                                               \
    SOME(tt_weights_name, NULL, 0)                                             \
    RUNS(tt_weights_release, NULL, NULL)                                       \
    RUNS(tt_weights_large, NULL)                                               \
    RUNS(tt_weights_crowded, NULL)                                             \
    WANTS(tt_st_meta, NULL, "key", "value")                                    \
    WANTS(tt_st_reserve, NULL, 100)                                            \
    WANTS(tt_st_add, NULL, "name", TT_F32, 2, dim, x)                          \
    WANTS(tt_st_open_tensor, NULL, "name", TT_F32, 2, dim)                     \
    WANTS(tt_st_write, NULL, x, 4)                                             \
    WANTS(tt_st_append, NULL, 0, 1, x)                                         \
    WANTS(tt_st_flush, NULL)                                                   \
    RUNS(tt_st_finish, NULL)                                                   \
    RUNS(tt_st_abort, NULL)                                                    \
    RUNS(tt_file_digest, text, NULL)                                           \
    GIVES(tt_manifest_read, c, &(tt_manifest){0}, "file")                      \
    GIVES(tt_manifest_write, c, &(tt_manifest){0}, "file", "# comment\n")      \
    GIVES(tt_manifest_add, c, &(tt_manifest){0}, "f32", "case", "y", "sha")    \
    NONE(tt_manifest_find, &(tt_manifest){0}, "f32", "case", "y")              \
    RUNS(tt_manifest_free, &(tt_manifest){0})                                  \
    /* machine.h */                                                            \
    RUNS(tt_machine_fma, c, 4)                                                 \
    RUNS(tt_machine_vdp, c, 4)                                                 \
    RUNS(tt_machine_amx, c, 4)                                                 \
    RUNS(tt_machine_stream, c, TT_STREAM_COPY, NULL, NULL, 4)                  \
    /* ops.h */                                                                \
    GIVES(tt_ops_use, c, "golden")                                             \
    GIVES(tt_ops_open, c, tt_ops_find("golden"))                               \
    RUNS(tt_ops_close, tt_ops_find("golden"))                                  \
    GIVES(tt_level_check, c)                                                   \
    RUNS(tt_ops_library, c, text, sizeof text)                                 \
    RUNS(tt_class_begin, c, TT_CLASS_F32)                                      \
    RUNS(tt_class_end, c, c->ops)                                              \
    RUNS(tt_linear, c, NULL, NULL, 4, NULL, NULL)                              \
    RUNS(tt_attention, c, NULL)                                                \
    RUNS(tt_conv, c, NULL)                                                     \
    RUNS(tt_layer_norm, c, NULL, NULL, 4, 4, NULL, NULL, 1e-6)                 \
    RUNS(tt_rms_norm, c, NULL, NULL, 4, 4, NULL, 1e-6)                         \
    RUNS(tt_channel_norm, c, NULL, NULL, 4, 4, NULL)                           \
    RUNS(tt_modulate, c, NULL, 4, 4, NULL, NULL, 4, 1)                         \
    RUNS(tt_gate_add, c, NULL, NULL, 4, 4, NULL, 4, 1)                         \
    RUNS(tt_add, c, NULL, NULL, 4)                                             \
    RUNS(tt_mul, c, NULL, NULL, 4)                                             \
    RUNS(tt_gelu_tanh, c, NULL, 4)                                             \
    RUNS(tt_silu, c, NULL, 4)                                                  \
    RUNS(tt_rope, c, NULL, NULL, 1, 1, 4, NULL, NULL)                          \
    RUNS(tt_linear_gelu, c, NULL, NULL, 4, NULL, NULL)                         \
    RUNS(tt_linear_add, c, NULL, NULL)                                         \
    RUNS(tt_norm_modulate, c, NULL, NULL)                                      \
    RUNS(tt_linears, c, NULL, 3)                                               \
    RUNS(tt_mlp, c, NULL, NULL, NULL)                                          \
    RUNS(tt_col_mean, c, NULL, NULL, 4, 4)                                     \
    RUNS(tt_col_moment, c, NULL, NULL, NULL, 4, 4)                             \
    RUNS(tt_col_blend, c, NULL, 4, 4, NULL, NULL, NULL, 0.5)                   \
    GIVES(tt_rope_make, c, &(tt_arena){0}, &(tt_rope_table){0}, 8, 4)          \
    /* outfile.h */                                                            \
    GIVES(tt_out_open, c, &(tt_out){0}, "file")                                \
    GIVES(tt_out_write, c, &(tt_out){0}, x, 4)                                 \
    GIVES(tt_out_finish, c, &(tt_out){0})                                      \
    GIVES(tt_out_reserve, c, &(tt_out){0}, "file")                             \
    NONE(tt_out_target, c, &(tt_arena){0}, "file")                             \
    GIVES(tt_out_check, c, "file")                                             \
    RUNS(tt_out_abort, &(tt_out){0})                                           \
    /* plugin.h */                                                             \
    GIVES(tt_plugin_open, c, &(tt_plugin){0}, "./plugin.so")                   \
    RUNS(tt_plugin_close, &(tt_plugin){0})                                     \
    /* policy.h */                                                             \
    MAKES(tt_cache_open, tt_cache, c, &made, NULL, NULL, NULL)                 \
    MAKES(tt_cache_open_in, tt_cache, c, &made, NULL, NULL, NULL, NULL)        \
    RUNS(tt_cache_reset, c, NULL)                                              \
    WANTS(tt_cache_keep_keys, c, NULL)                                         \
    GIVES(tt_policy_set, c, &(tt_policy_options){0}, "tau", "1")               \
    GIVES(tt_policy_parse, c, &(tt_policy_options){0}, "tether")               \
    GIVES(tt_policy_check, c, &(tt_policy_options){0}, NULL)                   \
    GIVES(tt_policy_apply_preset, c, &(tt_policy_options){0}, "paper")         \
    RUNS(tt_cache_write, c, NULL, 0, NULL, NULL)                               \
    RUNS(tt_cache_read, c, NULL, 0, NULL, &(tt_kv_view){0}, NULL, NULL)        \
    RUNS(tt_cache_done, c, NULL, 0, NULL)                                      \
    RUNS(tt_cache_close, NULL)                                                 \
    NONE(tt_cache_class, NULL)                                                 \
    NONE(tt_cache_options, NULL)                                               \
    NONE(tt_cache_geometry, NULL)                                              \
    NONE(tt_cache_look, NULL, 0)                                               \
    NONE(tt_cache_layer, NULL, 0)                                              \
    NONE(tt_cache_rope, NULL)                                                  \
    RUNS(tt_cache_on_event, NULL, NULL, NULL)                                  \
    RUNS(tt_cache_report, NULL, NULL)                                          \
    RUNS(tt_cache_show, NULL, 0, &(tt_event){0})                               \
    NONE(tt_event_values, NULL, "mass", TT_F64, NULL)                          \
    RUNS(tt_event_int, NULL, "sub")                                            \
    /* rollout.h */                                                            \
    GIVES(tt_schedule_init, c, &(tt_schedule){0}, 5, NULL, 0, true, 0)         \
    GIVES(tt_scenes_parse, c, &(tt_arena){0}, &(tt_scenes){0}, "A | B", 3,     \
          TT_CUT_OFFICIAL)                                                     \
    GIVES(tt_scenes_parse_schedule, c, &(tt_arena){0}, &(tt_scenes){0}, "0 A", \
          "file")                                                              \
    GIVES(tt_rollout_check, c, NULL, NULL)                                     \
    MAKES(tt_rollout_open, tt_rollout, c, &made, NULL, NULL, NULL)             \
    GIVES(tt_rollout_next, c, NULL, &(const tt_real *){NULL}, &(int64_t){0})   \
    GIVES(tt_rollout_save, c, NULL, "state")                                   \
    GIVES(tt_rollout_restore, c, NULL, "state")                                \
    GIVES(tt_rollout_replay, c, NULL, NULL, 3)                                 \
    RUNS(tt_rollout_close, NULL)                                               \
    RUNS(tt_rollout_on_progress, NULL, NULL, NULL)                             \
    RUNS(tt_rollout_bytes, c, NULL, &(tt_rollout_options){0})                  \
    NONE(tt_rollout_cache, NULL)                                               \
    RUNS(tt_rollout_chunks, NULL)                                              \
    RUNS(tt_rollout_chunk_frames, NULL, 0)                                     \
    RUNS(tt_rollout_frames_done, NULL)                                         \
    /* status.h */                                                             \
    GIVES(tt_fail, c, TT_EINVAL, "a later failure")                            \
    /* team.h */                                                               \
    RUNS(tt_team_rank, c)                                                      \
    RUNS(tt_team_size, c)                                                      \
    RUNS(tt_team_rows, c, 4)                                                   \
    RUNS(tt_team_heads, c, 4)                                                  \
    RUNS(tt_team_queries, c, 4, 4, 0)                                          \
    NONE(tt_team_to_heads, c, x, 4, 1, 1)                                      \
    NONE(tt_team_to_rows, c, x, 4, 1, 1)                                       \
    NONE(tt_team_answers_to_rows, c, x, 4, 1, 1)                               \
    NONE(tt_team_all_rows, c, x, 4, 1)                                         \
    RUNS(tt_team_band, c, 4, 1)                                                \
    NONE(tt_team_all_lines, c, x, &(tt_band){.lines = 4}, 1)                   \
    NONE(tt_team_lines_to_first, c, x, &(tt_band){.lines = 4}, 1)              \
    RUNS(tt_team_halo, c, x, &(tt_band){.lines = 4}, 1)                        \
    NONE(tt_team_all_heads, c, x, 4, 1, 4)                                     \
    GIVES(tt_team_broadcast, c, x, 4)                                          \
    GIVES(tt_team_bring_head, c, x, 4, 1, 0)                                   \
    GIVES(tt_team_hand_head, c, x, 4, 1, 0)                                    \
    GIVES(tt_team_gather, c, x, x, 4)                                          \
    RUNS(tt_team_any, c, true)                                                 \
    GIVES(tt_team_follow, c, c)                                                \
    RUNS(tt_team_stands, c)                                                    \
    GIVES(tt_team_measure, c, &(tt_team_time){0})                              \
    RUNS(tt_team_spent, c, 0)                                                  \
    GIVES(tt_team_agree, c)                                                    \
    GIVES(tt_team_compare, c, "the run", "seed 1")                             \
    GIVES(tt_team_open, c)                                                     \
    RUNS(tt_team_tap_rows, c, "name", NULL, 2, dim)                            \
    RUNS(tt_team_tap_heads, c, "name", NULL, 4, 1, 1)                          \
    RUNS(tt_team_close, c)                                                     \
    GIVES(tt_team_share, c, &(double){1}, 1)                                   \
    GIVES(tt_team_threads, c, 2, NULL, NULL)                                   \
    /* text.h */                                                               \
    GIVES(tt_text_clean, c, &(tt_arena){0}, &(char *){NULL}, &(size_t){0},     \
          "text", 4)                                                           \
    MAKES(tt_tokenizer_open, tt_tokenizer, c, &made, "spiece.model")           \
    MAKES(tt_tokenizer_open_bytes, tt_tokenizer, c, &made, bytes, 64, "bytes") \
    GIVES(tt_tokenizer_encode, c, &(tt_arena){0}, &(int64_t *){NULL},          \
          &(int64_t){0}, NULL, "text", 4)                                      \
    GIVES(tt_tokenizer_encode_prompt, c, &(tt_token_row){0}, NULL, "text", 4,  \
          true)                                                                \
    MAKES(tt_umt5_open, tt_umt5, c, &made, "model")                            \
    MAKES(tt_umt5_load, tt_umt5, c, &made, NULL)                               \
    GIVES(tt_umt5_encode, c, NULL, NULL, NULL, &(tt_umt5_input){0})            \
    GIVES(tt_umt5_check_tokenizer, c, NULL, NULL)                              \
    GIVES(tt_prompt_embed, c, NULL, NULL, NULL, "text", 4, 8, NULL)            \
    RUNS(tt_tokenizer_close, NULL)                                             \
    RUNS(tt_tokenizer_size, NULL)                                              \
    RUNS(tt_tokenizer_eos, NULL)                                               \
    RUNS(tt_tokenizer_pad, NULL)                                               \
    NONE(tt_tokenizer_piece, NULL, 0, &(size_t){0})                            \
    RUNS(tt_umt5_close, NULL)                                                  \
    RUNS(tt_umt5_on_progress, NULL, NULL, NULL)                                \
    SOME(tt_umt5_config_of, NULL)                                              \
    /* vae.h */                                                                \
    MAKES(tt_vae_load_parts, tt_vae, c, &made, NULL, TT_VAE_DECODER)           \
    MAKES(tt_vae_load, tt_vae, c, &made, NULL)                                 \
    MAKES(tt_vae_load_tiny, tt_vae, c, &made, NULL)                            \
    MAKES(tt_vae_decoder_open, tt_vae_decoder, c, &made, NULL, 8, 8)           \
    GIVES(tt_vae_decode_next, c, NULL, NULL, NULL, NULL)                       \
    MAKES(tt_vae_encoder_open, tt_vae_encoder, c, &made, NULL, 64, 64)         \
    GIVES(tt_vae_encode_next, c, NULL, NULL, &(bool){false}, NULL)             \
    RUNS(tt_vae_close, NULL)                                                   \
    GIVES(tt_vae_use_class, c, NULL, TT_CLASS_F32)                             \
    RUNS(tt_vae_class, NULL)                                                   \
    GIVES(tt_vae_use_folder, c, NULL, "folder")                                \
    NONE(tt_vae_folder, NULL)                                                  \
    NONE(tt_vae_weights, NULL)                                                 \
    RUNS(tt_vae_z, NULL)                                                       \
    RUNS(tt_vae_dim, NULL)                                                     \
    RUNS(tt_vae_add_stats, NULL, NULL)                                         \
    RUNS(tt_vae_decoder_close, NULL)                                           \
    RUNS(tt_vae_decoder_bytes, NULL, 8, 8)                                     \
    RUNS(tt_vae_history_bytes, NULL, 8, 8)                                     \
    RUNS(tt_vae_decoder_operations, NULL, 8, 8)                                \
    RUNS(tt_vae_width, NULL)                                                   \
    RUNS(tt_vae_decoder_seek, NULL, 1)                                         \
    RUNS(tt_vae_decoder_slot, NULL, 0, (const tt_real *[2]){NULL, NULL},       \
         (int64_t[3]){0})                                                      \
    RUNS(tt_vae_encoder_close, NULL)                                           \
    /* validate.h */                                                           \
    MAKES(tt_report_new, tt_report, c, &made, "title", tt_arith_at(0))         \
    GIVES(tt_report_text, c, NULL, "file", true)                               \
    GIVES(tt_report_json, c, NULL, "file")                                     \
    GIVES(tt_report_junit, c, NULL, "file")                                    \
    GIVES(tt_report_html, c, NULL, "file")                                     \
    GIVES(tt_dump_compare, c, NULL,                                            \
          &(tt_dump_options){.got = "a", .want = "b"})                         \
    GIVES(tt_cases_operators, c, "folder", 1, 1)                               \
    GIVES(tt_cases_inputs, c, "folder", 1, 1, NULL)                            \
    GIVES(tt_dump_cut, c, "out", "dump", (const char *[]){"*", NULL},          \
          &(int64_t){0})                                                       \
    GIVES(tt_digest_operators, c, 1, 1, NULL, NULL)                            \
    GIVES(tt_digest_model, c, &(tt_model_parts){0}, NULL, NULL)                \
    GIVES(tt_opcheck, c, NULL, c->ops, &(tt_opcheck_options){0})               \
    GIVES(tt_opcheck_list, c, &(tt_opcheck_options){0}, NULL, NULL)            \
    GIVES(tt_opbench, c, NULL, c->ops, NULL, 4)                                \
    MAKES(tt_shadow_open, tt_shadow, c, &made, NULL, c->ops, tt_arith_at(0),   \
          false)                                                               \
    RUNS(tt_shadow_close, c, NULL)                                             \
    GIVES(tt_validate_calls, c, NULL, c->ops, tt_arith_at(0),                  \
          &(tt_model_parts){0})                                                \
    GIVES(tt_validate_rollout, c, NULL, c->ops, tt_arith_at(0),                \
          &(tt_model_parts){0}, "state")                                       \
    MAKES(tt_explain_open, tt_explain, c, &made, NULL, NULL, "theirs")         \
    RUNS(tt_explain_ops, NULL)                                                 \
    RUNS(tt_explain_close, NULL, NULL)                                         \
    GIVES(tt_validate_isolated, c, NULL, NULL, NULL, 0)                        \
    RUNS(tt_report_declare, NULL, tt_arith_at(0))                              \
    RUNS(tt_report_closing, NULL)                                              \
    RUNS(tt_report_only, NULL, "path")                                         \
    RUNS(tt_report_cases, NULL, "folder")                                      \
    RUNS(tt_report_watch, NULL, NULL, NULL)                                    \
    RUNS(tt_report_free, NULL)                                                 \
    RUNS(tt_report_add, NULL, &(tt_verdict){0}, NULL, NULL)                    \
    RUNS(tt_report_grow, NULL, &(tt_growth){0})                                \
    RUNS(tt_report_note, NULL, "note")                                         \
    RUNS(tt_report_fact, NULL, "name", "fact")                                 \
    RUNS(tt_report_count, NULL, TT_PASS)                                       \
    RUNS(tt_report_compared, NULL)                                             \
    RUNS(tt_report_equal, NULL, &(int64_t){0})                                 \
    NONE(tt_report_first, NULL)                                                \
    NONE(tt_report_largest, NULL)                                              \
    RUNS(tt_report_passed, NULL)                                               \
    /* run.h */                                                                \
    MAKES(tt_model_open_dit, tt_dit, c, &made, &(tt_model_paths){0}, NULL)     \
    MAKES(tt_model_open_vae, tt_vae, c, &made, &(tt_model_paths){0}, NULL)     \
    MAKES(tt_model_open_vae_part, tt_vae, c, &made, &(tt_model_paths){0},      \
          TT_VAE_DECODER, NULL)                                                \
    GIVES(tt_model_tokenizer, c, text, sizeof text, &(tt_model_paths){0})      \
    GIVES(tt_model_text_encoder, c, &(const char *){NULL},                     \
          &(tt_model_paths){0})                                                \
    GIVES(tt_model_transformer, c, text, sizeof text, &(tt_model_paths){0})    \
    RUNS(tt_model_text_len, c, &(tt_model_paths){0})                           \
    GIVES(tt_model_vae_class, c, &(tt_class){0}, &(tt_model_paths){0})         \
    GIVES(tt_model_size, c, &(int64_t){0}, &(int64_t){0},                      \
          &(tt_model_paths){0})                                                \
    RUNS(tt_model_is_wan, NULL)                                                \
    GIVES(tt_setting_steps, c, (double[TT_MAX_STEPS]){0}, &(int){0}, NULL,     \
          "4")                                                                 \
    GIVES(tt_setting_store, c, tt_settings_find("latents"),                    \
          &(tt_settings){0}, "9")                                              \
    NONE(tt_settings_find, NULL)                                               \
    GIVES(tt_settings_copy, c, &(tt_settings){0}, &(tt_settings){0})           \
    RUNS(tt_settings_free, &(tt_settings){0})                                  \
    GIVES(tt_settings_set, c, &(tt_settings){0}, "latents", "9")               \
    NONE(tt_settings_get, NULL, "latents", text, sizeof text)                  \
    RUNS(tt_settings_was_given, NULL, "latents")                               \
    GIVES(tt_settings_check, c, &(tt_settings){0}, &(tt_rollout_options){0})   \
    MAKES(tt_run_open, tt_run, c, &made, &(tt_settings){0}, NULL)              \
    RUNS(tt_run_close, NULL)                                                   \
    GIVES(tt_run_encode, c, NULL)                                              \
    RUNS(tt_run_videos, NULL)                                                  \
    GIVES(tt_run_video_at, c, NULL, 0, &(tt_run_video){0})                     \
    NONE(tt_run_settings, NULL)                                                \
    NONE(tt_run_rollout, NULL)                                                 \
    NONE(tt_run_dit, NULL)                                                     \
    NONE(tt_run_scenes, NULL)                                                  \
    RUNS(tt_run_prompts, NULL, &(const char *const *){NULL})                   \
    RUNS(tt_run_frames, NULL)                                                  \
    RUNS(tt_run_dropped, NULL)                                                 \
    MAKES(tt_run_open_vae, tt_vae, c, NULL, &made)                             \
    GIVES(tt_run_claim, c, NULL, 0, "latents.safetensors")                     \
    NONE(tt_run_identity, c, NULL, 0, &(tt_arena){0})                          \
    RUNS(tt_run_made, c, NULL, 0, "latents.safetensors")                       \
    NONE(tt_run_difference, c, NULL, 0, "latents.safetensors", &(tt_arena){0}) \
    RUNS(tt_run_made_by_any, NULL)                                             \
    GIVES(tt_run_begin, c, NULL, 0, NULL)                                      \
    GIVES(tt_run_next, c, NULL, &(const tt_host *){NULL}, &(int64_t){0})       \
    GIVES(tt_run_save, c, NULL)                                                \
    RUNS(tt_run_stand, NULL)                                                   \
    GIVES(tt_run_latents, c, NULL, &(tt_tensor){0})                            \
    NONE(tt_run_comment, c, NULL, 0, &(tt_arena){0})                           \
    GIVES(tt_run_record, c, NULL, "run.json", NULL)                            \
    GIVES(tt_encode_measure, c, &(tt_encode_size){0},                          \
          &(tt_encode_input){.path = "video.y4m"})                             \
    GIVES(tt_encode_run, c, NULL, NULL,                                        \
          &(tt_encode_input){.path = "video.y4m"}, &(tt_encode_size){0},       \
          NULL, NULL)                                                          \
    /* plan.h */                                                               \
    GIVES(tt_run_plan, c, NULL, &(tt_needs){0})                                \
    GIVES(tt_run_time, c, NULL, &(tt_needs){0})                                \
    GIVES(tt_memory_left, c, (int64_t[1]){0}, (const char *[1]){NULL})         \
    /* video.h */                                                              \
    GIVES(tt_rgb_resize, c, NULL, 4, 4, NULL, 2, 2)                            \
    GIVES(tt_png_write, c, "picture.png", bytes, 4, 4)                         \
    GIVES(tt_png_write_text, c, "picture.png", bytes, 4, 4, "text")            \
    GIVES(tt_png_encode, c, &(tt_arena){0}, &(uint8_t *){NULL},                \
          &(size_t){0}, bytes, 4, 4)                                           \
    GIVES(tt_video_check, c, "video.y4m", &(tt_video_format){.fps = 16})       \
    MAKES(tt_video_open, tt_video, c, &made, "video.y4m",                      \
          &(tt_video_format){.fps = 16})                                       \
    GIVES(tt_picture_read, c, &(tt_arena){0}, &(uint8_t *){NULL},              \
          &(int64_t){0}, &(int64_t){0}, "picture.png")                         \
    MAKES(tt_video_in_open, tt_video_in, c, &made, "video.y4m")                \
    MAKES(tt_sheet_open, tt_sheet, c, &made, "sheet.png", 64, 64, 9)           \
    WANTS(tt_video_frame, NULL, bytes)                                         \
    WANTS(tt_video_finish, NULL)                                               \
    RUNS(tt_video_abort, NULL)                                                 \
    RUNS(tt_video_in_width, NULL)                                              \
    RUNS(tt_video_in_height, NULL)                                             \
    WANTS(tt_video_in_frame, NULL, bytes, &(bool){false})                      \
    RUNS(tt_video_in_close, NULL)                                              \
    RUNS(tt_sheet_comment, NULL, "text")                                       \
    WANTS(tt_sheet_frame, NULL, bytes)                                         \
    WANTS(tt_sheet_finish, NULL)                                               \
    RUNS(tt_sheet_abort, NULL)

/* Not called above, and why. */
static const char *const apart[] = {
    /* begin, end or read the failure itself */
    "tt_ctx_init", "tt_ctx_free", "tt_clear", "tt_message", "tt_assert_failed",
    /* the four calls of one object; all in bindings() below */
    "tt_bind_begin", "tt_bind_tensor", "tt_bind_real", "tt_bind_end",
    /* says what a file is, or false */
    "tt_lora_describe",
    /* neither context nor object: arithmetic on what they are given */
    "tt_arena_here", "tt_arena_reset", "tt_now", "tt_dit_unpatch", "tt_gather",
    "tt_sha256_init", "tt_sha256_add", "tt_sha256_hex", "tt_exp", "tt_log",
    "tt_tanh", "tt_pow", "tt_sincos", "tt_sincos_turn", "tt_expf", "tt_tanhf",
    "tt_checked_size", "tt_checked_mul", "tt_checked_add", "tt_tensor_count",
    "tt_tensor_bytes", "tt_tensor_make", "tt_tensor_stored", "tt_tensor_like",
    "tt_tensor_reshape", "tt_tensor_packed", "tt_tensor_in_place",
    "tt_host_little_endian", "tt_swap_stored", "tt_shape_string", "tt_widen",
    "tt_widen_f32", "tt_widen_at", "tt_widen_at_f32", "tt_bf16_from_f32",
    "tt_f16_from_f32", "tt_f32_from_bf16", "tt_f32_from_f16",
    "tt_f32_from_f8e4m3", "tt_f32_from_f8e5m2", "tt_schedule_table",
    "tt_schedule_warp", "tt_schedule_index", "tt_flow_to_x0", "tt_add_noise",
    "tt_noise_frame", "tt_umt5_bucket", "tt_format_round", "tt_format_epsilon",
    "tt_metrics_measure", "tt_verdict_judge", "tt_verdict_bits",
    "tt_shape_fits",
    "tt_rgb8_from_real", "tt_yuv_from_rgb", "tt_rgb_from_yuv",
    "tt_real_from_rgb8", "tt_preview_layout", "tt_latent_preview",
    /* the same: tables, names and defaults of this build */
    "tt_dtype_size", "tt_dtype_block", "tt_dtype_is_real", "tt_dtype_name",
    "tt_tensor_is_real", "tt_folder_snapshot",
    "tt_dtype_from_name", "tt_ops_find", "tt_ops_default", "tt_ops_at",
    "tt_values_view",
    "tt_threads_sleep", "tt_cores_find", "tt_cores_reason",
    "tt_ops_class", "tt_class_name", "tt_class_find", "tt_class_at",
    "tt_class_saved", "tt_manifest_class", "tt_class_names", "tt_policy_find",
    "tt_policy_at", "tt_policy_defaults", "tt_policy_start",
    "tt_policy_class_of", "tt_policy_knob", "tt_policy_get", "tt_policy_put",
    "tt_policy_show", "tt_policy_describe", "tt_rollout_defaults",
    "tt_rollout_use_schedule", "tt_arith_at", "tt_arith_allow",
    "tt_arith_find", "tt_arith_ops",
    "tt_arith_bits", "tt_arith_hint", "tt_arith_names", "tt_outcome_name",
    "tt_tap_operators",
    "tt_region_name",
    "tt_analyze_defaults", "tt_vbench_stem", "tt_analyze_folder_there",
    "tt_fpenv_get", "tt_fpenv_set", "tt_fpenv_begin", "tt_fpenv_begin_all",
    "tt_fpenv_flushes", "tt_fpenv_text",
    "tt_analyze_folder_remove", "tt_pattern_name", "tt_version",
    "tt_settings_table", "tt_settings_defaults", "tt_setting_show",
    "tt_setting_reals", "tt_peak_memory", "tt_determinism", "tt_bits_name",
    "tt_git_revision", "tt_real_name", "tt_compiler", "tt_cpu_features",
    /* a policy's helpers and the size of a cache: called by tt_cache_* with a
     * cache that was made */
    "tt_layer_move", "tt_layer_roll", "tt_layer_put", "tt_layer_valid",
    "tt_cache_bytes",
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

static bool bindings(tt_ctx *c)
{
    tt_bind b;
    tt_arena arena = {0};
    tt_bind_begin(&b, c, NULL, &arena, "model");
    const tt_tensor t = tt_bind_tensor(&b, "weight", 2, dim);
    const tt_real *v = tt_bind_real(&b, "bias", 1, dim);
    return !t.data && !v && tt_bind_end(&b, NULL) == c->status;
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
    expect(count > 300, "%d functions were found", count);
}

int main(void)
{
    test_begin("api/failed");
    if (folder_make()) {
        check_names();
        for (size_t i = 0; i < NCALLS; i++)
            try_alone(calls[i].name, calls[i].call);
        try_alone("tt_bind_begin, _tensor, _real, _end", bindings);
        folder_remove();
    }
    return test_end();
}
