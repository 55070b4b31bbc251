/* tokenizer.c: SentencePiece's unigram model, as umT5 uses it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    google/sentencepiece (normalizer.cc, unigram_model.cc). Hugging Face's tokenizer differs
 *         where a character is unknown or two splits are nearly equal. */
#include "golden.h"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

typedef struct text { const uint8_t *at; size_t n; } text;
typedef struct piece { text text; float score; int type, id; } piece;

struct tokenizer {
    const char *path;
    piece *piece;                /* those that can be in a text, sorted                           */
    int n, ids, unknown, end, byte[256];
    bool bytes, prefix, squeeze, escape;
    float least, most;           /* scores of ordinary pieces                                     */
    size_t longest;
    text map;                    /* the normaliser's table                                        */
};

static uint64_t varint(tokenizer *t, text *m) {
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (!m->n) fail("%s is cut off", t->path);
        const uint8_t b = *m->at++;
        m->n--;
        x |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) return x;
    }
    fail("%s is no SentencePiece model", t->path);
}

/* The next field of a message: its number, and a number or its bytes. */
static bool next_field(tokenizer *t, text *m, int *field, uint64_t *x, text *bytes) {
    if (!m->n) return false;
    const uint64_t key = varint(t, m);
    const int wire = key & 7;
    *field = (int)(key >> 3);
    if (wire == 0 || wire == 2) *x = varint(t, m);
    else if (wire != 1 && wire != 5) fail("%s is no SentencePiece model", t->path);
    *bytes = (text){m->at, wire == 1 ? 8 : wire == 5 ? 4 : wire == 2 ? (size_t)*x : 0};
    if (bytes->n > m->n) fail("%s is cut off", t->path);
    m->at += bytes->n, m->n -= bytes->n;
    return true;
}

static void read_piece(tokenizer *t, text m) {
    piece p = {.type = NORMAL, .id = t->ids++};
    uint64_t x = 0;
    text bytes;
    for (int field; next_field(t, &m, &field, &x, &bytes);) {
        if (field == 1) p.text = bytes;
        const uint32_t bits = bytes.n == 4 ? (uint32_t)little_endian(bytes.at, 4) : 0;
        if (field == 2) memcpy(&p.score, &bits, sizeof bits);
        if (field == 3) p.type = (int)x;
    }
    if (p.type == UNKNOWN) t->unknown = p.id;
    if (p.type == BYTE && p.text.n == 6)         /* <0x41> */
        t->byte[strtol((const char *)p.text.at + 3, NULL, 16) & 255] = p.id;
    if (p.type == NORMAL && p.score < t->least) t->least = p.score;
    if (p.type == NORMAL && p.score > t->most) t->most = p.score;
    if (p.type == NORMAL || p.type == USER_DEFINED || p.type == UNUSED) {
        t->piece[t->n++] = p;
        if (p.text.n > t->longest) t->longest = p.text.n;
    }
}

static void read_specs(tokenizer *t, int message, text m) {
    uint64_t x = 0;
    text bytes;
    for (int field; next_field(t, &m, &field, &x, &bytes);) {
        if (message == 2 && field == 3 && x != 1) fail("%s is no unigram model", t->path);
        if (message == 2 && field == 35) t->bytes = x;
        if (message == 2 && field == 42) t->end = (int)x;
        if (message == 3 && field == 2) t->map = bytes;
        if (message == 3 && field == 3) t->prefix = x;
        if (message == 3 && field == 4) t->squeeze = x;
        if (message == 3 && field == 5) t->escape = x;
    }
}

static int by_text(const void *x, const void *y) {
    const text a = ((const piece *)x)->text, b = ((const piece *)y)->text;
    const int c = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

tokenizer *tokenizer_open(const char *path) {
    size_t size;
    const uint8_t *file = (const uint8_t *)read_file(path, &size);
    tokenizer *t = memory(1, sizeof *t);
    text m = {file, size}, bytes;
    uint64_t x = 0;
    int pieces = 0, field;
    *t = (tokenizer){.path = path, .unknown = -1, .end = 1, .prefix = true, .squeeze = true,
                     .escape = true, .least = FLT_MAX, .most = FLT_MIN};
    while (next_field(t, &m, &field, &x, &bytes)) pieces += field == 1;
    t->piece = memory((size_t)pieces, sizeof *t->piece);
    for (m = (text){file, size}; next_field(t, &m, &field, &x, &bytes);) {
        if (field == 1) read_piece(t, bytes);
        else read_specs(t, field, bytes);
    }
    if (t->unknown < 0) fail("%s: no piece is of the type unknown", path);
    qsort(t->piece, (size_t)t->n, sizeof *t->piece, by_text);
    return t;
}

int tokenizer_end(const tokenizer *t) { return t->end; }

static const piece *find_piece(const tokenizer *t, text s) {
    const piece key = {.text = s};
    return bsearch(&key, t->piece, (size_t)t->n, sizeof key, by_text);
}

int utf8_character(const uint8_t *at, size_t n, uint32_t *c) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t b = at[0];
    const int size = b < 0x80 ? 1 : b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;
    if (size == 0 || (size_t)size > n) return 0;
    *c = size == 1 ? b : b & (0x7fu >> size);
    for (int i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        *c = *c << 6 | (at[i] & 0x3f);
    }
    return *c < least[size] || *c > 0x10ffff || *c >> 11 == 0x1b ? 0 : size;
}

/* Unit i of the table's double array, and where a unit leads to. */
static uint32_t unit(const tokenizer *t, size_t i) {
    return (uint32_t)little_endian(t->map.at + 4 + 4 * i, 4);
}
static uint32_t offset(uint32_t u) { return (u >> 10) << ((u & 0x200) >> 6); }

/* The replacement of the longest entry of the table that begins s, or NULL; *used is its length. A
 * trie as a double array (darts-clone) comes first, then replacements, each ended by a NUL. */
static const char *lookup(const tokenizer *t, text s, size_t *used) {
    if (t->map.n < 8) return NULL;
    const size_t bytes = little_endian(t->map.at, 4), units = bytes / 4;
    const char *found = NULL;
    if (bytes % 4 || 4 + bytes >= t->map.n || !units || t->map.at[t->map.n - 1])
        fail("%s: a damaged table", t->path);
    size_t pos = offset(unit(t, 0));
    for (size_t i = 0; i < s.n; i++) {
        pos ^= s.at[i];
        if (pos >= units || (unit(t, pos) & 0x800000ff) != s.at[i]) break;
        const uint32_t u = unit(t, pos);
        pos ^= offset(u);
        if (!(u & 0x100) || pos >= units) continue;
        const size_t value = unit(t, pos) & 0x7fffffff;
        if (4 + bytes + value >= t->map.n) fail("%s: a damaged table", t->path);
        found = (const char *)t->map.at + 4 + bytes + value;
        *used = i + 1;
    }
    return found;
}

/* The replacement of what begins s: a piece that the user defined stays; then the table; then one
 * character, as it is. */
static text normal_prefix(const tokenizer *t, text s, size_t *used) {
    uint32_t c;
    for (size_t n = t->longest < s.n ? t->longest : s.n; n; n--) {
        const piece *p = find_piece(t, (text){s.at, n});
        if (!p || p->type != USER_DEFINED) continue;
        *used = n;
        return p->text;
    }
    const char *found = lookup(t, s, used);
    if (found) return (text){(const uint8_t *)found, strlen(found)};
    const int size = utf8_character(s.at, s.n, &c);
    *used = size ? (size_t)size : 1;
    return size ? (text){s.at, *used} : (text){(const uint8_t *)"\xef\xbf\xbd", 3};
}

/* A mark at the beginning, blanks as marks, and no blank after another. */
static text normalise(const tokenizer *t, text s) {
    const char *mark = t->escape ? "\xe2\x96\x81" : " ";       /* U+2581 */
    const size_t width = strlen(mark);
    size_t n = 0, used, size = 0;
    uint8_t *out = NULL;
    bool after_blank = t->squeeze, begun = !t->prefix;
    for (text r; s.n; s.at += used, s.n -= used) {
        r = normal_prefix(t, s, &used);
        if (t->squeeze && !n && r.n == 1 && *r.at == ' ') continue;
        if (size < n + 3 * r.n + 4) out = realloc(out, size = 2 * size + 3 * r.n + 64);
        if (!out) fail("no memory for a text");
        if (!begun) memcpy(out, mark, n = width);
        begun = true;
        while (after_blank && r.n && *r.at == ' ') r.at++, r.n--;
        for (size_t i = 0; i < r.n; i++) {
            const bool blank = r.at[i] == ' ';
            memcpy(out + n, blank ? mark : (const char *)r.at + i, blank ? width : 1);
            n += blank ? width : 1;
        }
        if (r.n) after_blank = t->squeeze && r.at[r.n - 1] == ' ';
    }
    while (t->squeeze && n >= width && !memcmp(out + n - width, mark, width)) n -= width;
    return (text){out, n};
}

/* The best way to reach a byte. */
typedef struct node { float score; int id; size_t start; bool reached; } node;

static void offer(node *to, double score, size_t start, int id) {
    if (!to->reached || score > to->score) *to = (node){(float)score, id, start, true};
}

/* Viterbi over bytes. Scores are float and candidates double, as in the library: that decides near
 * ties. An unknown character is float throughout. */
static node *best_path(const tokenizer *t, text s) {
    node *best = memory(s.n + 1, sizeof *best);
    for (size_t i = 0, length; i < s.n; i += length) {
        const uint8_t b = s.at[i];
        const double so_far = best[i].score;
        bool single = false;
        length = b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
        if (length > s.n - i) length = s.n - i;
        for (size_t n = 1; n <= t->longest && n <= s.n - i; n++) {
            const piece *p = find_piece(t, (text){s.at + i, n});
            if (!p || p->type == UNUSED) continue;
            const float longer = (float)n * t->most;
            offer(&best[i + n],
                  (p->type == USER_DEFINED ? longer - 0.1 : (double)p->score) + so_far, i, p->id);
            single = single || n == length;
        }
        const float unknown = (float)((double)t->least - 10), sum = unknown + best[i].score;
        if (!single) offer(&best[i + length], sum, i, t->unknown);
    }
    return best;
}

/* Ids of the pieces, at most `limit`. An unknown character is its bytes; where the model has no
 * bytes, neighbouring unknown ones are one id. */
int tokenize(const tokenizer *t, const char *utf8, size_t size, int *ids, int limit) {
    const text s = normalise(t, (text){(const uint8_t *)utf8, size});
    node *best = best_path(t, s);
    size_t *end = memory(s.n + 1, sizeof *end), pieces = 0;
    int n = 0, before = -1;
    for (size_t at = s.n; at > 0; at = best[at].start) end[pieces++] = at;
    while (pieces-- > 0) {
        const size_t to = end[pieces], from = best[to].start;
        const int id = best[to].id;
        if (id == t->unknown && t->bytes)
            for (size_t i = from; i < to && n < limit; i++) ids[n++] = t->byte[s.at[i]];
        else if ((id != t->unknown || before != id) && n < limit) ids[n++] = id;
        before = id;
    }
    free(best), free(end), free((void *)s.at);
    return n;
}
