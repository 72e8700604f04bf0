"""The KL divergence of one run's logits from another's, in float64, from its definition.

BASE is what `tsq perplexity --save-logits` or llama.cpp's --kl-divergence-base writes (tools/logits_file.h).
Needs numpy alone.
"""

import struct

import numpy as np


class Saved:
    """A file of saved logits: chunk, vocab, tokens [chunks, chunk], log_p [rows, vocab], step [rows], nll."""

    def __init__(self, path):
        data = path.read_bytes()
        assert data[:8] == b"_logits_"
        self.chunk, self.vocab, chunks = struct.unpack_from("<3i", data, 8)
        n = chunks * self.chunk
        self.tokens = np.frombuffer(data, "<i4", n, 20).reshape(chunks, self.chunk)
        rows = chunks * (self.chunk - 1 - self.chunk // 2)
        stride = 8 + 2 * (self.vocab + self.vocab % 2)
        body = np.frombuffer(data, np.uint8, rows * stride, 20 + 4 * n).reshape(rows, stride)
        head = body[:, :8].copy().view("<f4").astype(float)
        codes = body[:, 8:8 + 2 * self.vocab].copy().view("<u2")
        self.step = head[:, 0]
        self.log_p = head[:, :1] * codes + head[:, 1:]
        at = 20 + 4 * n + rows * stride
        self.llama_cpp = data[:at]
        self.nll = np.frombuffer(data, "<f8", rows, at)
        assert data[at + 8 * rows:][:8] == b"tsq-xxh3" and len(data) == at + 8 * rows + 16

    def next_tokens(self):
        return self.tokens[:, self.chunk // 2 + 1:].ravel()


def log_softmax(logits):
    x = logits.astype(float)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def divergences(log_p, log_q, least=-np.inf):
    """Of each row; terms whose base log-probability is `least` or below are left out."""
    terms = np.exp(log_p) * (log_p - log_q)
    return np.where(log_p > least, terms, 0).sum(-1)


def mean_and_error(x):
    return x.mean(), x.std(ddof=1) / np.sqrt(len(x))


def figures(log_p, log_q, next_tokens, nll_base, least):
    """What `tsq perplexity --kl-base` prints: label -> numbers, in its order."""
    d = divergences(log_p, log_q, least)
    nll = -np.take_along_axis(log_q, next_tokens[:, None], 1)[:, 0]
    dp = np.exp(-nll) - np.exp(-nll_base)
    same = log_p.argmax(-1) == log_q.argmax(-1)
    base, base_error = mean_and_error(nll_base)
    ratio, ratio_error = mean_and_error(nll - nll_base)
    square, square_error = mean_and_error(dp * dp)
    change, change_error = mean_and_error(dp)
    return {
        "base PPL": (np.exp(base), np.exp(base) * base_error),
        "PPL / base PPL": (np.exp(ratio), np.exp(ratio) * ratio_error),
        "mean KLD": mean_and_error(d),
        "maximum KLD": (d.max(),),
        **{f"{percent} % KLD": (np.quantile(d, percent / 100),) for percent in (99, 95, 90)},
        "median KLD": (np.median(d),),
        "mean dp": (100 * change, 100 * change_error),
        "RMS dp": (100 * np.sqrt(square), 50 * square_error / np.sqrt(square)),
        "same top": (100 * same.mean(), 100 * np.sqrt(same.mean() * (1 - same.mean()) / (len(same) - 1))),
    }
