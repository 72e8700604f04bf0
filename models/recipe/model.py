"""The Qwen3-shaped model and its ternary, rotated weights.

Training runs on *effective* weights. A stored matrix W' lives in the rotated basis, y = W' H (s * x), and H is symmetric,
so the layer is the plain matrix W_eff = W' H diag(s): it is formed once a step, and the graph below is that of an ordinary
Qwen3. The embedding row s * (H z) is a row of the same product, so a tied head needs nothing more.
The straight-through estimator sends the gradient of W_eff back to the latent W' unchanged: dW' = (dW_eff diag(s)) H.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F

GROUP = 128  # inputs that share one scale


@dataclasses.dataclass
class Config:
    vocab: int = 4096
    dim: int = 384
    layers: int = 4
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 1024
    context: int = 512
    eps: float = 1e-6
    theta: float = 10000.0
    block: int = 128  # of the rotation: a power of two; 0: every width in one block (widths must be powers of two); 1: none
    seed: int = 1

    def matrices(self):
        """Name (GGUF's, without ".weight") -> (rows, inputs)."""
        shapes = {"token_embd": (self.vocab, self.dim)}
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        for i in range(self.layers):
            shapes |= {
                f"blk.{i}.attn_q": (q, self.dim),
                f"blk.{i}.attn_k": (kv, self.dim),
                f"blk.{i}.attn_v": (kv, self.dim),
                f"blk.{i}.attn_output": (self.dim, q),
                f"blk.{i}.ffn_gate": (self.ffn, self.dim),
                f"blk.{i}.ffn_up": (self.ffn, self.dim),
                f"blk.{i}.ffn_down": (self.dim, self.ffn),
            }
        return shapes

    def norms(self):
        """Name -> length of each vector that stays f32."""
        shapes = {"output_norm": self.dim}
        for i in range(self.layers):
            shapes |= {
                f"blk.{i}.attn_norm": self.dim,
                f"blk.{i}.ffn_norm": self.dim,
                f"blk.{i}.attn_q_norm": self.head_dim,
                f"blk.{i}.attn_k_norm": self.head_dim,
            }
        return shapes

    def parameters(self):
        return sum(a * b for a, b in self.matrices().values()) + sum(self.norms().values())


class Rotation:
    """Random signs, picked by width alone, and a block Hadamard transform: rotate(x) = H (s * x) along the last dimension."""

    def __init__(self, config):
        generator = torch.Generator().manual_seed(config.seed)
        self.block = config.block
        widths = sorted({inputs for _, inputs in config.matrices().values()})
        self.signs = {w: torch.randint(0, 2, (w,), generator=generator).float() * 2 - 1 for w in widths}

    def hadamard(self, x):
        n = self.block or x.shape[-1]
        if n == 1:
            return x
        h = torch.ones(1, 1)
        while len(h) < n:
            h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)], 0)
        return (x.reshape(-1, n) @ (h / math.sqrt(n))).reshape(x.shape)

    def rotate(self, w):
        """W -> W' = W diag(s) H; also takes the gradient of W_eff to that of W'."""
        return w if self.block == 1 else self.hadamard(w * self.signs[w.shape[-1]])

    def unrotate(self, w):
        """W' -> W_eff = W' H diag(s)."""
        return w if self.block == 1 else self.hadamard(w) * self.signs[w.shape[-1]]


def ternary(w):
    """Returns (codes in {-1, 0, 1}, scales), per group of 128 inputs.

    Weights above 0.7 of the mean magnitude survive; the scale is the mean magnitude of the survivors (TWN). It is rounded to
    bfloat16, which every fp16 scale of this size range holds exactly: what is exported is what was trained.
    """
    groups = w.reshape(w.shape[0], -1, GROUP)
    size = groups.abs()
    keep = size > 0.7 * size.mean(-1, keepdim=True)
    scale = (size * keep).sum(-1) / keep.sum(-1).clamp(min=1)
    scale = scale.clamp(min=2.0**-14).bfloat16().float()
    return (groups.sign() * keep).reshape(w.shape), scale


def dequantize(codes, scales):
    return (codes.reshape(*scales.shape, GROUP) * scales[..., None]).reshape(codes.shape)


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def rope_tables(config, length):
    frequency = config.theta ** (-torch.arange(0, config.head_dim, 2).float() / config.head_dim)
    angle = torch.arange(length).float()[:, None] * frequency
    return torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def hidden(p, config, tokens, cos, sin, dtype):
    """p: name -> effective weight or norm. Returns the final-norm output, f32, [batch, time, dim]."""
    b, t = tokens.shape
    x = F.embedding(tokens, p["token_embd"].float())
    for i in range(config.layers):
        w = lambda name: p[f"blk.{i}.{name}"]
        h = rms_norm(x, w("attn_norm"), config.eps).to(dtype)
        q = (h @ w("attn_q").T).view(b, t, config.heads, config.head_dim).float()
        k = (h @ w("attn_k").T).view(b, t, config.kv_heads, config.head_dim).float()
        v = (h @ w("attn_v").T).view(b, t, config.kv_heads, config.head_dim)
        q = rope(rms_norm(q, w("attn_q_norm"), config.eps).transpose(1, 2), cos, sin).to(dtype)
        k = rope(rms_norm(k, w("attn_k_norm"), config.eps).transpose(1, 2), cos, sin).to(dtype)
        v = v.transpose(1, 2)
        repeat = config.heads // config.kv_heads
        k, v = (y.repeat_interleave(repeat, 1) for y in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + (a.transpose(1, 2).reshape(b, t, -1) @ w("attn_output").T).float()
        h = rms_norm(x, w("ffn_norm"), config.eps).to(dtype)
        gate, up = h @ w("ffn_gate").T, h @ w("ffn_up").T
        x = x + ((F.silu(gate) * up) @ w("ffn_down").T).float()
    return rms_norm(x, p["output_norm"], config.eps)


def loss_sum(p, config, tokens, targets, cos, sin, dtype):
    logits = hidden(p, config, tokens, cos, sin, dtype).to(dtype) @ p["token_embd"].T
    return F.cross_entropy(logits.float().view(-1, config.vocab), targets.view(-1), reduction="sum")
