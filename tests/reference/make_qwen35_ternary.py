"""Writes the tiny ternary models of qwen35, as the GGUF files of Ternary-Bonsai have them, by numpy from the
definitions, with the logits of their un-rotated twins and digests of what their tensors mean.

    make_qwen35_ternary.py ../data/qwen35

Value heads are tiled: head h of the file reads key head h mod n_k, while transformers groups them. The inputs of
ssm_out are tiled too where it is not rotated, grouped where it is (gdn_v_grouped).
"""

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers

import ternary_blocks
import tiny_model
from make_ternary_models import PRISM, encoded, prism_keys, random_ternary
from numpy_forward import hadamard
from numpy_qwen35 import Qwen35
from tiny_model import CONTEXT, EPS, VOCAB, Spec, check_file, write_gguf, write_goldens

INNER = tiny_model.INNER | {
    "post_attention_norm": "post_attention_layernorm", "attn_qkv": "linear_attn.in_proj_qkv",
    "attn_gate": "linear_attn.in_proj_z", "ssm_alpha": "linear_attn.in_proj_a",
    "ssm_beta": "linear_attn.in_proj_b", "ssm_conv1d": "linear_attn.conv1d", "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj", "ssm_a": "linear_attn.A_log", "ssm_dt.bias": "linear_attn.dt_bias",
}
TAPS = 4


@dataclass(frozen=True)
class HybridSpec(Spec):
    k_heads: int = 2
    v_heads: int = 6
    k_dim: int = 64
    v_dim: int = 64
    interval: int = 2  # layer i has full attention where this divides i + 1

    def is_full(self, layer):
        return (layer + 1) % self.interval == 0

    @property
    def inner(self):
        return self.v_heads * self.v_dim

    @property
    def channels(self):
        return 2 * self.k_heads * self.k_dim + self.inner

    def matrices(self):
        unit = self.hidden ** -0.5
        yield "token_embd.weight", VOCAB, self.hidden, 4 * unit if self.tied else 1.0
        for i in range(self.layers):
            q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
            if self.is_full(i):
                yield f"blk.{i}.attn_q.weight", 2 * q, self.hidden, 1.5 * unit
                yield f"blk.{i}.attn_k.weight", kv, self.hidden, 1.5 * unit
                yield f"blk.{i}.attn_v.weight", kv, self.hidden, unit
                yield f"blk.{i}.attn_output.weight", self.hidden, q, 2 * q ** -0.5
            else:
                yield f"blk.{i}.attn_qkv.weight", self.channels, self.hidden, unit
                yield f"blk.{i}.attn_gate.weight", self.inner, self.hidden, unit
                yield f"blk.{i}.ssm_out.weight", self.hidden, self.inner, 2 * self.inner ** -0.5
            yield f"blk.{i}.ffn_gate.weight", self.ffn, self.hidden, unit
            yield f"blk.{i}.ffn_up.weight", self.ffn, self.hidden, unit
            yield f"blk.{i}.ffn_down.weight", self.hidden, self.ffn, self.ffn ** -0.5
        if not self.tied:
            yield "output.weight", VOCAB, self.hidden, 4 * unit

    def others(self, rng):
        """What is neither ternary nor rotated, as the file means it: norms that multiply, decays."""
        sizes = {"output_norm.weight": self.hidden}
        values = {}
        for i in range(self.layers):
            sizes |= {f"blk.{i}.attn_norm.weight": self.hidden,
                      f"blk.{i}.post_attention_norm.weight": self.hidden}
            if self.is_full(i):
                sizes |= {f"blk.{i}.attn_{p}_norm.weight": self.head_dim for p in "qk"}
                continue
            sizes[f"blk.{i}.ssm_norm.weight"] = self.v_dim
            for name in ("ssm_alpha", "ssm_beta"):
                w = rng.normal(0, self.hidden ** -0.5, (self.v_heads, self.hidden))
                values[f"blk.{i}.{name}.weight"] = torch.from_numpy(w).bfloat16().float().numpy()
            values[f"blk.{i}.ssm_conv1d.weight"] = rng.normal(0, 0.5, (self.channels, TAPS))
            values[f"blk.{i}.ssm_a"] = -rng.uniform(0.02, 1, self.v_heads)
            values[f"blk.{i}.ssm_dt.bias"] = rng.normal(0, 1, self.v_heads)
        values |= {name: rng.uniform(0.5, 1.5, n) for name, n in sizes.items()}
        return {name: w.astype(np.float32) for name, w in values.items()}

    def keys(self):
        return [("qwen35." + key, value) for key, value in {
            "rope.dimension_sections": [3, 3, 2, 0], "ssm.conv_kernel": TAPS, "ssm.state_size": self.k_dim,
            "ssm.group_count": self.k_heads, "ssm.time_step_rank": self.v_heads,
            "ssm.inner_size": self.inner, "full_attention_interval": self.interval}.items()]

    def tile(self, a, axis, first, size):
        """[key head, r] -> [r, key head], as llama.cpp's converter does along an axis, from `first` on."""
        a = np.moveaxis(a, axis, 0)
        rest = a.shape[1:]
        heads = a[first:].reshape(self.k_heads, -1, size, *rest).swapaxes(0, 1)
        return np.moveaxis(np.concatenate([a[:first], heads.reshape(-1, *rest)]), 0, axis)

    def tile_rows(self, name, a):
        part = name.split(".", 2)[-1].removesuffix(".weight")
        if part in ("attn_qkv", "ssm_conv1d"):
            return self.tile(a, 0, self.channels - self.inner, self.v_dim)
        if part == "attn_gate":
            return self.tile(a, 0, 0, self.v_dim)
        if part in ("ssm_alpha", "ssm_beta", "ssm_a", "ssm_dt.bias"):
            return self.tile(a, 0, 0, 1)
        return a


def hf_name(name):
    stem = name.removesuffix(".weight")
    if stem in tiny_model.OUTER:
        return tiny_model.OUTER[stem] + ".weight"
    _, layer, stem = stem.split(".", 2)
    bare = stem in ("ssm_a", "ssm_dt.bias")
    return f"model.layers.{layer}.{INNER[stem]}" + ("" if bare else ".weight")


def hf_model(spec, values):
    """values: un-rotated weights by GGUF name, as the file means them, value heads grouped."""
    config = transformers.Qwen3_5TextConfig(
        vocab_size=VOCAB, hidden_size=spec.hidden, intermediate_size=spec.ffn, num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads, num_key_value_heads=spec.kv_heads, head_dim=spec.head_dim,
        rms_norm_eps=EPS, max_position_embeddings=CONTEXT, tie_word_embeddings=spec.tied,
        linear_conv_kernel_dim=TAPS, linear_key_head_dim=spec.k_dim, linear_value_head_dim=spec.v_dim,
        linear_num_key_heads=spec.k_heads, linear_num_value_heads=spec.v_heads,
        layer_types=["full_attention" if spec.is_full(i) else "linear_attention" for i in range(spec.layers)],
        rope_parameters={"rope_type": "default", "rope_theta": spec.theta, "mrope_section": [3, 3, 2],
                         "partial_rotary_factor": spec.rope_dims / spec.head_dim}, attn_implementation="eager")
    model = transformers.Qwen3_5ForCausalLM(config).double().eval()
    state = {}
    for name, w in values.items():
        w = np.array(w, np.float64)
        if name.endswith("norm.weight") and not name.endswith("ssm_norm.weight"):
            w = w - 1
        if name.endswith("ssm_a"):
            w = np.log(-w)
        if name.endswith("ssm_conv1d.weight"):
            w = w[:, None]
        state[hf_name(name)] = torch.from_numpy(w)
    if spec.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values, "<f4").tobytes()).hexdigest()


def write_meaning(path, stored, unrotated, rotated, rng):
    """Digests of every tensor, value heads grouped, taps turned; and some weights before their rotation."""
    tensors = {name: {"rotated": name in rotated,
                      "sha256": digest(w.T if name.endswith("ssm_conv1d.weight") else w)}
               for name, w in stored.items()}
    some = []
    for name in rotated:
        rows, cols = unrotated[name].shape
        for row, col in zip(rng.integers(0, rows, 4), rng.integers(0, cols, 4)):
            some.append([name, int(row), int(col), float(unrotated[name][row, col])])
    lines = [f"  {json.dumps(name)}: {json.dumps(about)}" for name, about in tensors.items()]
    path.write_text('{"tensors": {\n' + ",\n".join(lines) + '\n},\n"unrotated": [\n'
                    + ",\n".join("  " + json.dumps(each) for each in some) + "\n]}\n", encoding="ascii")


def write(folder, spec, block, files):
    rng = np.random.default_rng(spec.seed)
    others = spec.others(rng)
    group = ternary_blocks.TYPES[next(iter(files.values()))].weights
    ternary, stored, values, signs, rotated = {}, dict(others), dict(others), {}, []
    for name, rows, cols, spread in spec.matrices():
        codes, scales = random_ternary(rng, rows, cols, group, spread)
        stored[name] = values[name] = ternary_blocks.values(codes, scales)
        if block:
            signs.setdefault(cols, rng.choice([-1, 1], cols))
            values[name] = hadamard(stored[name], block) * signs[cols]
            rotated.append(name)
        elif name.endswith("ssm_out.weight"):
            codes = spec.tile(codes, 1, 0, spec.v_dim)
            scales = spec.tile(scales, 1, 0, spec.v_dim // group)
        ternary[name] = spec.tile_rows(name, codes), spec.tile_rows(name, scales)
    goldens = write_goldens(folder, spec, values, hf_model)
    write_meaning(folder / f"{spec.name}.weights.json", stored, values, rotated, rng)
    keys = spec.keys()
    if block:
        keys += prism_keys(block, "explicit", signs, rotated, grouped=True)
    plain = {name: spec.tile_rows(name, w) for name, w in others.items()}
    for name in plain:
        if name.endswith(("ssm_alpha.weight", "ssm_beta.weight")):
            w = torch.from_numpy(plain[name]).bfloat16().view(torch.uint8).numpy()
            plain[name] = "BF16", w
    for suffix, kind in files.items():
        path = folder / f"{spec.name}.{suffix}.gguf"
        write_gguf(path, spec, {name: encoded(kind, *t) for name, t in ternary.items()} | plain, keys)
        check_file(path, *goldens, graph=Qwen35)


def main(folder):
    shape = dict(arch="qwen35", hidden=128, layers=2, heads=6, kv_heads=2, head_dim=64, ffn=256, theta=1e7,
                 pre="qwen35", rope_dims=16)
    # As Ternary-Bonsai 2: every matrix rotated but alpha and beta, an untied head. Widths 128, 256, 384.
    write(folder, HybridSpec("qwen35_rot128", tied=False, seed=31, **shape), 128, PRISM)
    # As its first generation: not rotated, groups of 64, which here are heads.
    write(folder, HybridSpec("qwen35_tiled", tied=True, seed=32, **shape), 0, {"q2_0": "Q2_0"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
