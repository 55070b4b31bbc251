# torch_compare.py: PyTorch on this GPU beside the backend cuda.
#
#   python3 tools/gpu/torch_compare.py [CLASS]
#
# SPDX-License-Identifier: Apache-2.0
#
# What a layer of Wan2.1-T2V-1.3B takes in bf16 at 21 cached frames of 832x480.
# Then the bits of unmodified linear and scaled_dot_product_attention at these
# shapes: how many outputs are those of CLASS (sm90), computed by the library
# (TETHER_LIB, tools/python/tether.py) and rounded to bf16; of rows from all over
# the output. One sum shows whose additions torch's product takes.
import os
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

CLASS = sys.argv[1] if len(sys.argv) > 1 else "sm90"
TOKENS, KEYS, DIM, HEADS, FFN = 3 * 1560, 21 * 1560, 1536, 12, 8960
ROWS = 64                       # whose bits are compared


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
    return float(linear(x, w)[0, 0])


linear = torch.nn.functional.linear
attend = torch.nn.functional.scaled_dot_product_attention
torch.manual_seed(1)
x, wide = rand(TOKENS, DIM), rand(TOKENS, FFN)
square, up, down = rand(DIM, DIM), rand(FFN, DIM), rand(DIM, FFN)
q, k = rand(1, HEADS, TOKENS, 128), rand(1, HEADS, KEYS, 128)
v = rand(1, HEADS, KEYS, 128)


def layer():
    """What it gives back no compiler may leave out."""
    y = x
    for _ in range(6):
        y = linear(y, square)
    return y, linear(x, up), linear(wide, down), attend(q, k, v)


def steps(t):
    """bf16 numbers in their order, as integers."""
    i = t.to(torch.bfloat16).view(torch.int16).to(torch.int32)
    return torch.where(i < 0, -32768 - i, i)


def compare(what, got, want):
    """got: bf16 of torch; want: floats of the library."""
    far = (steps(got.cpu()) - steps(torch.from_numpy(want))).abs()
    print("bits, %s: %d of %d outputs are those of class %s, %d are one bf16 "
          "step away, %d more" % (what, int((far == 0).sum()), far.numel(),
                                  CLASS, int((far == 1).sum()),
                                  int((far > 1).sum())), flush=True)


def bits():
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
    import tether
    rows = torch.linspace(0, TOKENS - 1, ROWS).long()

    def ours(f, *tensors):
        return f(*(t.float().cpu().contiguous().numpy() for t in tensors),
                 backend="exact", cls=CLASS)

    for a, w in ((x, square), (x, up), (wide, down)):
        want = ours(tether.linear, a[rows], w)
        shape = "%dx%dx%d" % (TOKENS, w.shape[1], w.shape[0])
        compare("linear " + shape, linear(a, w)[rows], want)
        bias = rand(w.shape[0])
        want = tether.linear(a[rows].float().cpu().numpy(),
                             w.float().cpu().numpy(),
                             bias.float().cpu().numpy(), backend="exact",
                             cls=CLASS)
        compare("with bias " + shape, linear(a, w, bias)[rows], want)
    heads = slice(0, 2)
    want = ours(tether.attention, *(t[0, heads].transpose(0, 1) for t in (
        q[:, :, rows], k, v)))
    got = attend(q, k, v)[0, heads][:, rows].transpose(0, 1)
    compare("attention %dx%d, %d heads of %d" % (TOKENS, KEYS, 2, HEADS), got,
            want)


print("torch %s: linear %dx%dx%d %.3f ms, up %.3f ms, down %.3f ms, attention "
      "%.3f ms, layer %.3f ms" % (
          torch.__version__, TOKENS, DIM, DIM,
          1e3 * seconds(lambda: linear(x, square)),
          1e3 * seconds(lambda: linear(x, up)),
          1e3 * seconds(lambda: linear(wide, down)),
          1e3 * seconds(lambda: attend(q, k, v)), 1e3 * seconds(layer)))
print("2^25 + 15 - 2^25 = %g" % chain(), flush=True)
try:
    bits()
except (ImportError, OSError) as e:
    print("bits: not run: %s" % e)
