"""GGUF: one field of a sound file says something else."""

import struct

from gguf_file import (ARRAY, BOOL, I32, STRING, U16, U32, U64, U8, array, text)
from hostile.support import HostileTest, I64_MIN, U32_MAX, U64_MAX, counts, key, promise, tiny, vocabulary
from tsq_tool import DAMAGED, SUCCESS, UNSUPPORTED, USAGE


def twice(g):
    g.add("codes", 0, [1], bytes(4))


def small_dim_of_a_large_type(g):
    g.tensor("codes").update(type=142, dims=[128, 2**57])  # 2^57 blocks of 34 bytes: 2^62 weights


GGUF_FIELDS = [  # what is wrong, exit, message, change
    ("nothing", SUCCESS, "", lambda g: None),
    ("magic", DAMAGED, "it starts with ('GGUG'|47475547), expected", counts(magic=b"GGUG")),
    ("version 0", UNSUPPORTED, "GGUF version 0, versions 2 and 3", counts(version=0)),
    ("version 1", UNSUPPORTED, "GGUF version 1, versions 2 and 3", counts(version=1)),
    ("version 4", UNSUPPORTED, "GGUF version 4, versions 2 and 3", counts(version=4)),
    ("big-endian", UNSUPPORTED, "big-endian GGUF .version 3", counts(version=3 << 24)),
    # A small file with a big promise.
    ("2^64 - 1 tensors", DAMAGED, "promises 18446744073709551615 tensors", counts(n_tensors=U64_MAX)),
    ("2^63 tensors", DAMAGED, "promises 9223372036854775808 tensors", counts(n_tensors=I64_MIN)),
    ("one tensor too many", DAMAGED, "name|cut off|dims", counts(n_tensors=3)),
    ("2^64 - 1 keys", DAMAGED, "18446744073709551615 metadata entries", counts(n_keys=U64_MAX)),
    ("one key too many", DAMAGED, "cut off|metadata", counts(n_keys=4)),
    ("string of 2^64 - 1", DAMAGED, "string at byte .* cut off: it needs 18446744073709551615",
     lambda g: g.keys.update(x=(STRING, text("y", U64_MAX)))),
    ("string of 2^63", DAMAGED, "string at byte .* cut off",
     lambda g: g.keys.update(x=(STRING, text("y", I64_MIN)))),
    ("array of 2^64 - 1 bytes", DAMAGED, "promises 18446744073709551615 elements",
     key("x", ARRAY, array(U8, [1], U64_MAX))),
    ("array of 2^61 u64: the bytes wrap", DAMAGED, "promises 2305843009213693952 elements",
     key("x", ARRAY, array(U64, [1], 2**61))),
    ("array of 2^61 strings", DAMAGED, "promises 2305843009213693952 elements",
     key("x", ARRAY, array(STRING, ["y"], 2**61))),
    ("array nested five times", DAMAGED, "nested deeper than 4",
     key("x", ARRAY, struct.pack("<IQ", ARRAY, 1) * 5 + array(U8, [1]))),
    ("value of type 13", DAMAGED, "value type 13 .* unknown",
     lambda g: g.keys.update(x=(13, bytes(8)))),
    ("array of type 2^32 - 1", DAMAGED, "value type 4294967295 .* unknown",
     key("x", ARRAY, struct.pack("<IQ", U32_MAX, 0))),
    ("boolean 2", DAMAGED, "boolean .* is 2, expected 0 or 1", key("x", BOOL, 2)),
    ("empty key", DAMAGED, "key at byte .* is empty", key("", U8, 1)),
    ("key of 65,536 bytes", DAMAGED, "65536 bytes, at most 65535", key("k" * 65536, U8, 1)),
    ("tensor name of 2^64 - 1", DAMAGED, "record of tensor 1 .* cut off",
     promise("codes", name_length=U64_MAX)),
    ("tensor name empty", DAMAGED, "empty name", promise("codes", name="")),
    ("tensor name of 1,025 bytes", DAMAGED, "1025 bytes", promise("codes", name="n" * 1025)),
    ("tensor name not UTF-8", DAMAGED, "expected UTF-8", promise("codes", name=b"\xff\xfe")),
    ("tensor name with a line break", DAMAGED, "expected UTF-8", promise("codes", name="a\nb")),
    ("two tensors of one name", DAMAGED, "'codes' is there twice", twice),
    ("no dims", DAMAGED, "0 dims, expected 1 to 4", promise("codes", dims=[])),
    ("5 dims", DAMAGED, "5 dims, expected 1 to 4", promise("codes", dims=[128, 2, 1, 1, 1])),
    ("2^32 - 1 dims", DAMAGED, "4294967295 dims", promise("codes", n_dims=U32_MAX)),
    ("dim 0", DAMAGED, "dim 1 is 0", promise("codes", dims=[256, 0])),
    ("2^32 x 2^32 inputs: 0 weights", DAMAGED, "wrap", promise("codes", dims=[2**32, 2**32])),
    ("2^63 x 2", DAMAGED, "wrap", promise("codes", dims=[I64_MIN, 2])),
    ("2^64 - 128 inputs", DAMAGED, "wrap|bytes at", promise("codes", dims=[2**64 - 128])),
    ("2^62 weights of 34 bytes for 128", DAMAGED, "bytes at|wrap", small_dim_of_a_large_type),
    ("2^62 f32: the bytes wrap to 0", DAMAGED, "wrap", promise("token_embd.weight", dims=[2**62])),
    ("the four dims wrap to a small number", DAMAGED, "wrap",
     promise("codes", dims=[128, 2**32 + 1, 2**32 - 1, 2**32])),
    ("a terabyte", DAMAGED, "bytes at 768, the data has", promise("codes", dims=[256, 2**34])),
    ("one row too many", DAMAGED, "bytes at 768, the data has", promise("codes", dims=[256, 3])),
    ("offset + size wraps", DAMAGED, "bytes at 18446744073709551584",
     promise("codes", offset=2**64 - 32)),
    ("offset 2^63", DAMAGED, "bytes at 9223372036854775808", promise("codes", offset=I64_MIN)),
    ("offset not aligned", DAMAGED, "offset 769 is not a multiple", promise("codes", offset=769)),
    ("offset behind the end", DAMAGED, "bytes at 4096", promise("codes", offset=4096)),
    ("overlapping", DAMAGED, "overlap", promise("codes", offset=0)),
    ("alignment 0", DAMAGED, "general.alignment' is 0", key("general.alignment", U32, 0)),
    ("alignment 3", DAMAGED, "general.alignment' is 3", key("general.alignment", U32, 3)),
    ("alignment 2^31", DAMAGED, "general.alignment' is 2147483648",
     key("general.alignment", U32, 2**31)),
    ("alignment a text", DAMAGED, "general.alignment' is string",
     key("general.alignment", STRING, "32")),
    ("alignment of 1 MiB: beyond the end", DAMAGED, "the data has 0",
     key("general.alignment", U32, 2**20)),
    ("part 1 of 65,535", USAGE, "part 1 of 65535 .* not its usual name",
     lambda g: g.set("split.no", U16, 0).set("split.count", U16, 65535)),
    ("part without a number", DAMAGED, "'split.no' is missing", key("split.count", U16, 2)),
    ("part 3 of 2", DAMAGED, "split.no' is 2, expected at most 1",
     lambda g: g.set("split.no", U16, 2).set("split.count", U16, 2)),
]

# Only convert asks for these.
GGUF_MODELS = [
    ("no architecture", DAMAGED, "general.architecture' is missing",
     lambda g: g.erase("general.architecture")),
    ("architecture a number", DAMAGED, "general.architecture' is u32",
     key("general.architecture", U32, 1)),
    ("embedding_length 0", DAMAGED, "is 0, expected 1", key("none.embedding_length", U32, 0)),
    ("embedding_length 2^32", DAMAGED, "is 4294967296", key("none.embedding_length", U64, 2**32)),
    ("embedding_length negative", DAMAGED, "embedding_length' is i32, expected an integer of at least 0",
     key("none.embedding_length", I32, -1)),
    ("no layers", DAMAGED, "block_count' is missing", lambda g: g.erase("none.block_count")),
    ("no embedding", DAMAGED, "'token_embd.weight' is missing",
     promise("token_embd.weight", name="other")),
    ("value not a number", DAMAGED, "'token_embd.weight': row 2 .* infinite or not a number",
     lambda g: g.tensor("token_embd.weight").update(data=bytes(764) + b"\0\0\xc0\x7f")),
    ("scale infinite", DAMAGED, "'codes': row 1 .* infinite",
     lambda g: g.tensor("codes").update(data=bytes(102) + b"\0\x7c" + bytes(32))),
    ("code 3", UNSUPPORTED, r"'codes': row 0 holds the code 3 \(\+2\)",
     lambda g: g.tensor("codes").update(data=b"\0\x38\x03" + bytes(133))),
    ("gated DeltaNet with experts", UNSUPPORTED, "architecture 'qwen35moe'.*not supported",
     key("general.architecture", STRING, "qwen35moe")),
]


class GgufFields(HostileTest):
    def check(self, rows, commands):
        for number, (what, code, message, change) in enumerate(rows):
            g = tiny()
            change(g)
            path = self.file(f"{number}.gguf", g.build())
            for command in commands:
                with self.subTest(what, command=command):
                    self.expect(command, path, code, message)

    def test_fields(self):
        self.check(GGUF_FIELDS, ("convert", "inspect"))

    def test_what_a_model_needs(self):
        self.check(GGUF_MODELS, ("convert",))

    def test_code_3_in_a_row_of_a_million_inputs(self):
        """A row is judged before room is made for the 32 of its block."""
        g = tiny()
        cols = 2**20
        g.tensor("codes").update(dims=[cols, 1], data=b"\0\x38" + b"\xff" * 32 + bytes(
            34 * (cols // 128 - 1)))
        self.expect("convert", self.file("wide.gguf", g.build()), UNSUPPORTED, "code 3")


def ggml(name, kind, value):
    return key("tokenizer.ggml." + name, kind, value)


GGUF_VOCABULARIES = [
    ("nothing", SUCCESS, "", lambda g: None),
    ("no tokens", DAMAGED, "tokens' is missing", lambda g: g.erase("tokenizer.ggml.tokens")),
    ("tokens are numbers", DAMAGED, "tokens' is array of i32", ggml("tokens", ARRAY, array(I32, [1]))),
    ("no merges", DAMAGED, "merges' is missing", lambda g: g.erase("tokenizer.ggml.merges")),
    ("a token too few", DAMAGED, "2 types for 3|3 types for 2",
     ggml("tokens", ARRAY, array(STRING, ["a", "b"]))),
    ("tokens for another matrix", DAMAGED, "3 rows, the tokenizer has 2 tokens",
     lambda g: (ggml("tokens", ARRAY, array(STRING, ["a", "b"]))(g),
                g.erase("tokenizer.ggml.token_type"))),
    ("type 7", DAMAGED, "token_type' holds 7 at 1", ggml("token_type", ARRAY, array(I32, [1, 7, 1]))),
    ("eos beyond the end", DAMAGED, "eos_token_id' is 3, there are 3", ggml("eos_token_id", U32, 3)),
    ("bos a text", DAMAGED, "bos_token_id' is string", ggml("bos_token_id", STRING, "a")),
    ("add_bos a number", DAMAGED, "add_bos_token' is u32", ggml("add_bos_token", U32, 1)),
    ("two tokens of one text", UNSUPPORTED, "token",
     ggml("tokens", ARRAY, array(STRING, ["a", "a", "ab"]))),
    ("a special token of 1,025 bytes", UNSUPPORTED, "1025 bytes|1024",
     lambda g: (ggml("tokens", ARRAY, array(STRING, ["a", "b", "s" * 1025]))(g),
                ggml("token_type", ARRAY, array(I32, [1, 1, 3]))(g))),
]


class GgufVocabularies(HostileTest):
    def test_arrays(self):
        for number, (what, code, message, change) in enumerate(GGUF_VOCABULARIES):
            with self.subTest(what):
                g = vocabulary(tiny())
                change(g)
                path = self.file(f"{number}.gguf", g.build())
                self.expect("convert", path, code, message)
