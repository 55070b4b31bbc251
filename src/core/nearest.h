/* nearest.h: which known name a word probably means.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_NEAREST_H
#define TT_CORE_NEAREST_H

/* The name among names[0..n) that is `word` but for a few letters, or begins
 * with it; NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names, int n);

/* The same of a value: also what other projects call it ("fp16" of f16, "gpu"
 * of cuda), and in any case. */
const char *nearest_value(const char *word, const char *const *names, int n);

/* " (did you mean f16?)" to follow the word in a sentence, or "". */
#define NEAREST_HINT 96
const char *nearest_hint(char buf[NEAREST_HINT], const char *word,
                         const char *const *names, int n);
/* The same among the classes of classes.h. */
const char *nearest_class(char buf[NEAREST_HINT], const char *word);

#endif
