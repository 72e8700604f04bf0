"""Compares tsq with other tokenizers on real vocabularies: prose, the golden texts, and every Unicode block sampled.

    compare_tokenizers.py FOLDER TOKENIZE_GGUF ENGLISH.txt

FOLDER and TOKENIZE_GGUF as in check_vocabularies.py. Llama 3's is compared with tiktoken and Hugging Face tokenizers, those of
GPT-2, Qwen2 and Qwen3.5 with the latter, Llama 2's with sentencepiece.
"""

import random
import subprocess
import sys
import unicodedata

import tiktoken
from gguf import GGUFReader
from tokenizers.normalizers import NFC

import sentencepiece_model
from make_tokenizer_goldens import byte_characters
from tokenizer_texts import TEXTS
from tokenizers_hf import LLAMA_BPE, build

SEPARATOR = "\n__ggml_vocab_test__\n"
LLAMA_3_ORDINARY = 128000  # ids; the special tokens follow


def texts(english_path):
    with open(english_path, encoding="utf-8", newline="") as file:
        english = file.read(200_000)
    found = TEXTS + [english[i:i + 2000] for i in range(0, len(english), 2000)]
    pick = random.Random(1)
    for block in range(0, 0x30000, 0x80):
        characters = [c for c in map(chr, range(block, block + 0x80))
                      if unicodedata.category(c) not in ("Cn", "Co", "Cs")]
        if characters:
            words = ["".join(pick.choices(characters, k=pick.randint(1, 4))) for _ in range(8)]
            found.append(" ".join(w + pick.choice(["", "a", "1", "!", "'s"]) for w in words))
    # tokenizers 0.23.3 does not order marks that are newer than Unicode 10.
    return [t for t in found if NFC().normalize_str(t) == unicodedata.normalize("NFC", t)]


def report(name, texts, found, expected):
    bad = [t for t, f, e in zip(texts, found, expected, strict=True) if f != list(e)]
    for text in bad:
        print(f"{name}: {text!r}")
    print(f"{name}: {len(texts)} texts, {len(bad)} differ")
    return len(bad)


def llama_3_of_tiktoken(tokens):
    bytes_of = {c: b for b, c in byte_characters().items()}
    ranks = {bytes(bytes_of[c] for c in t): i for i, t in enumerate(tokens[:LLAMA_3_ORDINARY])}
    return tiktoken.Encoding("llama3", pat_str=LLAMA_BPE, mergeable_ranks=ranks, special_tokens={})


def main(folder, tool, english_path):
    inputs = texts(english_path)
    wrong = 0
    for name in ("gpt-2", "qwen2", "qwen35", "llama-bpe", "llama-spm"):
        path = f"{folder}/ggml-vocab-{name}.gguf"
        output = subprocess.run([tool, path], input=SEPARATOR.join(inputs).encode(),
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        found = [[int(i) for i in line.split()] for line in output.splitlines()]
        fields = GGUFReader(path).fields
        tokens, types = (fields[f"tokenizer.ggml.{k}"].contents() for k in ("tokens", "token_type"))
        if name == "llama-spm":
            scores = fields["tokenizer.ggml.scores"].contents()
            model = sentencepiece_model.build(tokens, scores, types)
            wrong += report(name, inputs, found, model.encode(inputs))
            continue
        merges = fields["tokenizer.ggml.merges"].contents()
        model = build(tokens, merges, types, name, parse_special=False, nfc=name.startswith("qwen"))
        wrong += report(name, inputs, found, [e.ids for e in model.encode_batch(inputs)])
        if name == "llama-bpe":
            encode = llama_3_of_tiktoken(tokens).encode_ordinary
            wrong += report("llama-bpe by tiktoken", inputs, found, map(encode, inputs))
    sys.exit(wrong != 0)


main(*sys.argv[1:])
