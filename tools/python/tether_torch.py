"""Record a run of a PyTorch module under tether's names, and have it judged.

SPDX-License-Identifier: Apache-2.0

    import tether
    with tether.watch(pipe.transformer, names="diffusers") as seen:
        pipe(...)
    print(seen.report(["-m", "FOLDER", "-p", PROMPT, ...], arith="bf16-stored"))

Forward hooks keep what modules give and take; names are those of `tether
generate --dump` (src/validate/names.md). The words of
report() make the same run here; `tether validate --dump` judges.

MAPS says which module of which class has which name. A map of your own:
{class name: [Rule, ...]}, or {module path: dump name} for single tensors."""
import collections
import fnmatch
import functools
import os
import re
import sys
import tempfile

import numpy as np
import torch

import tether

# ---- forms: a module's tensor, without its batch, and the dump's ----------------


def _rows(t):
    return t


def _rows_back(t, like):
    return t.reshape(like.shape)


def _latent(t):                 # [C, F, h, w] -> [F, C, h, w]
    return t.transpose(0, 1)


def _latent_back(t, like):
    return t.transpose(0, 1)


def _grid(t):                   # [dim, F, h, w] -> [T, dim]
    return t.flatten(1).t()


def _grid_back(t, like):
    return t.t().reshape(like.shape)


def _times(t):                  # one entry where all are equal
    t = t.reshape(-1, t.shape[-1])
    return t[:1] if len(t) > 1 and bool((t == t[:1]).all()) else t


def _times_back(t, like):
    flat = t.reshape(-1, like.shape[-1]) if t.ndim > 1 else t
    return flat.expand(like.reshape(-1, like.shape[-1]).shape).reshape(
        like.shape)


FORMS = {"rows": (_rows, _rows_back), "latent": (_latent, _latent_back),
         "grid": (_grid, _grid_back), "times": (_times, _times_back),
         "six": (lambda t: _times(t).unflatten(-1, (6, -1)),
                 lambda t, like: _times_back(t.flatten(-2), like)),
         "frames": None, "valid": None}

# module   regular expression of its path below the watched class
# point    "out", "in" (the first argument), or the name of an argument
# name     groups of the expression are {0}, {1}; {pass} is chunk.N/step.N,
#          {frame} a latent frame of the VAE, {t} a frame of its output
# form     frames: [c, t, h, w] gives t tensors [h, w, c]; valid: only the rows
#          of the prompt
# once     of the first pass alone
Rule = collections.namedtuple("Rule", "module point name form once",
                              defaults=("rows", False))


def _transformer(names):
    """The transformer's tensors; names: module paths of one family."""
    n = names
    block, out = r"blocks\.(\d+)\.", "out"
    rules = [
        Rule("", n["x"], "{pass}/x", "latent"),
        Rule(n["text"], out, "context", "rows", True),
        Rule(n["e"], out, "{pass}/e", "times"),
        Rule(n["e0"], out, "{pass}/e0", "six"),
        Rule("patch_embedding", out, "{pass}/tokens", "grid")]
    for kind, where in (("self_attn", n["self"]), ("cross_attn", n["cross"])):
        once = kind == "cross_attn"
        at = "block.{0}/" + kind
        rules += [
            Rule(block + where + r"\.norm_q", out, "{pass}/" + at + ".q"),
            Rule(block + where + r"\.norm_k", out,
                 at + ".k" if once else "{pass}/" + at + ".k", "rows", once),
            Rule(block + where + r"\." + n["v"], out,
                 at + ".v" if once else "{pass}/" + at + ".v", "rows", once),
            Rule(block + where, out, "{pass}/" + at)]
    return rules + [
        Rule(block + "ffn", out, "{pass}/block.{0}/ffn"),
        Rule(r"blocks\.(\d+)", out, "{pass}/block.{0}/out"),
        Rule(n["head"], out, "{pass}/head"),
        Rule("", out, "{pass}/flow", "latent")]


def _autoencoder(names):
    """Decoder and encoder of the VAE. Layers are numbered in their order."""
    rules = [Rule(names["conv2"], "in", "vae/frame.{frame}/denorm", "frames"),
             Rule(names["conv2"], "out", "vae/frame.{frame}/conv2", "frames"),
             Rule(r"decoder\." + names["first"], "out",
                  "vae/frame.{frame}/conv1", "frames"),
             Rule("decoder", "out", "vae/frame.{frame}/rgb/t.{t}", "frames"),
             Rule(r"encoder\." + names["first"], "out",
                  "vae_encoder/frame.{frame}/conv1/t.{t}", "frames"),
             Rule("encoder", "out", "vae_encoder/frame.{frame}/head",
                  "frames")]
    for side, scope in (("decoder", "vae"), ("encoder", "vae_encoder")):
        rules += [Rule(side + r"\." + path, "out",
                       f"{scope}/frame.{{frame}}/middle.{i}", "frames")
                  for i, path in enumerate(names["middle"])]
    rules += [Rule(r"decoder\." + path, "out", "vae/frame.{frame}/up."
                   + name, "frames") for path, name in names["up"]]
    return rules + [Rule(r"encoder\." + names["down"], "out",
                         "vae_encoder/frame.{frame}/down.{0}/t.{t}",
                         "frames")]


def _text(names):
    rows = [Rule(path, "out", "text/" + name, "valid")
            for path, name in zip(names, (
                "block.{0}.attn", "block.{0}.ffn", "block.{0}", "context"))]
    return rows


def _numbered(i):
    return str(i) if i < 3 else f"{i}/t.{{t}}"


_DIFFUSERS_UP = [(rf"up_blocks\.{i}\." + (
    rf"resnets\.{j}" if j < 3 else r"upsamplers\.0"), _numbered(4 * i + j))
    for i in range(4) for j in range(4)]

_WAN_TRANSFORMER = _transformer({
    "x": "x", "text": "text_embedding", "e": "time_embedding",
    "e0": "time_projection", "self": "self_attn", "cross": "cross_attn",
    "v": "v", "head": "head"})

MAPS = {
    "diffusers": {
        "WanTransformer3DModel": _transformer({
            "x": "hidden_states",
            "text": r"condition_embedder\.text_embedder",
            "e": r"condition_embedder\.time_embedder",
            "e0": r"condition_embedder\.time_proj", "self": "attn1",
            "cross": "attn2", "v": "to_v", "head": "proj_out"}),
        "AutoencoderKLWan": _autoencoder({
            "conv2": "post_quant_conv", "first": "conv_in",
            "middle": [r"mid_block\.resnets\.0", r"mid_block\.attentions\.0",
                       r"mid_block\.resnets\.1"],
            "up": _DIFFUSERS_UP, "down": r"down_blocks\.(\d+)"}),
        "UMT5EncoderModel": _text([
            r"encoder\.block\.(\d+)\.layer\.0\.SelfAttention",
            r"encoder\.block\.(\d+)\.layer\.1\.DenseReluDense",
            r"encoder\.block\.(\d+)", r"encoder\.final_layer_norm"])},
    "wan": {
        "WanModel": _WAN_TRANSFORMER,
        "CausalWanModel": _WAN_TRANSFORMER,
        "WanVAE_": _autoencoder({
            "conv2": "conv2", "first": "conv1",
            "middle": [rf"middle\.{i}" for i in range(3)],
            "up": [(rf"upsamples\.{i}", _numbered(i)) for i in range(15)],
            "down": r"downsamples\.(\d+)"}),
        "T5Encoder": _text([r"blocks\.(\d+)\.attn", r"blocks\.(\d+)\.ffn",
                            r"blocks\.(\d+)", "norm"])},
}


# ---- watching -------------------------------------------------------------------

def _argument(args, kwargs, point):
    """(container, key) of an argument by name; the first one else."""
    if point in kwargs:
        return kwargs, point
    return (args, 0) if args else (None, None)


def _value(x):
    """The tensor of what a module gave."""
    if isinstance(x, tuple):
        x = x[0]
    for member in ("sample", "last_hidden_state"):
        x = getattr(x, member, x)
    return x


class Watch:
    """Hooks of a module, a pipeline or several modules: .tensors has what was
    seen, in order.

    names   "diffusers", "wan", or a map of your own
    passes  calls of the transformer that make a chunk, the last one with the
            clean latents among them; None: all are of chunk 0
    every   of so many calls the first is kept (2: with classifier-free
            guidance in calls of their own); batch: which of a batch
    operators   also keep operands and results of single operators of
            diffusers' modules, for judge()
    feed    {name: array} or a dump of ours: what the transformer or a module of
            it gave is replaced by it after it was recorded (teacher forcing)
            where the name matches `fed`, by default what enters the
            transformer"""

    def __init__(self, module, names="diffusers", passes=None, every=1,
                 batch=0, feed=None, fed="*/x", operators=False):
        self.tensors = {}
        self.passes, self.every, self.batch = passes, every, batch
        self.feed = tether.load(feed) if isinstance(
            feed, (str, os.PathLike)) else dict(feed or {})
        self.fed = fed
        self.calls = collections.Counter()
        self.frame = {}             # next latent frame of decoder, encoder
        self.valid = None           # rows of the prompt
        self.hooks = []
        self.operators = Operators(batch) if operators else None
        self.roots = list(self._roots(module, names))
        if not self.roots:
            raise tether.Error(
                f"{type(module).__name__} has no module of the map "
                f"{names if isinstance(names, str) else 'given'}: "
                + ", ".join(MAPS.get(names, names) if isinstance(names, str)
                            else map(str, names)))

    def _roots(self, module, names):
        """(module, rules) for every module whose class has a map."""
        if isinstance(names, str) and names not in MAPS:
            raise tether.Error(f'no map is called "{names}"; there are '
                               + ", ".join(MAPS))
        classes = MAPS[names] if isinstance(names, str) else names
        if classes and all(isinstance(v, str) for v in classes.values()):
            yield module, [Rule(re.escape(k), "out", v)
                           for k, v in classes.items()]
            return
        parts = module if isinstance(module, (dict, list, tuple)) \
            else getattr(module, "components", [module])
        for top in parts.values() if isinstance(parts, dict) else parts:
            if isinstance(top, torch.nn.Module):
                for m in top.modules():
                    # a copy with a fault may be a subclass
                    for c in type(m).__mro__:
                        if c.__name__ in classes:
                            yield m, classes[c.__name__]
                            break

    def __enter__(self):
        for root, rules in self.roots:
            self.hooks.append(root.register_forward_pre_hook(
                self._begin(), with_kwargs=True))
            found = {path: m for path, m in root.named_modules()}
            for rule in rules:
                for path, m in found.items():
                    match = re.fullmatch(rule.module, path)
                    if match:
                        self._hook(m, root, rule, match.groups())
            for side in ("decoder", "encoder"):
                part = found.get(side)
                if part is not None:
                    self.hooks.append(part.register_forward_hook(
                        self._next_frame(part)))
            self._restarts(root)
            if self.operators:
                self.hooks += self.operators.hook(root)
        return self

    def __exit__(self, *_):
        for h in self.hooks:
            h.remove()
        self.hooks = []

    def _restarts(self, root):
        """A VAE that clears its caches begins with frame 0."""
        clear = getattr(root, "clear_cache", None)
        if clear is None:
            return

        def clear_cache():
            self.frame.clear()
            if self.operators:
                self.operators.history.clear()
            clear()
        root.clear_cache = clear_cache
        self.hooks.append(_Undo(lambda: root.__dict__.pop("clear_cache")))

    def _begin(self):
        def begin(module, args, kwargs):
            self.calls[module] += 1
            mask = kwargs.get("attention_mask", kwargs.get("mask"))
            if mask is None and len(args) > 1 and torch.is_tensor(args[1]):
                mask = args[1]
            if torch.is_tensor(mask) and mask.ndim == 2:
                self.valid = int((mask[self.batch] > 0).sum())
        return begin

    def _next_frame(self, part):
        def advance(*_):
            self.frame[part] = self.frame.get(part, 0) + 1
        return advance

    def _hook(self, module, root, rule, groups):
        part = next((m for path, m in root.named_modules()
                     if path == rule.module.split("\\.")[0]
                     and path in ("decoder", "encoder")), None)

        def see(container, key, value, returned):
            # a VAE is not called itself: its decode is
            call = max(self.calls[root] - 1, 0)
            if call % self.every or (rule.once and call):
                return returned
            k = call // self.every
            chunk, step = divmod(k, self.passes) if self.passes else (0, k)
            return self._seen(rule, value, {
                "pass": f"chunk.{chunk}/step.{step}",
                "frame": self.frame.get(part, 0), "part": part}, groups,
                container, key, returned)

        def out(_, args, kwargs, output):
            return see(None, None, _value(output), output)

        def into(_, args, kwargs):
            args = list(args)
            holder, key = _argument(args, kwargs, rule.point)
            if holder is None:
                return None
            see(holder, key, holder[key], None)
            return tuple(args), kwargs
        self.hooks.append(
            module.register_forward_hook(out, with_kwargs=True)
            if rule.point == "out"
            else module.register_forward_pre_hook(into, with_kwargs=True))

    def _seen(self, rule, value, place, groups, container, key, returned):
        one = value[self.batch]
        if rule.form == "frames":
            for t, x in enumerate(one.permute(1, 2, 3, 0)):
                frame = place["frame"] if place["part"] is not None else t
                self._keep(rule.name.format(*groups, frame=frame, t=t), x)
            return returned
        name = rule.name.format(*groups, **place)
        if rule.form == "valid":
            self._keep(name, one[None, :self.valid])
            return returned
        there, back = FORMS[rule.form]
        self._keep(name, there(one))
        golden = self.feed.get(name)
        if golden is None or not fnmatch.fnmatchcase(name, self.fed):
            return returned
        golden = back(torch.from_numpy(np.array(golden, np.float32)),
                      one).to(one)
        with torch.no_grad():
            if container is None:
                one.copy_(golden.reshape(one.shape))
            else:                   # the caller's tensor stays as it is
                fresh = list(value) if isinstance(value, list) \
                    else value.clone()
                fresh[self.batch] = golden.reshape(one.shape)
                container[key] = fresh
        return returned

    def _keep(self, name, x):
        if name not in self.tensors:
            self.tensors[name] = x.detach().to(
                "cpu", torch.float32).contiguous().numpy().copy()

    def save(self, path):
        """The tensors as a dump for `tether validate --dump`."""
        if not self.tensors:
            raise tether.Error("nothing was recorded: no watched module ran")
        tether.save(path, self.tensors)

    def report(self, words, arith="f32", options=(), against=None,
               partial=True):
        """`tether validate --dump` of what was seen; words: those of `tether
        generate` for the same run, inputs aside, which are injected."""
        with tempfile.TemporaryDirectory() as folder:
            dump = os.path.join(folder, "theirs.safetensors")
            self.save(dump)
            return tether.validate(dump, words, *options, arith=arith,
                                   against=against, partial=partial)


    def judge(self, arith="f32"):
        """(where, report) of every single operator that was kept, in order:
        their result against what golden makes of their operands."""
        if not self.operators:
            raise tether.Error("watch was not asked to keep operators")
        for where, op, result, given, others in self.operators.calls:
            r = tether.judge(op, result, arith=arith, **given)
            for what, other in others() if not r else ():
                if tether.judge(op, result, arith=arith,
                                **{**given, **other}):
                    # what the operands alone do not tell the library
                    r["headline"] = f"FAIL: {op}: {what}"
                    r.first["hint"] = what
                    r.text = r["headline"] + "\n" + r.text
                    break
            yield where, r


def _none():
    return ()


def _other_splits(given):
    """The pairs of a head divided between the axes in other ways."""
    c = given["x"].shape[-1] // 2
    places = np.arange(int(given["pos"].max()) + 1)[:, None]
    for b in range(c // 2 + 1):
        pairs = (c - 2 * b, b, b)
        theta = np.concatenate([10000.0 ** (-np.arange(n) / max(n, 1))
                                for n in pairs])
        if b != c // 3:
            yield (f"pairs are split {c - 2 * b}, {b}, {b} between frame, row "
                   f"and column, {c - 2 * (c // 3)}, {c // 3}, {c // 3} belong",
                   {"cos": np.cos(places * theta),
                    "sin": np.sin(places * theta), "pairs": pairs})


def _other_frames(given, older):
    """The frames before the newest taken from elsewhere in the past."""
    *before, newest = given["frames"]
    for what, frames in (
            ("are one frame too old", [older, *before[:-1]]),
            ("are missing", [None] * len(before)),
            ("stand in the reverse order", before[::-1]),
            ("are the newest one", [newest] * len(before))):
        if before:
            yield f"the cached frames {what}", {"frames": [*frames, newest]}


class Operators:
    """Single operators inside diffusers' blocks: the two modulations, the
    rotation, attention, and the convolutions of the VAE. Of the first pass of
    the transformer, and of the first and last frame of every call of a
    convolution, whose older frames are those that it was given before."""

    def __init__(self, batch):
        self.batch, self.calls = batch, []
        self.seen, self.history = set(), collections.defaultdict(list)
        self.state = {}

    def array(self, t):
        return t[self.batch].detach().to("cpu", torch.float32).numpy().copy()

    def hook(self, root):
        hooks = []
        for path, m in root.named_modules():
            names = [c.__name__ for c in type(m).__mro__]
            if "WanTransformerBlock" in names:
                hooks += self.block(path, m)
            if "WanCausalConv3d" in names and m.stride[0] == 1 \
                    and "time_conv" not in path:
                hooks.append(m.register_forward_hook(self.conv(path)))
        if hasattr(root, "patch_embedding"):
            hooks.append(root.patch_embedding.register_forward_hook(
                self.grid))
            hooks.append(self.attention(root))
        return hooks

    def grid(self, _, args, tokens):
        F, h, w = tokens.shape[2:]
        self.state["pos"] = np.stack(np.meshgrid(
            *map(np.arange, (F, h, w)), indexing="ij"), -1).reshape(-1, 3)

    def block(self, path, block):
        s = {}

        def begin(_, args, kwargs):
            names = ("hidden_states", "encoder_hidden_states", "temb")
            given = dict(zip(names, args), **kwargs)
            s["first"] = path not in self.seen and given["temb"].ndim == 3
            self.seen.add(path)
            self.state.pop("q", None), self.state.pop("k", None)
            if s["first"]:
                table = block.scale_shift_table + given["temb"].float()
                s["e"] = self.array(table)
                s["norm1"] = self.array(given["hidden_states"])

        def modulated(norm, scale, what):
            def see(_, args):
                self.state["at"] = f"{path}.{what}" if s["first"] else None
                if s["first"]:
                    x = tether.layer_norm(s[norm],
                                          eps=getattr(block, norm).eps)
                    self.calls.append((
                        f"{path}.{what}", "modulate", self.array(args[0]),
                        {"x": x, "scale": s["e"][scale:scale + 1],
                         "shift": s["e"][scale - 1:scale]}, _none))
            return see

        def keep(name, of_output=False):
            def see(_, args, output=None):
                if s["first"]:
                    s[name] = self.array(output if of_output else args[0])
                    self.state[name] = s[name]
            return see

        def cross(*_):
            self.state["at"] = None
        return [
            block.register_forward_pre_hook(begin, with_kwargs=True),
            block.attn1.register_forward_pre_hook(
                modulated("norm1", 1, "attn1")),
            block.attn1.norm_q.register_forward_hook(keep("q", True)),
            block.attn1.norm_k.register_forward_hook(keep("k", True)),
            block.attn2.register_forward_pre_hook(cross),
            block.norm3.register_forward_pre_hook(keep("norm3")),
            block.ffn.register_forward_pre_hook(modulated("norm3", 4, "ffn"))]

    def attention(self, root):
        """Between the rotation and the output projection is no module: the
        function that they call there is looked at."""
        module = sys.modules[type(root.blocks[0]).__module__]
        right = module.dispatch_attention_fn

        def look(query, key, value, *args, **kwargs):
            out = right(query, key, value, *args, **kwargs)
            at = self.state.get("at")
            if at:
                if not {"q", "k"} <= self.state.keys():
                    raise tether.Error(
                        f"{at}: its processor calls neither norm_q nor norm_k, "
                        "so what it rotates was not seen; leave operators=True "
                        "out, or take diffusers' own processor")
                q, k, v = (self.array(t) for t in (query, key, value))
                for name, turned in (("q", q), ("k", k)):
                    given = {"x": self.state[name].reshape(turned.shape),
                             "pos": self.state["pos"]}
                    self.calls.append((f"{at}.{name}", "rope", turned, given,
                                       functools.partial(_other_splits,
                                                         given)))
                self.calls.append((at, "attention", self.array(out),
                                   {"q": q, "k": k, "v": v}, _none))
            return out
        module.dispatch_attention_fn = look
        return _Undo(lambda: setattr(module, "dispatch_attention_fn", right))

    def conv(self, path):
        def see(m, args, output):
            past = self.history[path]
            first = len(past)
            past += list(self.array(args[0]).transpose(1, 2, 3, 0))
            y = self.array(output).transpose(1, 2, 3, 0)
            w = m.weight.detach().float().cpu().numpy()
            kt, kh, kw = w.shape[2:]
            for t in sorted({0, len(y) - 1}):
                older, *frames = [
                    past[i] if i >= 0 else None
                    for i in range(first + t - kt, first + t + 1)]
                given = {"frames": frames, "w": w.transpose(0, 2, 3, 4, 1),
                         "b": m.bias.detach().float().cpu().numpy(),
                         "pad_top": kh // 2, "pad_left": kw // 2,
                         "out": y[t].shape[:2]}
                self.calls.append((
                    f"{path}, frame {first + t}", "conv", y[t], given,
                    functools.partial(_other_frames, given, older)))
        return see


class _Undo:
    def __init__(self, remove):
        self.remove = remove


def watch(module, **options):
    return Watch(module, **options)


watch.__doc__ = Watch.__doc__


def sample(transformer, seen, text, noise, steps=(1000, 750, 500, 250),
           shift=5.0):
    """Self-Forcing's sampler for one chunk of all frames with diffusers'
    transformer: what `tether generate --noise` does with --chunk F --latents F.

    text    [rows, text_dim], the rows of the prompt and zeros
    noise   {"noise": [F, C, h, w], "renoise": [(steps - 1) F, C, h, w]}, as
            `tether noise` writes them, with leading axes of 1 or without
    Returns the latents [F, C, h, w]. The last call is the context pass."""
    like = next(p for p in transformer.parameters() if p.ndim > 4)
    first, again = (torch.from_numpy(np.array(noise[n], np.float32)).reshape(
        -1, *np.shape(noise[n])[-3:]) for n in ("noise", "renoise"))
    text = torch.from_numpy(np.array(text, np.float32))[None].to(like)
    times, sigmas = tether.schedule(steps, shift)
    F, x = len(first), first
    for step, (t, sigma) in enumerate(zip(times, sigmas)):
        seen.tensors[f"chunk.0/step.{step}/x"] = x.numpy()   # not yet rounded
        with torch.no_grad():
            flow = transformer(
                hidden_states=x.transpose(0, 1)[None].to(like),
                encoder_hidden_states=text, return_dict=False,
                timestep=torch.tensor([t], device=like.device))[0]
        flow = flow[0].transpose(0, 1).to("cpu", torch.float64)
        x0 = (x - sigma * flow).float()
        seen.tensors[f"chunk.0/step.{step}/x0"] = x0.numpy()
        if step == len(times) - 1:
            return x.numpy()
        # the context pass sees the clean latents
        last = step == len(times) - 2
        x = x0 if last else (1 - sigmas[step + 1]) * x0 + \
            sigmas[step + 1] * again[step * F:(step + 1) * F]
