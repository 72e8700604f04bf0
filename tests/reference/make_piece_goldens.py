"""Texts and the pieces that Hugging Face tokenizers splits them into, for what depends on Unicode.

    make_piece_goldens.py OUT.json
"""

import json
import sys

import tokenizers

from tokenizers_hf import PRE_TOKENIZERS

TEXTS = [
    "a\u180eb  \u180e c",  # no white space since Unicode 6.3
    "a\u0085\u00a0 b\u3000\u200bc\x1cd",
    "\U0002ebf0a 1",  # a letter since 15.1
    "x\U00031350\U0001e030 \U0001e5f0.",  # letters since 15, 15, 16
    "a\U00010d40\U00010d40 \U0001e4f1b",  # numbers since 16, 15
    "7\U00011de0\U00016ff4 \U00011de0",  # numbers since 17
    "I'LL \u2019s we'\u017f 'S",
    "1  2   x  ",
    "a\n\n  b\r\n \n\tc!?\n\n",
    " \u0301a\u0301",
    # marks since 15, 15, 16, 16, 16, by themselves and between letters
    *(f"{mark} .{mark}{mark} a{mark}b" for mark in "\u0cf3\U0001e08f\u0897\U000113b8\U0001e5ee"),
    # runs that no pattern of deepseek-v3 takes, before and between what they do
    "\0\x01 \0a\x02\x021\x03\u4e00\x04! \u200b\u200bb\u200b\u0301 \ue000\ue000\n\0",
    "12345\u4e00\u30fb\u3042\u30ab  7 \u4e00  \u4e00x \u9fa6\u3400 \u309b12",
    "'tis 'T \"Hello\" _x .NET -a #1 a.b, \u00b5m\n\n!!\r\n\n ?",
    # punctuation and symbols since 15, 16
    "\U00011f43 \U00011b00a \u2ffc \U0001fae8\U0001fae9 a\U0001cc00\n \u1b4e\U00010d6e1",
    "a\u0489 \u20e3! \U0001f468\u200d\U0001f469\ufe0f",
]


def pieces(pre, text):
    return [text[start:end] for _, (start, end) in PRE_TOKENIZERS[pre]().pre_tokenize_str(text)]


def main(out):
    entries = [{"text": text} | {pre: pieces(pre, text) for pre in PRE_TOKENIZERS} for text in TEXTS]
    with open(out, "w") as file:
        file.write('{"made_by": "tokenizers %s",\n"entries": [\n' % tokenizers.__version__)
        file.write(",\n".join(json.dumps(entry) for entry in entries))
        file.write("\n]}\n")


main(*sys.argv[1:])
