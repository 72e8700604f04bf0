"""Writes the tiny ternary models and their golden logits, by numpy from the definitions.

    make_ternary_models.py ../data/models [NAME...]

A rotated weight is stored as W' = W diag(s) H: ternary, while W, which `transformers` runs, is not.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

import ternary_blocks
from numpy_forward import hadamard
from tiny_model import Spec, check_file, tensor_type, write_gguf, write_goldens

# (model, rotation block or 0, rotated names end with these, signs, files: name suffix -> type)
PRISM = {"ptq1_0": "PTQ1_0", "pq2_0": "PQ2_0"}
OF_HIDDEN = ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up")
ALL = OF_HIDDEN + ("attn_output", "ffn_down", "output")
MODELS = [
    # Groups a row: 1, 2. Rows of k: 16, half a block.
    (Spec("qwen3_rot64", "qwen3", hidden=128, layers=1, heads=8, kv_heads=1, head_dim=16, ffn=256,
          tied=True, theta=1e6, pre="qwen2", seed=11), 64, ALL, "explicit", PRISM),
    # Groups a row: 2, 3, 5. Rows of k: 96, three blocks. An untied head.
    (Spec("llama_rot128", "llama", hidden=256, layers=1, heads=8, kv_heads=2, head_dim=48, ffn=640,
          tied=False, theta=10000.0, pre="smollm", seed=12), 128, ALL, "explicit", PRISM),
    # Groups a row: 11 (two blocks of five and a rest of one), 1.
    (Spec("qwen3_rot128_wide", "qwen3", hidden=1408, layers=1, heads=4, kv_heads=1, head_dim=32, ffn=128,
          tied=True, theta=1e6, pre="qwen2", seed=13), 128, ALL, "explicit", PRISM),
    # Groups a row: 8 (a block of five and a rest of three). Only what reads the hidden width is rotated.
    (Spec("qwen3_rot1024", "qwen3", hidden=1024, layers=1, heads=4, kv_heads=2, head_dim=32, ffn=128,
          tied=True, theta=1e6, pre="qwen2", seed=14), 1024, OF_HIDDEN, "identity", PRISM),
    # Groups a row: 4, 2. Not rotated, one scale a 256-block, so that TQ1_0 and TQ2_0 hold it exactly.
    (Spec("llama_tq", "llama", hidden=512, layers=1, heads=4, kv_heads=1, head_dim=64, ffn=256,
          tied=False, theta=10000.0, pre="gpt-2", seed=15),
     0, (), "", {"tq1_0": "TQ1_0", "tq2_0": "TQ2_0"}),
    # Groups of 64 a row: 3, 5, each with a scale of its own, so that a group of 128 has two.
    (Spec("llama_half_groups", "llama", hidden=192, layers=1, heads=4, kv_heads=2, head_dim=48, ffn=320,
          tied=True, theta=10000.0, pre="smollm", seed=16), 0, (), "", {"q2_0": "Q2_0"}),
    # One f32 scale a matrix, no fp16 number. Groups of 128 a row: 2, 3.
    (Spec("llama_tensor_scale", "llama", hidden=256, layers=1, heads=4, kv_heads=2, head_dim=64, ffn=384,
          tied=True, theta=10000.0, pre="smollm", seed=17), 0, (), "", {"i2_s": "I2_S"}),
    # One f32 scale a row, no fp16 number. Groups of 128 a row: one and a half, two and a half.
    (Spec("qwen3_row_scale", "qwen3", hidden=192, layers=1, heads=4, kv_heads=2, head_dim=48, ffn=320,
          tied=True, theta=1e6, pre="qwen2", seed=18), 0, (), "", {"iq2_bn": "IQ2_BN"}),
]
TWIN = "qwen3_rot64"  # its un-rotated weights are kept as a file too


def random_ternary(rng, rows, cols, group, spread):
    """Codes and fp16 scales; the first group of row 1 is all zeros with scale 0."""
    codes = rng.choice(3, (rows, cols), p=[0.32, 0.36, 0.32]).astype(np.uint8)
    scales = spread / 0.8 * np.exp(rng.uniform(-0.5, 0.5, (rows, cols // group)))
    codes[1, :group], scales[1, 0] = 1, 0
    return codes, scales.astype(np.float16)


def scales_of(kind, scales):
    """Of the scales of groups those that the type holds."""
    if kind not in ("I2_S", "IQ2_BN"):
        return scales
    scale = scales.astype(np.float32).mean(axis=1 if kind == "IQ2_BN" else None, keepdims=True)
    assert (scale.astype(np.float16).astype(np.float32) != scale).any()
    return scale


def prism_keys(block, mode, signs, rotated, grouped=False):
    keys = {"version": 1, "block_size": block, "transform": "normalized-sylvester-walsh-hadamard",
            "axis": "input-last-dimension", "sign_mode": mode}
    if mode == "explicit":
        keys["sign_widths"] = list(signs)
        keys["sign_values"] = [int(s) for values in signs.values() for s in values]
    keys["weight_names"] = [name for name in rotated if name != "token_embd.weight"]
    keys["inverse_weight_names"] = ["token_embd.weight"]
    keys["gdn_v_grouped"] = grouped
    return [("prism.hadamard." + k, v) for k, v in keys.items()]


def encoded(kind, codes, scales):
    block = ternary_blocks.TYPES[kind]
    rows, cols = codes.shape
    return kind, ternary_blocks.encode(block, codes, scales), (rows, cols // block.weights * block.size)


def main(folder, names):
    for spec, block, rotated_stems, mode, files in MODELS:
        if names and spec.name not in names:
            continue
        rng = np.random.default_rng(spec.seed)
        norms = spec.random_norms(rng)
        kinds = list(files.values())
        group = 256 if kinds[0].startswith("TQ") else ternary_blocks.TYPES[kinds[0]].weights
        ternary, values, signs, rotated = {}, dict(norms), {}, []
        for name, rows, cols, spread in spec.matrices():
            codes, scales = random_ternary(rng, rows, cols, group, spread)
            ternary[name] = codes, scales = codes, scales_of(kinds[0], scales)
            values[name] = ternary_blocks.values(codes, scales)
            if block and name.split(".")[-2] in rotated_stems + ("token_embd",):
                if cols not in signs:
                    signs[cols] = rng.choice([-1, 1], cols) if mode == "explicit" else np.ones(cols)
                values[name] = hadamard(values[name], block) * signs[cols]
                rotated.append(name)
        other = {}
        if not block and not spec.tied:  # a head of another type, as in files of the wild
            q4_0 = tensor_type("Q4_0")
            other["output.weight"] = gguf.quantize(values["output.weight"].astype(np.float32), q4_0)
            values["output.weight"] = gguf.dequantize(other["output.weight"], q4_0)
        goldens = write_goldens(folder, spec, values)
        keys = prism_keys(block, mode, signs, rotated) if block else []
        for suffix, kind in files.items():
            tensors = {name: ("Q4_0", other[name]) if name in other else encoded(kind, *t)
                       for name, t in ternary.items()}
            path = folder / f"{spec.name}.{suffix}.gguf"
            write_gguf(path, spec, tensors | norms, keys)
            check_file(path, *goldens)
        if spec.name == TWIN:
            path = folder / f"{spec.name}.twin_f32.gguf"
            twin = {name: w.astype(np.float32) for name, w in values.items()}
            assert all((twin[name] == w).all() for name, w in values.items())
            write_gguf(path, spec, twin)
            check_file(path, *goldens)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
