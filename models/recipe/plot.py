#!/usr/bin/env python3
"""Draws the loss curve: plot.py log.jsonl loss.png"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

records = [json.loads(line) for line in open(sys.argv[1])]
train = [r for r in records if "loss" in r]
valid = [r for r in records if "valid" in r]
million = lambda r: r["tokens"] / 1e6
per_step = train[0]["tokens"] / train[0]["step"]
fig, ax = plt.subplots(figsize=(8, 4.5), dpi=110)
ax.plot([million(r) for r in train], [r["loss"] for r in train], lw=0.9, label="training loss, nats per token")
ax.plot([r["step"] * per_step / 1e6 for r in valid], [r["valid"] for r in valid], "o-", ms=4, label="validation loss (64 windows)")
ramp = [million(r) for r in train if 0 < r["mix"] < 1]
if ramp:
    ax.axvspan(ramp[0], ramp[-1], color="0.85", label="dense to ternary")
ax.set(xlabel="million tokens", ylabel="loss", ylim=(min(r["loss"] for r in train) - 0.2, 7))
ax.grid(alpha=0.3)
ax.legend()
fig.tight_layout()
fig.savefig(sys.argv[2])
