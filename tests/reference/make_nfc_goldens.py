"""Texts and their Unicode NFC, where Python's unicodedata and Hugging Face tokenizers agree.

    make_nfc_goldens.py ../data/tokenizer/nfc.json

tokenizers 0.23.3 does not order marks that are newer than Unicode 10; such texts are left out.
"""

import json
import random
import sys
import unicodedata

import tokenizers
from tokenizers.normalizers import NFC

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def texts():
    changing = [c for c in CHARACTERS if unicodedata.normalize("NFC", c) != c]
    composed = [c for c in CHARACTERS if unicodedata.normalize("NFC", c) == c != unicodedata.normalize("NFD", c)]
    yield from changing[::12]
    yield from (unicodedata.normalize("NFD", c) for c in [*composed[:800:9], *composed[800::173]])
    marks = {unicodedata.combining(c): c for c in reversed(CHARACTERS) if unicodedata.combining(c)}
    pick = random.Random(1)
    for base in "aEoU\u1100\uac00\u03b1\u0915 ":
        for n in (2, 3, 5, 9):
            yield base + "".join(pick.choices(sorted(marks.values()), k=n)) + "\u0301x"
    yield "".join(sorted(marks.values(), reverse=True))
    yield "\u1100\u1161\u11a8\u11a8 \u1100\u1161\u1161 \uac00\u11a7\uac00\u11a8 \u1100\u11a8"
    yield "\u2126\u212b\ufb01\u00bd\u0344\u0958\U0001d15e\u0340a"  # signs, compatibility, exclusions


def main(out):
    entries = []
    for text in texts():
        nfc = unicodedata.normalize("NFC", text)
        if NFC().normalize_str(text) == nfc:
            entries.append([text, nfc])
    with open(out, "w", encoding="ascii") as file:
        file.write('{"made_by": "tokenizers %s and Unicode %s",\n"entries": [\n' %
                   (tokenizers.__version__, unicodedata.unidata_version))
        file.write(",\n".join(json.dumps(entry) for entry in entries))
        file.write("\n]}\n")


main(*sys.argv[1:])
