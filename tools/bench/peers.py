"""peers.py: a block of Wan2.1-T2V-1.3B in PyTorch, zentorch or OpenVINO, for
compare.py.

    python3 peers.py SIDE TOKENS KEYS THREADS

SPDX-License-Identifier: Apache-2.0

SIDE is torch, compile, zentorch or openvino, then -f32 or -bf16. Says "skip"
and why where a package is missing, else "ready" and a version; then answers as
`bench_chunk --serve 1` does: "layer", or "linear ROWS W N". Weights are random.

The peers have the easier problem: keys are rotated and cached, and so are those
of the text; no patches, no head, no policy of a cache. The keys and values of
the chunk replace the last ones in place. OpenVINO joins them to the others."""
import os
import sys
import time

DIM, HEADS, FFN, TEXT, EPS = 1536, 12, 8960, 512, 1e-6


def skip(why):
    print("skip", " ".join(str(why).split())[:200], flush=True)
    sys.exit(0)


if len(sys.argv) != 5:
    sys.exit("usage: peers.py SIDE TOKENS KEYS THREADS")
runtime, kind = sys.argv[1].split("-")
tokens, keys, threads = map(int, sys.argv[2:])
os.environ["OMP_NUM_THREADS"] = str(threads)
try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    version = "torch " + torch.__version__
    if runtime == "zentorch":
        import zentorch
        version += ", zentorch " + zentorch.__version__
    elif runtime == "openvino":
        import openvino
        version += ", openvino " + openvino.__version__
except (ImportError, OSError) as missing:
    skip(missing)
torch.set_num_threads(threads)
torch.manual_seed(1)


class Block(nn.Module):
    """The causal block, for one chunk. x is [tokens, DIM]; keys and values are
    [1, HEADS, n, DIM / HEADS]."""

    def __init__(self, join):
        super().__init__()
        self.join = join
        for name in ("q", "k", "v", "o", "text_q", "text_o"):
            setattr(self, name, nn.Linear(DIM, DIM))
        self.ffn0, self.ffn2 = nn.Linear(DIM, FFN), nn.Linear(FFN, DIM)
        for name in ("norm_q", "norm_k", "norm_text"):
            setattr(self, name, nn.RMSNorm(DIM, EPS))
        self.norm = nn.LayerNorm(DIM, EPS, elementwise_affine=False)
        self.norm3 = nn.LayerNorm(DIM, EPS)
        self.register_buffer("time", 0.1 * torch.randn(6, DIM))
        angle = torch.rand(tokens, 1, DIM // HEADS // 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def heads(self, x):
        return x.view(-1, HEADS, DIM // HEADS).transpose(0, 1).unsqueeze(0)

    def rotate(self, x):
        a, b = x.view(tokens, HEADS, -1, 2).unbind(-1)
        return torch.stack((a * self.cos - b * self.sin,
                            a * self.sin + b * self.cos), -1).flatten(1)

    def attend(self, q, k, v):
        y = F.scaled_dot_product_attention(self.heads(q), k, v)
        return y.squeeze(0).transpose(0, 1).flatten(1)

    def forward(self, x, keys, values, text_keys, text_values):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.time.unbind(0)
        a = self.norm(x) * (1 + scale1) + shift1
        q = self.rotate(self.norm_q(self.q(a)))
        k = self.heads(self.rotate(self.norm_k(self.k(a))))
        v = self.heads(self.v(a))
        if self.join:
            keys = torch.cat((keys[:, :, :-tokens], k), 2)
            values = torch.cat((values[:, :, :-tokens], v), 2)
        else:
            keys[:, :, -tokens:] = k
            values[:, :, -tokens:] = v
        x = x + self.o(self.attend(q, keys, values)) * gate1
        q = self.norm_text(self.text_q(self.norm3(x)))
        x = x + self.text_o(self.attend(q, text_keys, text_values))
        a = self.norm(x) * (1 + scale2) + shift2
        a = F.gelu(self.ffn0(a), approximate="tanh")
        return x + self.ffn2(a) * gate2


def through_openvino(module, inputs):
    """OpenVINO keeps float32 outside and chooses the type inside."""
    core = openvino.Core()
    model = openvino.convert_model(module, example_input=inputs,
                                   input=[i.shape for i in inputs])
    net = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": kind})
    request = net.create_infer_request()
    for i, x in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(x.numpy(),
                                                    shared_memory=True))

    def run():
        return request.infer(), inputs   # which it does not keep alive
    return run


def ready(module, inputs):
    """What runs it once. Two runs find memory and compile."""
    if runtime == "openvino":
        run = through_openvino(module, inputs)
    else:
        if runtime != "torch":
            module = torch.compile(module, dynamic=False, backend={
                "compile": "inductor"}.get(runtime, runtime))

        def run():
            return module(*inputs)
    run()
    run()
    return run


def timed(run, n):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(n):
        run()
    print("%.9f %.9f" % ((time.perf_counter() - wall) / n,
                         (time.process_time() - cpu) / n), flush=True)


def serve():
    dtype = torch.bfloat16 if (kind == "bf16" and runtime != "openvino"
                               ) else torch.float32
    if runtime != "torch":
        import torch._inductor.config as options
        options.freezing = True          # weights are packed once

    def random(*shape):
        return torch.randn(*shape, dtype=dtype)

    def cached(n):
        return random(1, HEADS, n, DIM // HEADS)

    block = Block(runtime == "openvino").eval().to(dtype)
    layer = ready(block, (random(tokens, DIM), cached(keys), cached(keys),
                          cached(TEXT), cached(TEXT)))
    products = {}
    print("ready", version, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "layer":
            timed(layer, 1)
            continue
        rows, name, n = int(words[1]), words[2], int(words[3])
        if (rows, name) not in products:
            part = getattr(block, name)
            products[rows, name] = ready(part,
                                         (random(rows, part.in_features),))
        products[rows, name]()
        timed(products[rows, name], n)


with torch.inference_mode() if runtime != "openvino" else torch.no_grad():
    try:
        serve()
    except (RuntimeError, NotImplementedError) as failed:
        skip(failed)
