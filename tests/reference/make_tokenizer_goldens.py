"""Writes the tokenizer goldens with Hugging Face `tokenizers`.

    make_tokenizer_goldens.py ../data/tokenizer/vocabulary.json ../data/tokenizer/golden.json

The format of the output is in ../data/tokenizer/README.md.
"""

import json
import sys
import unicodedata

import tokenizers

from tokenizer_texts import INVALID, TEXTS
from tokenizers_hf import PRE_TOKENIZERS, build


def goldens(vocabulary, pre_tokenizers):
    """vocabulary: tokens, merges, token types. Returns one dict a text.

    A byte without a token is dropped, as `tokenizers` does: SmolLM2 has none for 21 bytes, 0x04 and
    0x1d among them.
    """
    entries = [{"text": t} for t in TEXTS] + [{"hex": b.hex()} for b in INVALID]
    ids = {t: i for i, t in enumerate(vocabulary[0])}
    byte_ids = {b: [ids[c]] if c in ids else [] for b, c in byte_characters().items()}
    for pre in pre_tokenizers:
        plain = build(*vocabulary, pre, parse_special=False)
        special = build(*vocabulary, pre, parse_special=True)
        nfc = build(*vocabulary, pre, parse_special=False, nfc=True)
        for entry in entries:
            if "hex" in entry:
                entry[pre] = {"ids": encode_bytes(plain, byte_ids, bytes.fromhex(entry["hex"]))}
                continue
            text = entry["text"]
            entry[pre] = golden = {"ids": plain.encode(text).ids}
            if (ids := special.encode(text).ids) != golden["ids"]:
                golden["special"] = ids
            if unicodedata.normalize("NFC", text) != text:
                golden["nfc"] = nfc.encode(text).ids
    return entries


def byte_characters():
    """GPT-2's map from a byte to the character that stands for it in a vocabulary."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    return {**{b: chr(b) for b in visible}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


def encode_bytes(tokenizer, byte_ids, data):
    ids = []
    for part in split_invalid(data):
        ids += byte_ids[part] if isinstance(part, int) else tokenizer.encode(part).ids
    return ids


def split_invalid(data):
    """Yields the longest well-formed runs as str and every other byte alone as int."""
    start = 0
    while start < len(data):
        try:
            yield data[start:].decode()
            return
        except UnicodeDecodeError as e:
            if e.start > 0:
                yield data[start:start + e.start].decode()
            yield data[start + e.start]
            start += e.start + 1


def write(entries, out):
    with open(out, "w", encoding="ascii") as f:
        rows = ",\n".join(json.dumps(e) for e in entries)
        f.write(f'{{"made_by": "tokenizers {tokenizers.__version__}",\n"entries": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as f:
        vocabulary = list(json.load(f).values())
    entries = goldens(vocabulary, PRE_TOKENIZERS)
    decoder = build(*vocabulary, "gpt-2", parse_special=False)
    for e in entries:
        if "text" in e:
            assert all(decoder.decode(e[pre]["ids"], skip_special_tokens=False) == e["text"]
                       for pre in PRE_TOKENIZERS)
    write(entries, sys.argv[2])
