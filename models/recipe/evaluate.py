#!/usr/bin/env python3
"""Perplexity of a checkpoint by PyTorch, in f32, with its ternary weights: the convention is that of forward.py.

    evaluate.py --checkpoint RUN/checkpoint.pt --data DATA [--dense]
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

from model import Config, Rotation, dequantize, hidden, rope_tables, ternary


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--checkpoint", type=pathlib.Path, required=True)
    args.add_argument("--data", type=pathlib.Path, required=True)
    args.add_argument("--dense", action="store_true", help="the latent weights as they are")
    args = args.parse_args()
    state = torch.load(args.checkpoint, map_location="cpu")
    config = Config(**state["config"])
    rotation = Rotation(config)
    p = {}
    for name, w in state["latent"].items():
        if w.dim() == 2:
            w = rotation.unrotate(w if args.dense else dequantize(*ternary(w)))
        p[name] = w
    facts = json.loads((args.data / "data.json").read_text())
    vocab = json.loads((args.data / "tokenizer.json").read_text())["model"]["vocab"]
    size = torch.zeros(len(vocab))
    for token, i in vocab.items():
        size[i] = len(token)
    end, n = facts["end_of_text"], config.context
    stream = torch.cat([torch.tensor([end]), torch.from_numpy(np.load(args.data / "valid.npy").astype(np.int64))])
    chunks = len(stream) // n
    x = stream[: chunks * n].view(chunks, n).clone()
    x[:, 0] = end
    cos, sin = rope_tables(config, n)
    losses = []
    with torch.no_grad():
        for part in x.split(8):
            logits = hidden(p, config, part, cos, sin, torch.float32)[:, :-1] @ p["token_embd"].T
            losses.append(F.cross_entropy(logits.transpose(1, 2), part[:, 1:], reduction="none").double())
    loss, size = torch.cat(losses), size[x[:, 1:]].double()
    for label, start in (("second half", n // 2), ("all positions", 0)):
        l, b = loss[:, start:], size[:, start:]
        print(
            f"{label}: perplexity {math.exp(l.mean()):.4f} per token, {math.exp(l.sum() / b.sum()):.4f} per byte "
            f"({l.sum() / b.sum() / math.log(2):.4f} bits per byte), {l.numel()} tokens in {chunks} chunks of {n}"
        )


if __name__ == "__main__":
    main()
