/* fuzz_pickle.c: the pickle machine, with a small zip file around the
 * bytes: entries a/data.pkl and the storages 0 to 3 of 64 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { STORAGES = 4, STORAGE_BYTES = 64 };

typedef struct zip {
    uint8_t *p;
    size_t n, directory, count;
    uint8_t central[8 * 64];
} zip;

static void put(uint8_t *p, int bytes, size_t v)
{
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static void add(zip *z, const char *name, const uint8_t *data, size_t n)
{
    size_t len = strlen(name);
    uint8_t *h = z->p + z->n, *c = z->central + z->directory;
    memset(h, 0, 30);
    memset(c, 0, 46);
    put(h, 4, 0x04034b50u);
    put(h + 26, 2, len);
    memcpy(h + 30, name, len);
    if (n > 0) memcpy(h + 30 + len, data, n);
    put(c, 4, 0x02014b50u);
    put(c + 20, 4, n);
    put(c + 24, 4, n);
    put(c + 28, 2, len);
    put(c + 42, 4, z->n);
    memcpy(c + 46, name, len);
    z->n += 30 + len + n;
    z->directory += 46 + len;
    z->count++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const name[STORAGES] = {"a/data/0", "a/data/1",
                                               "a/data/2", "a/data/3"};
    uint8_t storage[STORAGE_BYTES];
    zip z = {.p = malloc(size + 2048)};
    if (!z.p) return 0;
    memset(storage, 0x3c, sizeof storage);
    add(&z, "a/data.pkl", data, size);
    for (int i = 0; i < STORAGES; i++)
        add(&z, name[i], storage, sizeof storage);
    size_t at = z.n;
    memcpy(z.p + z.n, z.central, z.directory);
    z.n += z.directory;
    uint8_t *e = z.p + z.n;
    memset(e, 0, 22);
    put(e, 4, 0x06054b50u);
    put(e + 8, 2, z.count);
    put(e + 10, 2, z.count);
    put(e + 12, 4, z.directory);
    put(e + 16, 4, at);
    fuzz_checkpoint(z.p, z.n + 22, "fuzz.pt");
    free(z.p);
    return 0;
}
