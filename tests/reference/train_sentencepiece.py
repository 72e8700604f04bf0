"""Trains the small SentencePiece BPE vocabulary of the tests and writes its goldens.

    train_sentencepiece.py ENGLISH.txt ../data/tokenizer/sentencepiece.json ../data/tokenizer/sentencepiece_golden.json

ENGLISH.txt: any English prose; its first 300,000 characters are used. Every ninth token of several characters is made
an unused one, so that what they would be merged to falls apart again.
"""

import io
import json
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tokenizer_texts import TEXTS, training_texts

SIZE = 1000
USER_DEFINED = ["<think>", "</think>", "\u2581\u2581", "<b>"]
MORE_TEXTS = [
    "\u2581a\u2581\u2581b\u2581",  # how SentencePiece writes spaces
    "<think>first", " <think> x  <think>", "a<b><b>b", "    four", "<b>  <b>   <b>",
    "<0x41>", "<unk><s></s>", "<s>Hello</s>",
    "\ufffd \ufdd0 \U0010ffff \u0378",
]


def train(english):
    model = io.BytesIO()
    # As Llama 2's: no normalization, all white space kept, digits split.
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(english.splitlines() + training_texts() * 4), model_writer=model,
        model_type="bpe", vocab_size=SIZE, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, character_coverage=0.999, num_threads=1,
        allow_whitespace_only_pieces=True, user_defined_symbols=USER_DEFINED, control_symbols=["<|end|>"],
        minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    longer = [p for p in proto.pieces if p.type == p.NORMAL and len(p.piece) > 1]
    for piece in longer[4::9]:
        piece.type = piece.UNUSED
    return proto


def processor(proto, add_dummy_prefix):
    proto.normalizer_spec.add_dummy_prefix = add_dummy_prefix
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())


def main(english_path, vocabulary_path, golden_path):
    with open(english_path, encoding="utf-8") as file:
        proto = train(file.read(300_000))
    vocabulary = {
        "tokens": [p.piece for p in proto.pieces],
        "scores": [p.score for p in proto.pieces],
        "token_types": [p.type for p in proto.pieces],  # GGUF has SentencePiece's numbers
    }
    with open(vocabulary_path, "w", encoding="ascii") as file:
        file.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in vocabulary.items()) + "\n}\n")
    entries = [{"text": text} for text in TEXTS + MORE_TEXTS]
    for key, prefix in (("prefix", True), ("plain", False)):
        model = processor(proto, prefix)
        for entry in entries:
            entry[key] = model.encode(entry["text"])
    with open(golden_path, "w", encoding="ascii") as file:
        rows = ",\n".join(json.dumps(entry) for entry in entries)
        file.write(f'{{"made_by": "sentencepiece {sentencepiece.__version__}",\n"entries": [\n{rows}\n]}}\n')


main(*sys.argv[1:])
