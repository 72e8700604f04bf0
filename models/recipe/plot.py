#!/usr/bin/env python3
"""Draws the loss curve: plot.py LOG [LOG OF THE NEXT RUN ...] PNG"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

*logs, out = sys.argv[1:]
fig, ax = plt.subplots(figsize=(8, 4.5), dpi=110)
done, lowest = 0.0, 9.0  # million tokens of the runs before
for i, log in enumerate(logs):
    records = [json.loads(line) for line in open(log)]
    train = [r for r in records if "loss" in r]
    valid = [r for r in records if "valid" in r]
    per_step = train[0]["tokens"] / train[0]["step"] / 1e6
    million = lambda r: done + r["step"] * per_step
    named = (lambda name: name) if i == 0 else (lambda name: None)
    ax.plot([million(r) for r in train], [r["loss"] for r in train], "C0", lw=0.9, label=named("training loss, nats per token"))
    ax.plot([million(r) for r in valid], [r["valid"] for r in valid], "C1o-", ms=4, label=named("validation loss (64 windows)"))
    ramp = [million(r) for r in train if 0 < r["mix"] < 1]
    if ramp:
        ax.axvspan(ramp[0], ramp[-1], color="0.85", label="dense to ternary")
    if i > 0:
        ax.axvline(done, color="0.5", lw=0.8, ls="--", label="the next run")
    done, lowest = million(records[-1]), min(lowest, *(r["loss"] for r in train))
ax.set(xlabel="million tokens", ylabel="loss", ylim=(lowest - 0.2, 7))
ax.grid(alpha=0.3)
ax.legend()
fig.tight_layout()
fig.savefig(out)
