"""picture.py FOLDER: one picture of 32x32 as i.ppm and i.png.

SPDX-License-Identifier: Apache-2.0
"""
import struct
import sys
import zlib

N = 32
rgb = bytes((5 * x + 3 * y + 60 * c) % 256
            for y in range(N) for x in range(N) for c in range(3))
rows = b"".join(b"\0" + rgb[3 * N * y:3 * N * (y + 1)] for y in range(N))


def chunk(name, data):
    return (struct.pack(">I", len(data)) + name + data
            + struct.pack(">I", zlib.crc32(name + data)))


with open(sys.argv[1] + "/i.ppm", "wb") as f:
    f.write(b"P6\n%d %d\n255\n" % (N, N) + rgb)
with open(sys.argv[1] + "/i.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", N, N, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
