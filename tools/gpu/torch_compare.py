# torch_compare.py: PyTorch on this GPU beside the backend cuda.
#
#   python3 torch_compare.py
#
# SPDX-License-Identifier: Apache-2.0
#
# Times what a compiled layer of Wan2.1-T2V-1.3B takes in bf16 at 21 cached
# frames of 832x480: linear layers and fused attention of a chunk. One sum shows
# whose additions torch's bf16 product takes. The last line has it all.
import sys
import time

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(3)
if not torch.cuda.is_available():
    print("torch finds no GPU")
    sys.exit(3)

TOKENS, KEYS, DIM, HEADS, FFN = 3 * 1560, 21 * 1560, 1536, 12, 8960


def rand(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def seconds(work):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    best = 1e30
    for _ in range(10):
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def chain():
    """2^25 + 15 * 1 in the first 16 products, -2^25 in the next: 12 where 25
    bits of a step are kept and the sum is cut to 24 (class sm90), 0 where 24
    are kept (sm80) or every addition rounds, 15 where nothing is lost."""
    x = torch.zeros(128, 32, device="cuda", dtype=torch.bfloat16)
    w = torch.zeros(128, 32, device="cuda", dtype=torch.bfloat16)
    x[:, :16], w[:, :16] = 1, 1
    x[:, 0], x[:, 16] = 2.0 ** 12, -2.0 ** 12
    w[:, 0], w[:, 16] = 2.0 ** 13, 2.0 ** 13
    return float(torch.nn.functional.linear(x, w)[0, 0])


x, wide = rand(TOKENS, DIM), rand(TOKENS, FFN)
square, up, down = rand(DIM, DIM), rand(FFN, DIM), rand(DIM, FFN)
q, k = rand(1, HEADS, TOKENS, 128), rand(1, HEADS, KEYS, 128)
v = rand(1, HEADS, KEYS, 128)
linear = torch.nn.functional.linear
attend = torch.nn.functional.scaled_dot_product_attention


def layer():
    """What it gives back no compiler may leave out."""
    y = x
    for _ in range(6):
        y = linear(y, square)
    return y, linear(x, up), linear(wide, down), attend(q, k, v)


compiled = torch.compile(layer)
print("torch %s: linear %dx%dx%d %.3f ms, attention %.3f ms, layer %.3f ms, "
      "compiled %.3f ms; 2^25 + 15 - 2^25 = %g" % (
          torch.__version__, TOKENS, DIM, DIM,
          1e3 * seconds(lambda: linear(x, square)),
          1e3 * seconds(lambda: attend(q, k, v)), 1e3 * seconds(layer),
          1e3 * seconds(compiled), chain()))
