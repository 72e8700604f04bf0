"""The graph qwen35 in numpy, float64, over the tensors of a GGUF file as they are stored: value heads tiled."""

import numpy as np

from numpy_forward import Model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def unit(x):
    return x / np.sqrt(np.sum(x * x, -1, keepdims=True) + 1e-6)


class Qwen35(Model):
    def rope(self, x):
        """The first dimension_count values of a head turn, their halves against each other."""
        d = self.key("rope.dimension_count")
        frequency = self.key("rope.freq_base") ** (-np.arange(0, d, 2) / d)
        turn = np.exp(1j * np.arange(len(x))[:, None, None] * frequency)
        y = (x[..., :d // 2] + 1j * x[..., d // 2:d]) * turn
        return np.concatenate([y.real, y.imag, x[..., d:]], -1)

    def attention(self, x, layer):
        heads, kv_heads = self.key("attention.head_count"), self.key("attention.head_count_kv")
        q, k, v = (self.project(f"{layer}.attn_{p}.weight", x) for p in "qkv")
        q, gate = np.split(q.reshape(len(x), heads, -1), 2, -1)
        k, v = (a.reshape(len(x), kv_heads, -1) for a in (k, v))
        q = self.rope(self.norm(q, f"{layer}.attn_q_norm.weight"))
        k = self.rope(self.norm(k, f"{layer}.attn_k_norm.weight"))
        k, v = (a.repeat(heads // kv_heads, 1) for a in (k, v))
        score = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
        score[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        y = np.einsum("hqk,khd->qhd", p, v) * sigmoid(gate)
        return self.project(f"{layer}.attn_output.weight", y.reshape(len(x), -1))

    def delta_net(self, x, layer):
        n, n_k, n_v = len(x), self.key("ssm.group_count"), self.key("ssm.time_step_rank")
        taps = self.weight(f"{layer}.ssm_conv1d.weight")
        m = self.project(f"{layer}.attn_qkv.weight", x)
        padded = np.concatenate([np.zeros((taps.shape[1] - 1, m.shape[1])), m])
        m = silu(sum(padded[i:i + n] * taps[:, i] for i in range(taps.shape[1])))
        of_k = n_k * self.key("ssm.state_size")
        q, k = (unit(a.reshape(n, n_k, -1)) for a in (m[:, :of_k], m[:, of_k:2 * of_k]))
        q /= np.sqrt(q.shape[-1])
        v = m[:, 2 * of_k:].reshape(n, n_v, -1)
        beta = sigmoid(self.project(f"{layer}.ssm_beta.weight", x))
        dt = self.project(f"{layer}.ssm_alpha.weight", x) + self.weight(f"{layer}.ssm_dt.bias")
        decay = np.exp(self.weight(f"{layer}.ssm_a") * np.logaddexp(0, dt))
        y = np.zeros_like(v)
        for head in range(n_v):
            state = np.zeros((v.shape[-1], q.shape[-1]))
            for t in range(n):
                key = k[t, head % n_k]
                state = decay[t, head] * state
                state = state + np.outer(beta[t, head] * (v[t, head] - state @ key), key)
                y[t, head] = state @ q[t, head % n_k]
        gate = self.project(f"{layer}.attn_gate.weight", x).reshape(y.shape)
        y = self.norm(y, f"{layer}.ssm_norm.weight") * silu(gate)
        if self.keys.get("prism.hadamard.gdn_v_grouped", False):
            y = y.reshape(n, n_v // n_k, n_k, -1).swapaxes(1, 2)
        return self.project(f"{layer}.ssm_out.weight", y.reshape(n, -1))

    def logits(self, tokens):
        x = self.embed(tokens)
        for i in range(self.key("block_count")):
            layer = f"blk.{i}"
            full = (i + 1) % self.key("full_attention_interval") == 0
            mix = self.attention if full else self.delta_net
            x = x + mix(self.norm(x, f"{layer}.attn_norm.weight"), layer)
            x = x + self.feed_forward(self.norm(x, f"{layer}.post_attention_norm.weight"), layer)
        head = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        return self.project(head, self.norm(x, "output_norm.weight"))
