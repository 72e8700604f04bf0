"""Compares tsq with the vocabulary tests of llama.cpp, whose ids are those of each model's own tokenizer.

    check_vocabularies.py FOLDER TOKENIZE_GGUF [NAME...]

FOLDER: vendor/llama.cpp/models of llama-cpp-python's source package (pip download --no-binary :all:
--no-deps llama-cpp-python). TOKENIZE_GGUF: the program of that name, a target of the tests' build.
NAME: llama-bpe for ggml-vocab-llama-bpe.gguf; all of NAMES if left out.
"""

import subprocess
import sys
import unicodedata

NAMES = ["gpt-2", "qwen2", "llama-bpe", "qwen35", "llama-spm", "phi-3"]
SEPARATOR = "\n__ggml_vocab_test__\n"


def main(folder, tool, *names):
    wrong = 0
    for name in names or NAMES:
        model = f"{folder}/ggml-vocab-{name}.gguf"
        with open(model + ".inp", "rb") as texts:
            found = subprocess.run([tool, model], stdin=texts, stdout=subprocess.PIPE, check=True)
        with open(model + ".inp", encoding="utf-8", newline="") as file:
            texts = file.read().split(SEPARATOR)[:-1]  # what follows the last separator is none
        with open(model + ".out", encoding="ascii") as file:
            expected = file.read().splitlines()
        found = found.stdout.decode().splitlines()[:-1]
        pairs = list(zip(texts, expected, found, strict=True))
        if name == "qwen35":  # these ids are llama.cpp's, which does not apply NFC
            pairs = [p for p in pairs if unicodedata.is_normalized("NFC", p[0])]
        bad = [(text, e, f) for text, e, f in pairs if e.split() != f.split()]
        for text, e, f in bad:
            print(f"{name}: {text!r}\n  expected {e}\n  found    {f}")
        print(f"{name}: {len(pairs)} texts, {len(bad)} differ")
        wrong += len(bad)
    sys.exit(wrong != 0)


main(*sys.argv[1:])
