""".tsq: one field says something else, and all digests are made right; cuts and flips of both formats."""

import random
import struct

from hostile.support import (HostileTest, I64_MIN, READERS, Tsq, U32_MAX, U64_MAX, rotated, vocabulary)
from tsq_tool import DAMAGED, SUCCESS, UNSUPPORTED


def header(at, form, value):
    return lambda t: t.put(at, form, value)


def directory(section, field, form, value):
    return lambda t: t.put(t.entry(section) + field, form, value)


def inside(section, at, form, value):
    return lambda t: t.put(t.at(section) + at, form, value)


def flip_a_sign(t):
    t.bytes[t.at("rotations") + 16] ^= 1


def flip_all_signs(t):
    for at in range(t.at("rotations") + 16, t.at("rotations") + 16 + 256 // 8):
        t.bytes[at] ^= 0xff


def no_rotations(t):
    """The records are there, and no tensor says that it uses them."""
    n = struct.unpack_from("<Q", t.bytes, t.entry("tensors") + 24)[0]
    for i in range(n):
        t.put(t.at("tensors") + 192 * i + 64, "I", U32_MAX)


def swap_names(t):
    """Two weights of the same shape change places."""
    section = bytes(t.bytes[t.at("tensors"):t.at("tensors") + t.size("tensors")])
    for a, b in ((b"blk.0.attn_k.", b"blk.0.attn_X."), (b"blk.0.attn_v.", b"blk.0.attn_k."),
                 (b"blk.0.attn_X.", b"blk.0.attn_v.")):
        section = section.replace(a, b)
    t.bytes[t.at("tensors"):t.at("tensors") + t.size("tensors")] = section


OPENING = ("convert", "inspect", "run")
USING = ("verify", "run", "perplexity")  # what only they look at
TSQ_FIELDS = [  # what is wrong, exit, message, change, commands
    ("nothing", SUCCESS, "", lambda t: None, OPENING),
    ("magic", DAMAGED, "not a (.tsq|GGUF) file", header(0, "I", 0), OPENING),
    ("version 1", UNSUPPORTED, "version is 1,", header(4, "I", 1), OPENING),
    ("version 2^32 - 1", UNSUPPORTED, "version is 4294967295", header(4, "I", U32_MAX), OPENING),
    ("hidden_size 0", DAMAGED, "hidden_size", header(8, "I", 0), OPENING),
    ("num_layers 2^32 - 1", DAMAGED, "num_layers|block_count", header(12, "I", U32_MAX), OPENING),
    ("vocab_size 2^32 - 1", DAMAGED, "vocab|token", header(16, "I", U32_MAX), USING),
    ("file_bytes 2^64 - 1", DAMAGED, "18446744073709551615", header(64, "Q", U64_MAX), OPENING),
    ("feature bit 63", UNSUPPORTED, "63", header(72, "Q", I64_MIN), OPENING),
    ("15 sections", DAMAGED, "15 sections|n_sections", header(88, "I", 15), OPENING),
    ("2^32 - 1 sections", DAMAGED, "4294967295", header(88, "I", U32_MAX), OPENING),
    ("metadata at 2^64 - 64", DAMAGED, "metadata", directory("metadata", 8, "Q", 2**64 - 64), OPENING),
    ("metadata of 2^64 - 1", DAMAGED, "metadata", directory("metadata", 16, "Q", U64_MAX), OPENING),
    ("metadata: offset + size wraps", DAMAGED, "metadata",
     directory("metadata", 16, "Q", 2**64 - 1024), OPENING),
    ("2^64 - 1 entries", DAMAGED, "18446744073709551615", directory("metadata", 24, "Q", U64_MAX),
     OPENING),
    ("2^64 - 1 rotations", DAMAGED, "rotation", directory("rotations", 24, "Q", U64_MAX), OPENING),
    ("2^60 rotations: the records wrap", DAMAGED, "rotation", directory("rotations", 24, "Q", 2**60),
     OPENING),
    ("2^64 - 1 tensors", DAMAGED, "tensor", directory("tensors", 24, "Q", U64_MAX), OPENING),
    ("2^58 tensors: 192 bytes each wrap", DAMAGED, "tensor", directory("tensors", 24, "Q", 2**58),
     OPENING),
    ("2^59 probes: 32 bytes each wrap", DAMAGED, "probe", directory("probes", 24, "Q", 2**59), OPENING),
    ("tokenizer of 2^64 - 64", DAMAGED, "tokenizer", directory("tokenizer", 16, "Q", 2**64 - 64), OPENING),
    ("data of 2^64 - 65536", DAMAGED, "data", directory("data", 16, "Q", 2**64 - 65536), OPENING),
    ("rotation block 0", DAMAGED, "rotation 0", inside("rotations", 0, "I", 0), OPENING),
    ("rotation block 96", DAMAGED, "rotation 0", inside("rotations", 0, "I", 96), OPENING),
    ("rotation block 2^31", DAMAGED, "rotation 0", inside("rotations", 0, "I", 2**31), OPENING),
    ("rotation width 2^32 - 128", DAMAGED, "rotation", inside("rotations", 4, "I", 2**32 - 128), OPENING),
    ("rotation width of another matrix", DAMAGED, "rotation", inside("rotations", 4, "I", 128), OPENING),
    ("rotation flags", DAMAGED, "rotation 0", inside("rotations", 8, "I", 2), OPENING),
    ("one sign flipped", DAMAGED, "token probe", flip_a_sign, ("verify",)),
    ("all signs flipped", DAMAGED, "rotation", flip_all_signs, USING),
    ("rotations that nothing uses", DAMAGED, "rotation", no_rotations, OPENING),
    ("tensor name of 2^32 - 1", DAMAGED, "tensor record 0", inside("tensors", 0, "I", U32_MAX), OPENING),
    ("tensor encoding 15", DAMAGED, "encoding", inside("tensors", 4, "I", 15), OPENING),
    ("tensor storage rle", UNSUPPORTED, "rle|feature", inside("tensors", 8, "I", 1), OPENING),
    ("tensor of 0 dims", DAMAGED, "dims", inside("tensors", 16, "I", 0), OPENING),
    ("tensor of 2^64 - 1 inputs", DAMAGED, "dims|wrap|2\\^63", inside("tensors", 24, "Q", U64_MAX), OPENING),
    ("tensor of 2^62 rows", DAMAGED, "dims|wrap|2\\^63", inside("tensors", 32, "Q", 2**62), OPENING),
    ("tensor of 2^40 rows", DAMAGED, "bytes", inside("tensors", 32, "Q", 2**40), OPENING),
    ("tensor rotated by number 2^32 - 2", DAMAGED, "rotation", inside("tensors", 64, "I", 2**32 - 2),
     OPENING),
    ("more zeros than weights", DAMAGED, "zero", inside("tensors", 72, "Q", U64_MAX), OPENING),
    ("body at 2^64 - 64", DAMAGED, "body|offset|bytes", inside("tensors", 80, "Q", 2**64 - 64), OPENING),
    ("body of 2^64 - 64", DAMAGED, "body|bytes", inside("tensors", 88, "Q", 2**64 - 64), OPENING),
    ("residual of 2^64 - 1", UNSUPPORTED, "residual", inside("tensors", 128, "Q", U64_MAX), OPENING),
    ("weights that change places", DAMAGED, "token probe", swap_names, ("verify",)),
    ("tokenizer model 3", UNSUPPORTED, "model is 3", inside("tokenizer", 0, "I", 3), ("run", "perplexity")),
    ("2^32 - 1 tokens", DAMAGED, "4294967295 tokens", inside("tokenizer", 12, "I", U32_MAX), USING),
    ("2^32 - 1 merges", DAMAGED, "header promises", inside("tokenizer", 16, "I", U32_MAX), USING),
    ("2^32 - 1 special tokens", DAMAGED, "header promises", inside("tokenizer", 20, "I", U32_MAX), USING),
    ("2^31 slots", DAMAGED, "header promises", inside("tokenizer", 28, "I", 2**31), USING),
    ("3 slots", DAMAGED, "3 slots", inside("tokenizer", 28, "I", 3), USING),
    ("2^32 - 1 bytes of text", DAMAGED, "header promises", inside("tokenizer", 36, "I", U32_MAX), USING),
    ("bos beyond the end", DAMAGED, "bos is token", inside("tokenizer", 40, "I", 2**31), USING),
    ("a token that ends before it starts", DAMAGED, "token", inside("tokenizer", 68, "I", U32_MAX), USING),
    ("probe of 33 tokens", DAMAGED, "33", inside("probes", 4, "I", 33), OPENING),
    ("probe of 2^32 - 1 tokens", DAMAGED, "4294967295", inside("probes", 4, "I", U32_MAX), OPENING),
    ("probe NaN", DAMAGED, "nll|likelihood", inside("probes", 16, "d", float("nan")), OPENING),
    ("probe of rotation 2^32 - 1", DAMAGED, "rotation", inside("probes", 216, "I", U32_MAX), OPENING),
    ("probe of row 2^64 - 1", DAMAGED, "row", inside("probes", 224, "Q", U64_MAX), OPENING),
    ("probe infinite", DAMAGED, "probe", inside("probes", 240, "d", float("inf")), OPENING),
]


class TsqFields(HostileTest):
    def test_fields(self):
        content = self.model.read_bytes()
        for number, (what, code, message, change, commands) in enumerate(TSQ_FIELDS):
            t = Tsq(content)
            change(t)
            path = self.file(f"{number}.tsq", t.sign())
            for command in commands:
                with self.subTest(what, command=command):
                    self.expect(command, path, code, message)


def flip(content, draw, first, last):
    content = bytearray(content)
    content[draw.randrange(first, last)] ^= 1 << draw.randrange(8)
    return bytes(content)


class CutsAndFlips(HostileTest):
    def cuts(self, size, boundaries, seed):
        draw = random.Random(seed)
        near = {b + d for b in boundaries for d in (-1, 0, 1)}
        return sorted(c for c in near | {draw.randrange(size) for _ in range(25)} if 0 <= c < size)

    def test_a_gguf_that_is_cut(self):
        g = rotated()
        vocabulary(g)
        content = g.build()
        last = g.boundaries[-1] + len(g.tensors[-1]["data"])  # its padding may be missing
        for cut in self.cuts(last, g.boundaries, seed=1):
            path = self.file("cut.gguf", content[:cut])
            for command in ("convert", "inspect"):
                with self.subTest(cut, command=command):
                    self.expect(command, path, DAMAGED, ".")

    def test_a_tsq_that_is_cut(self):
        content = self.model.read_bytes()
        t = Tsq(content)
        edges = [t.at(s) for s in t.SECTIONS] + [t.at(s) + t.size(s) for s in t.SECTIONS] + [64, 992]
        for cut in self.cuts(len(content), edges, seed=2):
            path = self.file("cut.tsq", content[:cut])
            for command in ("inspect", "verify"):
                with self.subTest(cut, command=command):
                    self.expect(command, path, DAMAGED, ".")

    def test_a_gguf_with_a_flipped_bit(self):
        """Some flips leave a file that is sound; what is written then is sound too."""
        g = rotated()
        vocabulary(g)
        content = g.build()
        draw = random.Random(3)
        for i in range(100):
            path = self.file("flipped.gguf", flip(content, draw, 0, len(content)))
            with self.subTest(i):
                self.run_command("inspect", path)
                if self.run_command("convert", path).code == SUCCESS:
                    self.expect("verify", self.folder / "out.tsq", SUCCESS, "")
                    (self.folder / "out.tsq").unlink()

    def test_a_tsq_with_a_flipped_bit(self):
        content = self.model.read_bytes()
        data = Tsq(content).at("data")
        draw = random.Random(4)
        for i in range(60):
            path = self.file("flipped.tsq", flip(content, draw, 0, data))
            for command in ("inspect", "run"):
                with self.subTest(i, command=command):
                    done = self.run_command(command, path)
                    self.assertIn(done.code, (DAMAGED, UNSUPPORTED), done.err)
        for i in range(40):
            path = self.file("flipped.tsq", flip(content, draw, data, len(content)))
            with self.subTest(i):
                self.expect("verify", path, DAMAGED, "failed")
                self.run_command("run", path)
