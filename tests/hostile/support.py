"""What every table is run by, and the sound files that its rows change.

All rows hold that the tool ends by itself, with a documented code; that a failure prints one line, on
stderr, leaves no file behind and took no more memory than the file and 64 MB.
"""

import hashlib
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import time
import unittest

from gguf_file import ARRAY, BLOCKS, Gguf, I32, STRING, U32, array
from tsq_tool import EXIT_CODES, Finished, SUCCESS, start


MODELS = pathlib.Path(sys.argv[2]).resolve()
SOURCE = MODELS / "llama_rot128.ptq1_0.gguf"
U64_MAX, U32_MAX, I64_MIN = 2**64 - 1, 2**32 - 1, 2**63
SECONDS = 120
READERS = ("inspect", "verify", "run", "perplexity")  # of .tsq files


def run_measured(*arguments, **options):
    """Finished, and the most memory that the process held, in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(*arguments, stdout=out, stderr=err, **options)
        deadline = time.monotonic() + SECONDS
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise AssertionError(f"still running after {SECONDS} s: {arguments}")
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        out.seek(0)
        err.seek(0)
        return Finished(process.returncode, out.read(), err.read()), 1024 * ended[2].ru_maxrss


ALLOWED = 64_000_000
# A sanitizer keeps what was freed, and room around everything: its memory says nothing of the tool's.
JUDGES_MEMORY = run_measured("--version")[1] < 40_000_000


def size_of(path):
    """Of a file, or of the files of a folder."""
    if path.is_dir():
        return sum(size_of(p) for p in path.iterdir())
    return path.stat().st_size if path.exists() else 0


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tsq-hostile-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.shared.chmod(0o755)
        cls.model = cls.shared / "model.tsq"
        cls.text = cls.shared / "text.txt"
        cls.text.write_text("Once upon a time there was a king. " * 60)
        done, _ = run_measured("convert", SOURCE, "-o", cls.model, "--allow-random")
        assert done.code == SUCCESS, done.err

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        self.folder.chmod(0o755)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def arguments(self, command, path):
        return {"convert": ["convert", path, "-o", self.folder / "out.tsq", "--no-probe"],
                "inspect": ["inspect", path], "verify": ["verify", path],
                "run": ["run", "-m", path, "-p", "x", "-n", "2", "-t", "1"],
                "perplexity": ["perplexity", "-m", path, "-f", self.text, "-c", "16", "-t", "1",
                               "--chunks", "1"]}[command]

    def run_command(self, command, path):
        """Runs it on the file and checks what holds for every file."""
        before = sorted(self.folder.iterdir())
        done, memory = run_measured(*self.arguments(command, path))
        self.assertIn(done.code, EXIT_CODES, done.err)
        if done.code != SUCCESS:
            self.assertRegex(done.err, r"\Atsq: [^\n]*\n\Z")
            # verify's report of a file that can be opened goes where it always goes
            self.assertRegex(done.out, r"\A((ok|skipped|FAILED) [^\n]*\n)*\Z")
            if command != "verify":
                self.assertEqual(done.out, "")
            self.assertEqual(sorted(self.folder.iterdir()), before)
            if JUDGES_MEMORY:
                self.assertLess(memory, size_of(path) + ALLOWED)
        return done

    def expect(self, command, path, code, message):
        done = self.run_command(command, path)
        self.assertEqual(done.code, code, done.err + done.out)
        if code != SUCCESS:
            self.assertRegex(done.out + done.err, f"(?i){message}")
        return done


def tiny():
    """A sound model of 2 kB. The architecture has no graph, and there is no tokenizer."""
    g = Gguf()
    g.set("general.architecture", STRING, "none")
    g.set("none.embedding_length", U32, 64).set("none.block_count", U32, 1)
    g.add("token_embd.weight", 0, [64, 3], BLOCKS["F32"].data(64, 3))
    g.add("codes", 142, [256, 2], BLOCKS["PQ2_0"].data(256, 2))
    return g


def promise(tensor, **fields):
    return lambda g: g.tensor(tensor).update(fields)


def key(name, kind, value):
    return lambda g: g.set(name, kind, value)


def counts(**fields):
    return lambda g: g.__dict__.update(fields)


def vocabulary(g):
    g.set("tokenizer.ggml.model", STRING, "gpt2").set("tokenizer.ggml.pre", STRING, "gpt-2")
    g.set("tokenizer.ggml.tokens", ARRAY, array(STRING, ["a", "b", "ab"]))
    g.set("tokenizer.ggml.token_type", ARRAY, array(I32, [1, 1, 1]))
    g.set("tokenizer.ggml.merges", ARRAY, array(STRING, ["a b"]))
    return g


def rotated():
    g = tiny()
    # In the contract, and without a graph that would ask for more.
    g.set("general.architecture", STRING, "qwen3moe")
    g.set("qwen3moe.embedding_length", U32, 64).set("qwen3moe.block_count", U32, 1)
    g.tensor("codes").update(name="blk.0.attn_q.weight")
    h = "prism.hadamard."
    g.set(h + "version", U32, 1).set(h + "block_size", U32, 64)
    g.set(h + "transform", STRING, "normalized-sylvester-walsh-hadamard")
    g.set(h + "axis", STRING, "input-last-dimension")
    g.set(h + "sign_mode", STRING, "explicit")
    g.set(h + "sign_widths", ARRAY, array(I32, [256, 64]))
    g.set(h + "sign_values", ARRAY, array(I32, [1, -1] * 160))
    g.set(h + "weight_names", ARRAY, array(STRING, ["blk.0.attn_q.weight"]))
    g.set(h + "inverse_weight_names", ARRAY, array(STRING, ["token_embd.weight"]))
    return g


class Tsq:
    """The bytes of a file, by FORMAT.md."""

    SECTIONS = ("runs", "metadata", "rotations", "tensors", "tokenizer", "probes", "data")

    def __init__(self, content):
        self.bytes = bytearray(content)

    def entry(self, section):
        return 96 + 64 * self.SECTIONS.index(section)

    def at(self, section):
        return struct.unpack_from("<Q", self.bytes, self.entry(section) + 8)[0]

    def size(self, section):
        return struct.unpack_from("<Q", self.bytes, self.entry(section) + 16)[0]

    def put(self, at, form, value):
        struct.pack_into("<" + form, self.bytes, at, value)

    def sign(self):
        for section in self.SECTIONS[:-1]:
            at, size = self.at(section), self.size(section)
            if at + size <= len(self.bytes):
                digest = hashlib.sha256(self.bytes[at:at + size]).digest()
                self.bytes[self.entry(section) + 32:self.entry(section) + 64] = digest
        self.bytes[992:1024] = hashlib.sha256(self.bytes[:992]).digest()
        return bytes(self.bytes)
