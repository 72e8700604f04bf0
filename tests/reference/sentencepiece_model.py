"""A sentencepiece processor from what a GGUF file holds: tokens, scores, token types."""

import sentencepiece
from sentencepiece import sentencepiece_model_pb2


def build(tokens, scores, types, add_dummy_prefix=True):
    """As Llama 2's: no normalization, all white space kept, bytes for what is no token."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.add_dummy_prefix = add_dummy_prefix
    for token, score, kind in zip(tokens, scores, types):
        proto.pieces.add(piece=token, score=score, type=kind)
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
