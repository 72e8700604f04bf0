#!/usr/bin/env python3
"""Writes a checkpoint as GGUF: ternary tensors in their rotated basis, with the prism.hadamard.* keys that rule them.

    export_gguf.py --checkpoint RUN/checkpoint.pt --data DATA --type PTQ1_0 --out model.gguf
"""
import argparse
import json
import pathlib

import numpy as np
import torch

import gguf_file as gguf
from gguf_file import ARRAY, BOOL, FLOAT, I32, STRING, U32
from model import Config, Rotation, ternary


def tokenizer_entries(data):
    facts = json.loads((data / "data.json").read_text())
    bpe = json.loads((data / "tokenizer.json").read_text())["model"]
    tokens = [t for t, _ in sorted(bpe["vocab"].items(), key=lambda item: item[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]]
    end = facts["end_of_text"]
    return [
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, facts["pre"]),
        ("tokenizer.ggml.tokens", (ARRAY, STRING), tokens),
        ("tokenizer.ggml.token_type", (ARRAY, I32), [3 if i == end else 1 for i in range(len(tokens))]),  # 3: control
        ("tokenizer.ggml.merges", (ARRAY, STRING), merges),
        ("tokenizer.ggml.bos_token_id", U32, end),
        ("tokenizer.ggml.eos_token_id", U32, end),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
    ]


def rotation_entries(config):
    """Tied head: the embedding is named once, as an inverse weight; its other direction is the forward one."""
    if config.block == 1:
        return []
    signs = Rotation(config).signs
    names = [n + ".weight" for n in config.matrices() if n != "token_embd"]
    assert config.block, "one block size for all widths is what the keys can say"
    return [
        ("prism.hadamard.version", U32, 1),
        ("prism.hadamard.block_size", U32, config.block),
        ("prism.hadamard.transform", STRING, "normalized-sylvester-walsh-hadamard"),
        ("prism.hadamard.axis", STRING, "input-last-dimension"),
        ("prism.hadamard.sign_mode", STRING, "explicit"),
        ("prism.hadamard.sign_widths", (ARRAY, I32), list(signs)),
        ("prism.hadamard.sign_values", (ARRAY, I32), [int(v) for s in signs.values() for v in s]),
        ("prism.hadamard.weight_names", (ARRAY, STRING), names),
        ("prism.hadamard.inverse_weight_names", (ARRAY, STRING), ["token_embd.weight"]),
        ("prism.hadamard.gdn_v_grouped", BOOL, False),
    ]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--checkpoint", type=pathlib.Path, required=True)
    args.add_argument("--data", type=pathlib.Path, required=True)
    args.add_argument("--type", choices=["PTQ1_0", "PQ2_0"], default="PTQ1_0")
    args.add_argument("--name", default="fairy-tales")
    args.add_argument("--out", type=pathlib.Path, required=True)
    args = args.parse_args()

    state = torch.load(args.checkpoint, map_location="cpu")
    config, latent = Config(**state["config"]), state["latent"]
    metadata = [
        ("general.architecture", STRING, "qwen3"),
        ("general.name", STRING, args.name),
        ("general.alignment", U32, gguf.ALIGNMENT),
        ("qwen3.context_length", U32, config.context),
        ("qwen3.embedding_length", U32, config.dim),
        ("qwen3.block_count", U32, config.layers),
        ("qwen3.feed_forward_length", U32, config.ffn),
        ("qwen3.attention.head_count", U32, config.heads),
        ("qwen3.attention.head_count_kv", U32, config.kv_heads),
        ("qwen3.attention.key_length", U32, config.head_dim),
        ("qwen3.attention.value_length", U32, config.head_dim),
        ("qwen3.attention.layer_norm_rms_epsilon", FLOAT, config.eps),
        ("qwen3.rope.freq_base", FLOAT, config.theta),
        *tokenizer_entries(args.data),
        *rotation_entries(config),
    ]
    kind = getattr(gguf, args.type)
    tensors = []
    for name, w in latent.items():
        if w.dim() == 1:
            tensors.append((name + ".weight", (len(w),), gguf.F32, w.numpy().tobytes()))
            continue
        codes, scales = (t.numpy() for t in ternary(w))
        data = gguf.encode(codes.astype(np.int8), scales, kind).tobytes()
        back = gguf.decode(data, *w.shape, kind)
        assert (back[0] == codes).all() and (back[1] == scales).all()
        tensors.append((name + ".weight", (w.shape[1], w.shape[0]), kind, data))
    gguf.write(args.out, metadata, tensors)
    print(f"{args.out.name}: {args.out.stat().st_size} bytes, {len(tensors)} tensors, step {state['step']}")


if __name__ == "__main__":
    main()
