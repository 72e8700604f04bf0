#!/usr/bin/env python3
"""Runs an exported GGUF with numpy alone, from the definitions: decodes the blocks, rotates activations, multiplies.

    forward.py model.gguf --text valid.txt              perplexity
    forward.py model.gguf --prompt "Once upon a time"   generates

Perplexity is llama.cpp's: the text as one stream behind one BOS, cut into chunks of the context; BOS takes the place of the
first token of each chunk; the tokens after the middle one are scored. The figure over all positions is given as well.
"""
import argparse
import math

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

import gguf_file as gguf
from prepare_data import PATTERNS


def rms_norm(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, path, int8=False):
        file = gguf.Reader(path)
        m = self.metadata = file.metadata
        self.int8 = int8
        get = lambda key: m["qwen3." + key]
        self.layers, self.context, self.dim = get("block_count"), get("context_length"), get("embedding_length")
        self.heads, self.kv_heads = get("attention.head_count"), get("attention.head_count_kv")
        self.head_dim, self.eps = get("attention.key_length"), get("attention.layer_norm_rms_epsilon")
        self.block, self.signs = m.get("prism.hadamard.block_size", 1), {}
        if self.block > 1:
            values, at = np.array(m["prism.hadamard.sign_values"], np.float32), 0
            for width in m["prism.hadamard.sign_widths"]:
                self.signs[width] = values[at : at + width]
                at += width
        h = np.ones((1, 1), np.float32)
        while len(h) < self.block:
            h = np.block([[h, h], [h, -h]])
        self.h = h / np.float32(math.sqrt(self.block))
        self.weights, self.zeros, self.count = {}, 0, 0
        for name, (dims, kind, data) in file.tensors.items():
            if kind == gguf.F32:
                self.weights[name] = np.frombuffer(data, np.float32).reshape(dims[::-1])
            else:
                codes, scales = gguf.decode(data, dims[1], dims[0], kind)
                assert codes.max() <= 1
                self.zeros, self.count = self.zeros + int((codes == 0).sum()), self.count + codes.size
                scaled = codes.reshape(*scales.shape, gguf.GROUP) * scales[..., None]
                self.weights[name] = scaled.reshape(dims[1], dims[0]).astype(np.float32)
        half = np.arange(0, self.head_dim, 2, dtype=np.float32) / self.head_dim
        angle = np.arange(self.context, dtype=np.float32)[:, None] * get("rope.freq_base") ** -half
        self.cos, self.sin = (np.concatenate([f(angle)] * 2, -1).astype(np.float32) for f in (np.cos, np.sin))

        tokens = m["tokenizer.ggml.tokens"]
        merges = [tuple(x.split(" ")) for x in m["tokenizer.ggml.merges"]]
        self.tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
        pattern = Regex(PATTERNS[m["tokenizer.ggml.pre"]])
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        self.tokenizer.decoder = decoders.ByteLevel()
        self.bos, self.eos = m["tokenizer.ggml.bos_token_id"], m["tokenizer.ggml.eos_token_id"]
        self.token_bytes = np.array([len(t) for t in tokens])

    def hadamard(self, x):
        return (x.reshape(-1, self.block) @ self.h).reshape(x.shape) if self.block > 1 else x

    def rotated(self, x):
        """H (s * x), and quantised to int8 per 128 where that is asked for."""
        z = self.hadamard(x * self.signs[x.shape[-1]]) if self.block > 1 else x
        if not self.int8:
            return z
        g = z.reshape(*z.shape[:-1], -1, gguf.GROUP)
        top = np.maximum(np.abs(g).max(-1, keepdims=True), 1e-30)
        return (np.rint(g * (127 / top)) * (top / 127)).reshape(z.shape).astype(np.float32)

    def project(self, x, *names):
        z = self.rotated(x)
        return [z @ self.weights[n + ".weight"].T for n in names]

    def rope(self, x, start):
        cos, sin = (t[start : start + x.shape[0], None] for t in (self.cos, self.sin))
        a, b = np.split(x, 2, -1)
        return x * cos + np.concatenate([-b, a], -1) * sin

    def forward(self, tokens, cache=None):
        """tokens: [time]. cache: a list that this call appends to. Returns logits [time, vocab]."""
        t = len(tokens)
        x = self.hadamard(self.weights["token_embd.weight"][tokens])
        if self.block > 1:
            x = x * self.signs[self.dim]
        cache = [] if cache is None else cache
        for i in range(self.layers):
            w = lambda name: self.weights[f"blk.{i}.{name}.weight"]
            name = lambda n: f"blk.{i}.{n}"
            q, k, v = self.project(rms_norm(x, w("attn_norm"), self.eps), name("attn_q"), name("attn_k"), name("attn_v"))
            past = len(cache[i][0]) if len(cache) > i else 0
            q = self.rope(rms_norm(q.reshape(t, -1, self.head_dim), w("attn_q_norm"), self.eps), past)
            k = self.rope(rms_norm(k.reshape(t, -1, self.head_dim), w("attn_k_norm"), self.eps), past)
            v = v.reshape(t, -1, self.head_dim)
            if past:
                k, v = (np.concatenate(pair) for pair in zip(cache[i], (k, v)))
                cache[i] = (k, v)
            else:
                cache.append((k, v))
            mask = np.where(np.arange(len(k)) > np.arange(past, past + t)[:, None], np.float32(-np.inf), np.float32(0))
            heads = []
            for head in range(self.heads):
                source = head // (self.heads // self.kv_heads)
                scores = q[:, head] @ k[:, source].T / np.float32(math.sqrt(self.head_dim)) + mask
                heads.append(softmax(scores) @ v[:, source])
            x = x + self.project(np.concatenate(heads, -1), name("attn_output"))[0]
            gate, up = self.project(rms_norm(x, w("ffn_norm"), self.eps), name("ffn_gate"), name("ffn_up"))
            x = x + self.project(gate / (1 + np.exp(-gate)) * up, name("ffn_down"))[0]
        return self.project(rms_norm(x, self.weights["output_norm.weight"], self.eps), "token_embd")[0]


def perplexity(model, text, limit=0):
    stream = np.array([model.bos] + model.tokenizer.encode(text).ids)
    n = model.context
    chunks = len(stream) // n
    chunks = min(chunks, limit) if limit else chunks
    loss = np.zeros((chunks, n - 1))
    size = np.zeros((chunks, n - 1))
    for i in range(chunks):
        tokens = stream[i * n : (i + 1) * n].copy()
        tokens[0] = model.bos
        logits = model.forward(tokens)[:-1].astype(np.float64)
        top = logits.max(-1)
        loss[i] = np.log(np.exp(logits - top[:, None]).sum(-1)) + top - logits[np.arange(n - 1), tokens[1:]]
        size[i] = model.token_bytes[tokens[1:]]
    for label, part in (("second half", slice(n // 2, None)), ("all positions", slice(None))):
        l, b = loss[:, part], size[:, part]
        error = l.std() / math.sqrt(l.size) * math.exp(l.mean())
        print(
            f"{label}: perplexity {math.exp(l.mean()):.4f} +- {error:.4f} per token, {math.exp(l.sum() / b.sum()):.4f} per byte "
            f"({l.sum() / b.sum() / math.log(2):.4f} bits per byte), {l.size} tokens in {chunks} chunks of {n}"
        )


def generate(model, prompt, count, temp, seed, top_k=40, top_p=0.95, min_p=0.05):
    random = np.random.default_rng(seed)
    tokens, cache = [model.bos] + model.tokenizer.encode(prompt).ids, []
    logits = model.forward(np.array(tokens), cache)[-1]
    for _ in range(min(count, model.context - len(tokens))):
        if temp == 0:
            choice = int(logits.argmax())
        else:
            best = np.argsort(-logits)[:top_k]
            p = softmax(logits[best].astype(np.float64))
            keep = (np.cumsum(p) - p < top_p) & (p >= min_p * p[0])
            p = softmax(logits[best[keep]].astype(np.float64) / temp)
            choice = int(random.choice(best[keep], p=p))
        if choice == model.eos:
            break
        tokens.append(choice)
        logits = model.forward(np.array([choice]), cache)[-1]
    return tokens


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("model")
    args.add_argument("--text")
    args.add_argument("--prompt")
    args.add_argument("-n", type=int, default=200)
    args.add_argument("--temp", type=float, default=0.0)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--chunks", type=int, default=0, help="stop after so many")
    args.add_argument("--int8", action="store_true", help="activations in int8 per 128, after the rotation")
    args.add_argument("--ids", action="store_true", help="print token ids, too")
    args = args.parse_args()
    model = Model(args.model, args.int8)
    print(f"{model.count} ternary weights, {100 * model.zeros / model.count:.2f} % zero\n")
    if args.text:
        perplexity(model, open(args.text, encoding="utf-8").read(), args.chunks)
    if args.prompt is not None:
        tokens = generate(model, args.prompt, args.n, args.temp, args.seed)
        print(model.tokenizer.decode(tokens[1:]))
        if args.ids:
            print(tokens)


if __name__ == "__main__":
    main()
