"""Writes tiny qwen35 models as the Hugging Face folders that transformers saves, with their golden logits: value
heads by key head, without any permutation that a converter makes; 2, 3 and 4 of them a key head.

    make_qwen35_folders.py ../data/models
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers

from make_hf_folders import save_tokenizer
from make_qwen35_ternary import HybridSpec, hf_model
from tiny_model import write_goldens


@dataclass(frozen=True)
class FirstAttends(HybridSpec):
    """A pattern that no interval describes."""

    def is_full(self, layer):
        return layer == 0


def random_values(spec):
    rng = np.random.default_rng(spec.seed)
    values = {name: rng.normal(0, spread, (rows, cols)) for name, rows, cols, spread in spec.matrices()}
    return values | spec.others(rng)


def rounded_model(spec, values):
    """With the weights that a folder of BF16 holds."""
    model = hf_model(spec, values)
    with torch.no_grad():
        for w in model.parameters():
            w.copy_(w.bfloat16())
    return model


def image_model(model):
    """The same behind a tower for images, as Qwen publishes them."""
    config = transformers.Qwen3_5Config(
        text_config=model.config.to_dict(), tie_word_embeddings=model.config.tie_word_embeddings,
        vision_config=dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, num_position_embeddings=4,
                           out_hidden_size=model.config.hidden_size, patch_size=2))
    torch.manual_seed(0)
    whole = transformers.Qwen3_5ForConditionalGeneration(config)
    whole.model.language_model.load_state_dict(model.model.state_dict())
    whole.lm_head.load_state_dict(model.lm_head.state_dict())
    return whole


def save(out, spec, of_images=False):
    values = random_values(spec)
    model = rounded_model(spec, values)
    model = image_model(model) if of_images else model
    folder = out / spec.name
    model.to(torch.bfloat16).save_pretrained(folder)
    save_tokenizer(folder, spec)
    write_goldens(out, spec, values, rounded_model)


def main(out):
    shape = dict(arch="qwen35", hidden=64, heads=3, kv_heads=1, head_dim=32, theta=1e7, pre="qwen35",
                 rope_dims=16, k_dim=32)
    save(out, HybridSpec("hf_qwen35_two", layers=2, v_heads=4, v_dim=32, ffn=64, tied=True, seed=51, **shape))
    save(out, HybridSpec("hf_qwen35_three", layers=2, v_heads=6, v_dim=16, ffn=64, tied=False, seed=52, **shape),
         of_images=True)
    save(out, FirstAttends("hf_qwen35_four", layers=3, v_heads=8, v_dim=16, ffn=32, tied=True, seed=53, **shape))


main(Path(sys.argv[1]))
