"""Writes the tiny dense models of qwen35 and their golden logits: 2, 3 and 4 value heads a key head, as
llama.cpp's converter writes them (value heads tiled, norms of 1 + w, decays, taps squeezed).

    make_qwen35_models.py ../data/models
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import numpy as np

from make_qwen35_ternary import HybridSpec, hf_model
from numpy_qwen35 import Qwen35
from tiny_model import check_file, tensor_type, write_gguf, write_goldens


@dataclass(frozen=True)
class ListedSpec(HybridSpec):
    """The kind of each layer from a list in the metadata."""
    recurrent: tuple = ()

    def is_full(self, layer):
        return not self.recurrent[layer]

    def keys(self):
        listed = [*self.recurrent, False]  # one more for the layer that predicts a further token
        return [(k, v) for k, v in super().keys() if not k.endswith("full_attention_interval")] + [
            ("qwen35.attention.recurrent_layers", listed), ("qwen35.nextn_predict_layers", 1)]


class ListedQwen35(Qwen35):
    """The trunk of such a file."""

    def __init__(self, metadata, tensors):
        trunk = {"qwen35.block_count": metadata["qwen35.block_count"] - 1, "qwen35.full_attention_interval": 1}
        super().__init__(metadata | trunk, tensors)

    def attention(self, x, layer):
        is_recurrent = self.key("attention.recurrent_layers")[int(layer.split(".")[1])]
        return self.delta_net(x, layer) if is_recurrent else super().attention(x, layer)


def prediction_layer(spec, rng):
    """Tensors of a layer behind the trunk, which only the prediction of further tokens reads."""
    one = replace(spec, layers=1, tied=True, recurrent=(False,))
    shapes = {name: (rows, cols) for name, rows, cols, _ in one.matrices() if name.startswith("blk")}
    shapes |= {name: w.shape for name, w in one.others(rng).items() if name.startswith("blk")}
    shapes |= {"blk.0.nextn.eh_proj.weight": (spec.hidden, 2 * spec.hidden),
               "blk.0.nextn.enorm.weight": (spec.hidden,), "blk.0.nextn.hnorm.weight": (spec.hidden,)}
    last = f"blk.{spec.layers}."
    values = {name.replace("blk.0.", last): rng.normal(0, 1, shape).astype(np.float32)
              for name, shape in shapes.items()}
    return {name: w if w.ndim == 1 else ("Q8_0", gguf.quantize(w, tensor_type("Q8_0")))
            for name, w in values.items()}


def write(folder, spec, types, graph=Qwen35, further=False):
    """types: by the last part of a name; "" for the rest."""
    rng = np.random.default_rng(spec.seed)
    others = spec.others(rng)
    values = dict(others)
    tensors = {name: spec.tile_rows(name, w) for name, w in others.items()}
    for name in others:
        if name.endswith(("ssm_alpha.weight", "ssm_beta.weight")):
            tensors[name] = "BF16", gguf.quantize(tensors[name], tensor_type("BF16"))
    for name, rows, cols, spread in spec.matrices():
        kind = tensor_type(types.get(name.split(".")[-2], types[""]))
        by_row = spec.tile_rows(name, np.arange(rows))
        by_col = np.arange(cols)
        if name.endswith("ssm_out.weight"):
            by_col = spec.tile(by_col, 0, 0, spec.v_dim)
        w = rng.normal(0, spread, (rows, cols)).astype(np.float32)
        stored = gguf.quantize(w[by_row][:, by_col], kind)
        tensors[name] = (kind.name, stored) if stored.dtype == np.uint8 else stored
        values[name] = gguf.dequantize(stored, kind)[np.argsort(by_row)][:, np.argsort(by_col)]
    goldens = write_goldens(folder, spec, values, hf_model)
    path = folder / f"{spec.name}.gguf"
    blocks = spec.layers + further
    if further:
        tensors |= prediction_layer(spec, rng)
    write_gguf(path, replace(spec, layers=blocks), tensors, spec.keys())
    check_file(path, *goldens, graph=graph)


def main(folder):
    shape = dict(arch="qwen35", hidden=64, heads=3, kv_heads=1, head_dim=32, ffn=64, theta=1e7, pre="qwen35",
                 rope_dims=16, k_dim=32, v_dim=32)
    write(folder, HybridSpec("qwen35_two", layers=3, interval=3, v_heads=4, tied=True, seed=41, **shape),
          {"": "Q8_0"})
    shape["v_dim"] = 16
    write(folder, HybridSpec("qwen35_three", layers=2, v_heads=6, tied=False, seed=42, **shape),
          {"": "Q8_0", "ssm_out": "BF16", "output": "F16"})
    write(folder, ListedSpec("qwen35_four", layers=3, v_heads=8, tied=True, seed=43,
                             recurrent=(False, True, True), **shape | {"ffn": 32}),
          {"": "Q8_0", "ssm_out": "F16"}, ListedQwen35, further=True)


main(Path(sys.argv[1]))
