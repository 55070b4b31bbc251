/* ck_spiece.c: a small SentencePiece unigram model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A ModelProto as umT5's: <pad>, </s>, <s>, <unk>, 256 byte pieces, then
 * ASCII characters and words with scores. Identity normaliser, so nothing is
 * taken from anyone's tables; text outside ASCII becomes byte pieces. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };
#define W "\xE2\x96\x81"              /* U+2581, stands for a space           */

/* Words of the demo's scenes first, then common English words and endings
 * (without the leading U+2581). More frequent first: the score falls. */
static const char *const words[] = {
    "a", "the", "on", "and", "of", "in", "is", "to", "with", "background",
    "moves", "left", "right", "up", "down", "bounces", "grows", "shrinks",
    "spins", "place", "red", "green", "blue", "yellow", "white", "purple",
    "black", "gray", "striped", "circle", "square", "triangle", "it", "at",
    "by", "from", "as", "an", "for", "that", "this", "into", "over", "through",
    "his", "her", "their", "its", "he", "she", "they", "man", "woman", "cat",
    "dog", "bird", "fish", "horse", "child", "people", "person", "face", "hand",
    "hair", "eyes", "water", "sea", "ocean", "river", "lake", "sky", "sun",
    "moon", "star", "cloud", "rain", "snow", "wind", "fire", "light", "dark",
    "night", "day", "morning", "evening", "sunset", "city", "street", "road",
    "house", "car", "train", "boat", "forest", "tree", "flower", "grass",
    "field", "mountain", "hill", "beach", "garden", "room", "window", "table",
    "slowly", "gently", "softly", "warm", "cold", "bright", "golden", "small",
    "large", "old", "young", "beautiful", "camera", "shot", "close", "wide",
    "view", "scene", "video", "style", "walks", "walking", "runs", "running",
    "sits", "sitting", "stands", "standing", "looks", "looking", "flies",
    "flying", "swims", "swimming", "falls", "falling", "turns", "moving",
    "playing", "behind", "under", "across", "around", "near", "while", "one",
    "two", "three", "time", "world", "colour", "color", "shape", "motion",
};
static const char *const endings[] = {
    "s", "ing", "ed", "er", "ly", "es", "en", "al", "ion", "th", "he", "in",
    "an", "re", "on", "at", "or", "st", "ar", "it", "le", "ou",
};

static void varint(FILE *f, uint64_t x)
{
    for (; x >= 128; x >>= 7) fputc((int)(x & 127) | 128, f);
    fputc((int)x, f);
}

static void piece(FILE *f, int *n, const char *s, float score, int type)
{
    uint32_t bits;
    const size_t len = strlen(s);
    memcpy(&bits, &score, 4);
    fputc(1 << 3 | 2, f);             /* ModelProto.pieces                    */
    varint(f, 2 + len + 5 + (type != NORMAL ? 2 : 0));
    fputc(1 << 3 | 2, f);             /* piece                                */
    varint(f, len);
    fwrite(s, 1, len, f);
    fputc(2 << 3 | 5, f);             /* score                                */
    for (int i = 0; i < 4; i++) fputc((int)(bits >> 8 * i & 255), f);
    if (type != NORMAL) fputc(3 << 3, f), fputc(type, f);
    ++*n;
}

static void message(FILE *f, int field, const void *data, size_t n)
{
    varint(f, (uint64_t)field << 3 | 2);
    varint(f, n);
    fwrite(data, 1, n, f);
}

int ck_write_spiece(const char *path)
{
    FILE *f = ck_open(path);
    if (!f) return 0;
    char s[64];
    int n = 0;
    piece(f, &n, "<pad>", 0, CONTROL);
    piece(f, &n, "</s>", 0, CONTROL);
    piece(f, &n, "<s>", 0, CONTROL);
    piece(f, &n, "<unk>", 0, UNKNOWN);
    for (int b = 0; b < 256; b++) {
        snprintf(s, sizeof s, "<0x%02X>", (unsigned)b);
        piece(f, &n, s, 0, BYTE);
    }
    piece(f, &n, W, -4, NORMAL);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(s, sizeof s, W "%s", words[i]);
        piece(f, &n, s, -5 - 0.02f * (float)i, NORMAL);
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        piece(f, &n, endings[i], -6 - 0.05f * (float)i, NORMAL);
    for (int c = 33; c < 127; c++) {
        s[0] = (char)c;
        s[1] = 0;
        if (c != 's') piece(f, &n, s, -9 - 0.01f * (float)c, NORMAL);
    }
    /* TrainerSpec: unigram, byte_fallback, unk 3, bos 2, eos 1, pad 0 */
    const uint8_t trainer[] = {3 << 3, 1, 0x98, 0x02, 1, 0xC0, 0x02, 3,
                               0xC8, 0x02, 2, 0xD0, 0x02, 1, 0xD8, 0x02, 0};
    message(f, 2, trainer, sizeof trainer);
    /* NormalizerSpec: identity, empty map, all three white space flags on */
    const char normalizer[] = "\x0A\x08identity\x18\x01\x20\x01\x28\x01";
    message(f, 3, normalizer, sizeof normalizer - 1);
    return ck_close(f, path) ? n : 0;
}
