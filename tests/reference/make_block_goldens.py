"""Writes tokens of a sample of every Unicode block, by Hugging Face `tokenizers` and Google's `sentencepiece`.

    make_block_goldens.py ../data/tokenizer/vocabulary.json ../data/tokenizer/sentencepiece.json ../data/tokenizer/blocks.json

Needs the package tinyunicodeblock, which knows where blocks begin and end. Characters are sampled from those that this
Python knows (unicodedata.unidata_version); newer libraries know them all.
"""

import json
import random
import sys
import unicodedata

import sentencepiece
import tokenizers
from tinyunicodeblock import block
from tokenizers.normalizers import NFC

import sentencepiece_model
from tokenizers_hf import PRE_TOKENIZERS, build

UNASSIGNED = ("Cn", "Cs")


def samples():
    """Yields each block with four of its characters, a text in which they meet letters, spaces and marks."""
    characters = {}
    for c in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(c) not in UNASSIGNED:
            characters.setdefault(block(c), []).append(c)
    for name, members in characters.items():
        # A few scripts have letters, marks, digits and punctuation: one of each, where there are.
        pick = random.Random(name)
        pick.shuffle(members)
        kinds = {unicodedata.category(c)[0]: c for c in members}
        a, b, c, d = (list(kinds.values()) + pick.choices(members, k=4))[:4]
        yield name, f"{a}{b} {c}{d}a {a}'s{d}!{b}"


def main(vocabulary_path, sentencepiece_path, out):
    with open(vocabulary_path, encoding="ascii") as file:
        vocabulary = list(json.load(file).values())
    with open(sentencepiece_path, encoding="ascii") as file:
        prefixed = sentencepiece_model.build(*json.load(file).values())
    plain = {pre: build(*vocabulary, pre, parse_special=False) for pre in PRE_TOKENIZERS}
    nfc = {pre: build(*vocabulary, pre, parse_special=False, nfc=True) for pre in ("qwen2", "qwen35")}
    entries = []
    for name, text in samples():
        ids = {pre: tokenizer.encode(text).ids for pre, tokenizer in plain.items()}
        entry = {"block": name, "text": text, "ids": ids["gpt-2"]}
        entry |= {pre: own for pre, own in ids.items() if own != ids["gpt-2"]}
        normal = unicodedata.normalize("NFC", text)
        # tokenizers 0.23.3 does not order marks that are newer than Unicode 10.
        if normal != text and NFC().normalize_str(text) == normal:
            entry["nfc"] = {pre: tokenizer.encode(text).ids for pre, tokenizer in nfc.items()}
        entry["sentencepiece"] = prefixed.encode(text)
        entries.append(entry)
    made_by = (f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}, "
               f"characters of Unicode {unicodedata.unidata_version}")
    with open(out, "w", encoding="ascii") as file:
        rows = ",\n".join(json.dumps(entry) for entry in entries)
        file.write(f'{{"made_by": "{made_by}",\n"entries": [\n{rows}\n]}}\n')


main(*sys.argv[1:])
