"""Trains the small byte-level BPE vocabulary of the tests.

    train_vocabulary.py ENGLISH.txt ../data/tokenizer/vocabulary.json

ENGLISH.txt: any English prose; its first 300,000 characters are used. The first merges are learned in the
usual way from it and the golden texts. The later ones are learned from the golden texts alone without
splitting them, so that they reach across the places where a pre-tokenizer splits: a missed split shows in
the ids.
"""

import json
import sys
from collections import Counter

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from tokenizer_texts import training_texts
from tokenizers_hf import CONTROL, NORMAL, UNUSED, USER_DEFINED

SIZE = 1500  # 46 blocks of 32 and a rest
ORDINARY = 600  # bytes and first merges
FIRST = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]  # control tokens, as SmolLM2 has them
LAST = ["<think>", "</think>"]  # user-defined tokens, as Qwen has them
UNUSED_TOKENS = ["[PAD1498]", "[PAD1499]"]  # as llama.cpp's converter fills up


def ordinary_merges(english):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=ORDINARY, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([english] + training_texts() * 4, trainer)
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [tuple(m) for m in model["merges"]], tokenizer


def merges_across_splits(tokens, merges, tokenizer, count, longest=12):
    texts = [tokenizer.encode(t).tokens for t in training_texts()]
    while count > 0:
        pairs = Counter(p for t in texts for p in zip(t, t[1:])
                        if len("".join(p)) <= longest and "".join(p) not in FIRST + LAST)
        pair = max(sorted(pairs), key=pairs.get)
        merges.append(pair)
        if "".join(pair) not in tokens:
            tokens.append("".join(pair))
            count -= 1
        texts = [merged(t, pair) for t in texts]


def merged(text, pair):
    out = []
    for token in text:
        if out and (out[-1], token) == pair:
            out[-1] += token
        else:
            out.append(token)
    return out


def main(english_path, out):
    with open(english_path, encoding="utf-8") as f:
        tokens, merges, tokenizer = ordinary_merges(f.read(300_000))
    extra = len(FIRST + LAST + UNUSED_TOKENS)
    merges_across_splits(tokens, merges, tokenizer, SIZE - extra - len(tokens))
    vocabulary = {
        "tokens": FIRST + tokens + LAST + UNUSED_TOKENS,
        "merges": [" ".join(m) for m in merges],
        "token_types": [CONTROL] * len(FIRST) + [NORMAL] * len(tokens)
                       + [USER_DEFINED] * len(LAST) + [UNUSED] * len(UNUSED_TOKENS),
    }
    assert len(vocabulary["tokens"]) == len(set(vocabulary["tokens"])) == SIZE
    with open(out, "w", encoding="ascii") as f:
        f.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in vocabulary.items()) + "\n}\n")


main(*sys.argv[1:])
