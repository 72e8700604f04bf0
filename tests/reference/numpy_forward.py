"""The graphs llama and qwen3 in numpy, float64, over the tensors of a GGUF file as they are stored."""

import numpy as np


def hadamard(x, block):
    """The orthonormal Walsh-Hadamard transform of each run of `block` values of the last axis."""
    i = np.arange(block)
    parity = np.array([bin(v).count("1") & 1 for v in range(block)])
    h = (1 - 2 * parity[i[:, None] & i]) / np.sqrt(block)
    return (x.reshape(-1, block) @ h).reshape(x.shape)


class Model:
    """metadata: GGUF's keys; tensors: name -> array [rows, cols] or [n], converted to float64."""

    def __init__(self, metadata, tensors):
        self.keys = metadata
        self.arch = metadata["general.architecture"]
        self.tensors = tensors
        prism = {k.removeprefix("prism.hadamard."): v for k, v in metadata.items()}
        self.rotated = prism.get("weight_names", []) + prism.get("inverse_weight_names", [])
        self.block = prism.get("block_size")
        widths, values = prism.get("sign_widths", []), np.array(prism.get("sign_values", []), float)
        self.signs = dict(zip(widths, np.split(values, np.cumsum(widths))))

    def key(self, name):
        return self.keys[f"{self.arch}.{name}"]

    def weight(self, name):
        return np.asarray(self.tensors[name], np.float64)

    def norm(self, x, name):
        eps = self.key("attention.layer_norm_rms_epsilon")
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * self.weight(name)

    def project(self, name, x):
        if name in self.rotated:
            x = hadamard(self.signs.get(x.shape[-1], 1.0) * x, self.block)
        return x @ self.weight(name).T

    def embed(self, tokens):
        z = np.asarray(self.tensors["token_embd.weight"][tokens], np.float64)
        if "token_embd.weight" in self.rotated:
            z = self.signs.get(z.shape[-1], 1.0) * hadamard(z, self.block)
        return z

    def scale_frequencies(self, frequency):
        """rope.scaling.*; YaRN is section 3 of arXiv 2309.00071 with its alpha 1 and beta 32."""
        kind = self.keys.get(f"{self.arch}.rope.scaling.type", "none")
        if kind == "none":
            return frequency, 1.0
        factor = self.key("rope.scaling.factor")
        if kind == "linear":
            return frequency / factor, 1.0
        turns = self.key("rope.scaling.original_context_length") * frequency / (2 * np.pi)
        base, pairs = self.key("rope.freq_base"), len(frequency)
        # Between the pairs that turn 32 times and once, rounded outwards, the blend is linear in the pair.
        pair = np.log(turns[0] / np.array([32.0, 1.0])) / np.log(base) * pairs
        low, high = max(np.floor(pair[0]), 0), min(np.ceil(pair[1]), 2 * pairs - 1)
        slow = np.clip((np.arange(pairs) - low) / (high - low), 0, 1)
        return frequency * (1 - slow) + frequency / factor * slow, 0.1 * np.log(factor) + 1

    def rope(self, x):
        """x [tokens, heads, d]. llama turns neighbours, qwen3 the two halves of a head."""
        n, _, d = x.shape
        frequency = self.key("rope.freq_base") ** (-np.arange(0, d, 2) / d)
        if "rope_freqs.weight" in self.tensors:
            frequency = frequency / self.weight("rope_freqs.weight")
        frequency, magnitude = self.scale_frequencies(frequency)
        turn = magnitude * np.exp(1j * np.arange(n)[:, None, None] * frequency)
        if self.arch == "llama":
            y = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
            return np.stack([y.real, y.imag], -1).reshape(x.shape)
        y = (x[..., :d // 2] + 1j * x[..., d // 2:]) * turn
        return np.concatenate([y.real, y.imag], -1)

    def attention(self, x, layer):
        heads, kv_heads = self.key("attention.head_count"), self.key("attention.head_count_kv")
        q, k, v = (self.project(f"{layer}.attn_{p}.weight", x) for p in "qkv")
        q = q.reshape(len(x), heads, -1)
        k, v = (a.reshape(len(x), kv_heads, -1).repeat(heads // kv_heads, 1) for a in (k, v))
        if self.arch == "qwen3":
            q = self.norm(q, f"{layer}.attn_q_norm.weight")
            k = self.norm(k, f"{layer}.attn_k_norm.weight")
        q, k = self.rope(q), self.rope(k)
        score = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
        score[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return self.project(f"{layer}.attn_output.weight",
                            np.einsum("hqk,khd->qhd", p, v).reshape(len(x), -1))

    def feed_forward(self, x, layer):
        gate = self.project(f"{layer}.ffn_gate.weight", x)
        up = self.project(f"{layer}.ffn_up.weight", x)
        return self.project(f"{layer}.ffn_down.weight", gate / (1 + np.exp(-gate)) * up)

    def logits(self, tokens):
        """[tokens, vocab]"""
        x = self.embed(tokens)
        for i in range(self.key("block_count")):
            x = x + self.attention(self.norm(x, f"blk.{i}.attn_norm.weight"), f"blk.{i}")
            x = x + self.feed_forward(self.norm(x, f"blk.{i}.ffn_norm.weight"), f"blk.{i}")
        head = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        return self.project(head, self.norm(x, "output_norm.weight"))
