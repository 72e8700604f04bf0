#!/usr/bin/env python3
"""Splits the corpus into tales, trains the tokenizer on the training text, and stores both as token ids.

    prepare_data.py --train train.txt --valid valid.txt --out DATA

The corpus has one paragraph a line with blank lines between. A new tale begins where a run of title lines is followed by
a paragraph of prose. Each tale is stored as (title ids, body ids), so that training can start some of them without the title.
"""
import argparse
import json
import pathlib
import re

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"

# The `tokenizer.ggml.pre` names these patterns go by.
PATTERNS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}


def is_title(paragraph):
    """A short line without closing punctuation, in capitals, numbered, or in title case."""
    if len(paragraph) > 70 or paragraph[-1] in ",;:'\"" or not re.search(r"[A-Za-z]", paragraph):
        return False
    words = re.findall(r"[A-Za-z']+", paragraph)
    if paragraph.upper() == paragraph:
        return len(words) > 1 or len(words[0]) > 3 or paragraph.rstrip(".").isalpha()
    if paragraph[-1] in ".!?":
        return False
    small = {"a", "an", "and", "the", "of", "in", "on", "to", "for", "with", "who", "or", "at", "from", "by", "that", "his", "her", "was"}
    return len(words) > 1 and all(w[0].isupper() or w in small for w in words)


def split_tales(text):
    """Returns [(title, body)]; the joined pieces are the text."""
    paragraphs = [p.strip() for p in text.split("\n\n") if p.strip()]
    tales, title, body = [], [], []
    for i, p in enumerate(paragraphs):
        if is_title(p):
            following = next((q for q in paragraphs[i + 1 : i + 4] if not is_title(q)), "")
            if body and len(following) > 120:
                tales.append((title, body))
                title, body = [], []
            (body if body else title).append(p)
        else:
            body.append(p)
    tales.append((title, body))
    return [("\n\n".join(t), "\n\n".join(b)) for t, b in tales]


def kind(title, body):
    """"tale", "chapter" (goes on with the tale before it) or "notes" (a scholar's, not a story)."""
    if re.match(r"Source\b|Sources\b|Parallels?\b", body):
        return "notes"
    if re.match(r"(CHAPTER|Chapter|[IVXLC]+\.?$|[IVXLC]+\.?\n|\d+\. )", title) or body[:1].islower():
        return "chapter"
    return "tale"


def train_tokenizer(texts, pre, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERNS[pre]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--train", type=pathlib.Path, required=True)
    args.add_argument("--valid", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, required=True)
    args.add_argument("--pre", choices=PATTERNS, default="qwen2")
    args.add_argument("--vocab", type=int, default=4096)
    args = args.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    train_text = args.train.read_text(encoding="utf-8")
    valid_text = args.valid.read_text(encoding="utf-8")
    tales = split_tales(train_text)
    tokenizer = train_tokenizer([t + "\n\n" + b for t, b in tales], args.pre, args.vocab)
    tokenizer.save(str(args.out / "tokenizer.json"))

    # One flat array: title ids, body ids, title ids, ...; ends[2i], ends[2i+1] close the two parts of tale i.
    parts = [ids for t, b in tales for ids in (tokenizer.encode(t + "\n\n").ids if t else [], tokenizer.encode(b + "\n\n").ids)]
    ends = np.cumsum([len(p) for p in parts])
    kinds = np.array([kind(t, b) for t, b in tales])
    np.savez(args.out / "train.npz", ids=np.concatenate([np.array(p, np.uint16) for p in parts]), ends=ends, kinds=kinds)
    valid = np.array(tokenizer.encode(valid_text).ids, np.uint16)
    np.save(args.out / "valid.npy", valid)
    facts = {
        "pre": args.pre,
        "vocab": tokenizer.get_vocab_size(),
        "end_of_text": tokenizer.token_to_id(END_OF_TEXT),
        "kinds": {str(k): int(n) for k, n in zip(*np.unique(kinds, return_counts=True))},
        "train_tokens": int(ends[-1]),
        "train_bytes": len(train_text.encode()),
        "valid_tokens": len(valid),
        "valid_bytes": len(valid_text.encode()),
    }
    (args.out / "data.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(facts)


if __name__ == "__main__":
    main()
