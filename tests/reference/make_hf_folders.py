"""Writes the tiny Hugging Face folders of the tests, their golden logits, and their tokenizers.

    make_hf_folders.py ../data

Needs transformers, tokenizers, safetensors, gguf, torch.
"""

import json
import sys
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors
from transformers.convert_slow_tokenizer import generate_merges
from transformers.integrations.bitnet import pack_weights

from tiny_model import Spec, VOCAB, hf_model, hf_name, small_vocabulary, write_goldens
from tokenizers_hf import CONTROL, PRE_TOKENIZERS, build

LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
HERE = Path(__file__).parent

# (model, size of a shard)
DENSE = [
    (Spec("hf_llama", "llama", hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=96, tied=False,
          theta=500000.0, pre="llama-bpe", seed=21, rope_scaling=LLAMA3), "120KB"),
    (Spec("hf_qwen3", "qwen3", hidden=64, layers=2, heads=3, kv_heads=1, head_dim=32, ffn=96, tied=True,
          theta=1e6, pre="qwen2", seed=22, rope_scaling=YARN), "5GB"),
]
PACKED = Spec("hf_bitnet", "llama", hidden=128, layers=1, heads=4, kv_heads=2, head_dim=32, ffn=256, tied=True,
              theta=10000.0, pre="gpt-2", seed=23)


def bf16(values):
    return torch.from_numpy(np.asarray(values)).to(torch.bfloat16).double().numpy()


def random_values(spec):
    rng = np.random.default_rng(spec.seed)
    values = spec.random_norms(rng)
    for name, rows, cols, spread in spec.matrices():
        values[name] = rng.normal(0, spread, (rows, cols))
    return {name: bf16(w) for name, w in values.items()}


def finished_tokenizer(tokens, merges, types, pre, nfc):
    """A tokenizer whose added tokens are marked as tokenizer.json has them."""
    tokenizer = build(tokens, merges, types, pre, parse_special=False, nfc=nfc)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t, kind in zip(tokens, types) if kind == CONTROL])
    return tokenizer


def save_tokenizer(folder, spec):
    """The small vocabulary without its last token, which has no row of its own."""
    tokens, merges, types = (part for part in small_vocabulary())
    tokens, types = tokens[:-1], types[:-1]
    tokenizer = finished_tokenizer(tokens, merges, types, spec.pre, nfc=spec.pre == "qwen2")
    if spec.name == "hf_llama":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[("<|endoftext|>", 0)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|im_end|>",
        chat_template="{{ messages }}").save_pretrained(folder)


def save_dense(out, spec, shard):
    values = random_values(spec)
    folder = out / spec.name
    hf_model(spec, values).to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 1]}\n')
    save_tokenizer(folder, spec)
    write_goldens(out, spec, values)


def is_projection(name):
    return name.endswith((".attn_q.weight", ".attn_k.weight", ".attn_v.weight", ".attn_output.weight",
                          ".ffn_gate.weight", ".ffn_up.weight", ".ffn_down.weight"))


def packed_by_definition(codes):
    """Bits 2k, 2k + 1 of byte row r: output row r + k R, as code = weight + 1."""
    quarters = (codes + 1).astype(np.uint8).reshape(4, -1, codes.shape[1])
    return quarters[0] | quarters[1] << 2 | quarters[2] << 4 | quarters[3] << 6


def save_packed(out, spec):
    """BitNet's packed weights. Every scale is a power of two, so that 1 / scale is exact: the same folder
    serves both linear classes, with golden logits of each."""
    rng = np.random.default_rng(spec.seed)
    values = spec.random_norms(rng)
    values = {name: bf16(w) for name, w in values.items()}
    stored, multiplied, divided = {}, dict(values), dict(values)
    for i, (name, rows, cols, spread) in enumerate(spec.matrices()):
        if not is_projection(name):
            multiplied[name] = divided[name] = bf16(rng.normal(0, spread, (rows, cols)))
            continue
        codes = rng.integers(-1, 2, (rows, cols)).astype(np.int8)
        # In transformers' row order, which is not that of `values` for q and k.
        hf = np.array(codes)
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            hf = codes.reshape(-1, spec.head_dim // 2, 2, cols).swapaxes(1, 2).reshape(codes.shape)
        packed = pack_weights(torch.from_numpy(hf.copy())).numpy()  # changes what it is given
        assert np.array_equal(packed, packed_by_definition(hf))
        scale = 2.0 ** (-3 - i % 3)
        stored[hf_name(name)] = packed
        stored[hf_name(name).replace(".weight", ".weight_scale")] = scale
        multiplied[name], divided[name] = codes * scale, codes / scale
    folder = out / spec.name
    hf_model(spec, multiplied).to(torch.bfloat16).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    for name, w in stored.items():
        is_packed = isinstance(w, np.ndarray)
        weights[name] = torch.from_numpy(w) if is_packed else torch.tensor([w], dtype=torch.bfloat16)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                     "quantization_mode": "offline", "modules_to_not_convert": None}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").unlink()
    write_goldens(out, spec, multiplied)
    write_goldens(out, Spec(**{**spec.__dict__, "name": spec.name + "_divided"}), divided)


def save_byte_level(out):
    """tokenizer.json of the tests' vocabulary, and the parts of it by which the pre-tokenizers differ."""
    with open(HERE / "../data/tokenizer/vocabulary.json", encoding="ascii") as f:
        vocabulary = list(json.load(f).values())
    rules = {}
    for pre in PRE_TOKENIZERS:
        nfc = pre in ("qwen2", "qwen35")
        whole = json.loads(finished_tokenizer(*vocabulary, pre, nfc).to_str())
        rules[pre] = {"pre_tokenizer": whole["pre_tokenizer"], "normalizer": whole["normalizer"],
                      "ignore_merges": whole["model"]["ignore_merges"]}
        if pre == "gpt-2":
            del whole["pre_tokenizer"], whole["normalizer"], whole["model"]["ignore_merges"]
            (out / "hf_byte_level.json").write_text(json.dumps(whole) + "\n", encoding="ascii")
    (out / "hf_text_rules.json").write_text(json.dumps(rules, indent=1) + "\n", encoding="ascii")


def save_sentencepiece(out):
    """tokenizer.json as transformers makes it of a SentencePiece model with byte fallback, with ids."""
    full = json.loads((HERE / "../data/tokenizer/sentencepiece.json").read_text())
    google = json.loads((HERE / "../data/tokenizer/sentencepiece_golden.json").read_text())
    vocab = {t: i for i, t in enumerate(full["tokens"])}
    # User-defined pieces are ordinary ones here, and unused ones are used.
    merges = generate_merges(vocab, dict(zip(full["tokens"], full["scores"])))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t, kind in zip(full["tokens"], full["token_types"]) if kind in (2, CONTROL)])
    replace = normalizers.Replace(" ", "\u2581")
    forms = {
        "prefix": (normalizers.Sequence([normalizers.Prepend("\u2581"), replace]), None),
        "plain": (replace, None),
        "never": (None, pre_tokenizers.Metaspace(prepend_scheme="never", split=False)),
    }
    entries = [{"text": e["text"]} for e in google["entries"]]
    rules = {}
    for name, (normalizer, pre) in forms.items():
        whole = json.loads(tokenizer.to_str())
        rules[name] = {"normalizer": normalizer and json.loads(normalizer.__getstate__()),
                       "pre_tokenizer": pre and json.loads(pre.__getstate__())}
        form = tokenizers.Tokenizer.from_str(json.dumps({**whole, **rules[name]}))
        for e in entries:
            e[name] = form.encode(e["text"]).ids
    whole = json.loads(tokenizer.to_str())
    for key in ("normalizer", "pre_tokenizer"):
        del whole[key]
    for e in entries:
        assert e.pop("never") == e["plain"], e["text"]
    (out / "hf_sentencepiece.json").write_text(json.dumps(whole) + "\n", encoding="ascii")
    (out / "hf_sentencepiece_rules.json").write_text(json.dumps(rules, indent=1) + "\n", encoding="ascii")
    rows = ",\n".join(json.dumps(e) for e in entries)
    (out / "hf_sentencepiece_golden.json").write_text(
        f'{{"made_by": "tokenizers {tokenizers.__version__}",\n"entries": [\n{rows}\n]}}\n', encoding="ascii")


def main(out):
    for spec, shard in DENSE:
        save_dense(out / "models", spec, shard)
    save_packed(out / "models", PACKED)
    save_byte_level(out / "tokenizer")
    save_sentencepiece(out / "tokenizer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
