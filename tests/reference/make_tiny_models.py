"""Writes the tiny dense models and their golden logits.

    make_tiny_models.py ../data/models
"""

import sys
from pathlib import Path

import gguf
import numpy as np

from tiny_model import Spec, check_file, rope_divisors, tensor_type, write_gguf, write_goldens

LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "factor": 3.0}

# (model, type by the last part of a name; "" for the rest).
MODELS = [
    (Spec("llama_tied", "llama", hidden=128, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=176,
          tied=True, theta=10000.0, pre="smollm", seed=1), {"": "F16"}),
    (Spec("llama_rope_freqs", "llama", hidden=128, layers=2, heads=8, kv_heads=2, head_dim=16, ffn=160,
          tied=False, theta=500000.0, pre="gpt-2", seed=2, rope_scaling=LLAMA3),
     {"output": "F32", "": "F16"}),
    (Spec("qwen3_tied", "qwen3", hidden=128, layers=2, heads=4, kv_heads=1, head_dim=64, ffn=160,
          tied=True, theta=1e6, pre="qwen2", seed=3), {"": "BF16"}),
    (Spec("qwen3_q4", "qwen3", hidden=160, layers=2, heads=5, kv_heads=5, head_dim=32, ffn=224,
          tied=False, theta=1e6, pre="qwen2", seed=4),
     {"token_embd": "Q8_0", "output": "Q8_0", "attn_v": "Q4_0", "ffn_down": "Q4_0", "": "Q4_1"}),
    (Spec("qwen3_yarn", "qwen3", hidden=128, layers=1, heads=2, kv_heads=1, head_dim=64, ffn=160,
          tied=True, theta=1e6, pre="qwen2", seed=11, rope_scaling=YARN), {"": "Q8_0"}),
    (Spec("llama_linear", "llama", hidden=128, layers=1, heads=2, kv_heads=1, head_dim=64, ffn=160,
          tied=True, theta=10000.0, pre="smollm", seed=12, rope_scaling=LINEAR), {"": "Q8_0"}),
]


def main(folder):
    for spec, types in MODELS:
        rng = np.random.default_rng(spec.seed)
        tensors, values = {}, spec.random_norms(rng)
        for name, rows, cols, spread in spec.matrices():
            kind = tensor_type(types.get(name.split(".")[-2], types[""]))
            data = gguf.quantize(rng.normal(0, spread, (rows, cols)).astype(np.float32), kind)
            tensors[name] = (kind.name, data) if data.dtype == np.uint8 else data
            values[name] = gguf.dequantize(data, kind)
        tensors |= {name: w for name, w in values.items() if w.ndim == 1}
        if spec.rope_scaling is LLAMA3:
            tensors["rope_freqs.weight"] = rope_divisors(spec)
        path = folder / f"{spec.name}.gguf"
        write_gguf(path, spec, tensors)
        check_file(path, *write_goldens(folder, spec, values))


main(Path(sys.argv[1]))
