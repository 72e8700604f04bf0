"""Hugging Face tokenizers built from what a GGUF file holds: tokens, merges, token types, pre."""

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import NFC
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

# Values of tokenizer.ggml.token_type.
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5

# The pattern in the tokenizer.json of Qwen2 and Qwen3.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")

# The pattern in the tokenizer.json of Llama 3.
LLAMA_BPE = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
# The pattern in the tokenizer.json of Qwen3.5: marks go with letters.
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# The three patterns in the tokenizer.json of DeepSeek V3.
DEEPSEEK_V3 = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]


def split(*patterns):
    return Sequence([*(Split(Regex(p), behavior="isolated") for p in patterns),
                     ByteLevel(add_prefix_space=False, use_regex=False)])


# Keyed by the value of tokenizer.ggml.pre. ByteLevel's own pattern is that of GPT-2:
# 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
PRE_TOKENIZERS = {
    "gpt-2": lambda: ByteLevel(add_prefix_space=False),
    "smollm": lambda: Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]),
    "qwen2": lambda: split(QWEN2),
    "llama-bpe": lambda: split(LLAMA_BPE),
    "qwen35": lambda: split(QWEN35),
    "deepseek-v3": lambda: split(*DEEPSEEK_V3),
}
IGNORE_MERGES = ["llama-bpe"]  # model.ignore_merges in its tokenizer.json


def build(tokens, merges, types, pre, parse_special, nfc=False):
    """User-defined tokens are always found in text, control tokens only with parse_special."""
    tokenizer = Tokenizer(BPE({t: i for i, t in enumerate(tokens)},
                              [tuple(m.split(" ")) for m in merges],
                              ignore_merges=pre in IGNORE_MERGES))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[pre]()
    tokenizer.decoder = ByteLevelDecoder()
    if nfc:
        tokenizer.normalizer = NFC()
    found = [USER_DEFINED] + [CONTROL] * parse_special
    tokenizer.add_tokens([AddedToken(t, normalized=False)
                          for t, kind in zip(tokens, types) if kind in found])
    return tokenizer
