"""What measures: models of real sizes with random weights, and the tool's bench.

    measure_test.py TSQ MODELS MAKE_SYNTHETIC [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models, MAKE_SYNTHETIC the program of tests/tools.
"""

import csv
import io
import json
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest

from gguf_file import F32, STRING, U32, Gguf
from tsq_tool import INTERRUPTED, SUCCESS, USAGE, finish, start, tsq

MODELS = pathlib.Path(sys.argv[2]).resolve()
MAKE_SYNTHETIC = pathlib.Path(sys.argv[3]).resolve()
SANITIZED = b"__asan_init" in MAKE_SYNTHETIC.read_bytes()  # its own memory comes on top


class MeasureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tsq-measure-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def assert_succeeds(self, done):
        self.assertEqual(done.code, SUCCESS, done.err)
        return done


def make_synthetic(path, *arguments):
    """The peak of its memory in bytes."""
    process = subprocess.Popen([MAKE_SYNTHETIC, path, *map(str, arguments)])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == SUCCESS, arguments
    return 1024 * used.ru_maxrss


class Synthetic(MeasureTest):
    def check(self, encoding, bits, zero_rate, *arguments):
        path = self.folder / "model.tsq"
        peak = make_synthetic(path, "--encoding", encoding, *arguments)
        self.assert_succeeds(tsq("verify", path))
        self.assert_succeeds(tsq("run", "-m", path, "-p", "x", "-n", "1"))
        info = json.loads(self.assert_succeeds(tsq("inspect", "--json", path)).out)
        tensors = {t["name"]: t for t in info["tensors"]}
        self.assertEqual(tensors["blk.0.ffn_down.weight"]["encoding"], encoding)
        self.assertAlmostEqual(tensors["blk.0.ffn_down.weight"]["bits_per_weight"], bits, 3)
        self.assertAlmostEqual(info["summary"]["zero_rate"], zero_rate, 3)
        return info, tensors, peak

    def test_shapes(self):
        info, tensors, peak = self.check("t1", 1.729, 0.31, "--shape", "bonsai-8b", "--layers", "2",
                                         "--vocab", "600")
        self.assertEqual(tensors["output.weight"]["shape"], [4096, 600])
        self.assertEqual(tensors["blk.0.ffn_up.weight"]["shape"], [4096, 12288])
        self.assertEqual(tensors["blk.0.attn_k.weight"]["shape"], [4096, 1024])
        self.assertEqual(tensors["blk.0.attn_q_norm.weight"]["shape"], [128])
        self.assertEqual(info["rotations"], [])
        if not SANITIZED:
            self.assertLess(peak, info["summary"]["file_bytes"])

    def test_encodings_with_and_without_rotation(self):
        shape = ["--shape", "llama-1.7b", "--layers", "1", "--vocab", "600"]
        info, tensors, _ = self.check("s34", 1.375, 0.25, *shape, "--rotation", "1024")
        self.assertEqual([r["block"] for r in info["rotations"]], [1024, 1024])
        self.assertEqual(sorted(r["width"] for r in info["rotations"]), [2048, 8192])
        self.assertNotIn("output.weight", tensors)
        self.assertEqual(tensors["token_embd.weight"]["encoding"], "f16")
        first = (self.folder / "model.tsq").read_bytes()
        self.check("s34", 1.375, 0.25, *shape, "--rotation", "1024")
        self.assertEqual((self.folder / "model.tsq").read_bytes(), first)
        self.check("t2", 2.125, 0.31, *shape, "--seed", "2")


class Bench(MeasureTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.folder / "model.tsq"
        done = tsq("convert", MODELS / "llama_rot128.ptq1_0.gguf", "-o", cls.model, "--no-probe")
        assert done.code == SUCCESS, done.err

    def bench(self, *arguments):
        return self.assert_succeeds(tsq("bench", "-m", self.model, *arguments))

    def test_lists_are_swept(self):
        done = self.bench("-p", "8,16", "-n", "4", "-d", "0,32", "-t", "1", "-p", "0",
                          "--activations", "int8,f32", "-r", "2")
        tests = ["pp8", "pp16", "tg4", "pp8 @ d32", "pp16 @ d32", "tg4 @ d32"]
        head, rule, *rows = done.out.splitlines()
        self.assertRegex(rule, r"\A(\| -+:? )+\|\Z")
        fields = [[field.strip() for field in row.strip("|").split("|")] for row in rows]
        self.assertEqual([f[5] for f in fields], 2 * tests)
        self.assertEqual([f[3].split()[1] for f in fields[::6]], ["int8", "f32"])
        for f in fields:
            self.assertRegex(f[6], r"\A\d+\.\d\d \u00b1 \d+\.\d\d\Z")
            self.assertEqual(f[9] != "", f[5].startswith("tg"))

    def test_figures_follow_from_the_samples(self):
        prompt, decode = json.loads(self.bench("-p", "32", "-n", "8", "-r", "3", "-t", "1", "-o", "json").out)
        for row, tokens in [(prompt, 32), (decode, 8)]:
            speeds = [tokens / (ns * 1e-9) for ns in row["samples_ns"]]
            self.assertEqual(len(speeds), 3)
            self.assertAlmostEqual(row["avg_ts"] / statistics.mean(speeds), 1, 4)
            self.assertAlmostEqual(row["stddev_ts"] / statistics.stdev(speeds), 1, 3)
            for exact, rounded in zip(row["samples_ts"], speeds):
                self.assertAlmostEqual(exact / rounded, 1, 4)
        self.assertIsNone(prompt["bytes_per_token"])
        self.assertGreater(decode["read_gb_per_s"], 0)
        self.assertGreater(decode["of_read_bandwidth"], 0)

    def test_bytes_of_a_token(self):
        def expected(model):
            tensors = json.loads(tsq("inspect", "--json", model).out)["tensors"]
            tied = all(t["name"] != "output.weight" for t in tensors)
            total = 0
            for t in tensors:
                rows = -(-t["shape"][-1] // 32) * 32  # a row of a padded tensor
                total += t["bytes"] if tied or t["name"] != "token_embd.weight" else t["bytes"] // rows
            return total, tied
        models = [self.model, self.folder / "tied.tsq"]
        self.assert_succeeds(tsq("convert", MODELS / "qwen3_tied.gguf", "-o", models[1],
                                 "--no-probe"))
        kinds = set()
        for model in models:
            row, = json.loads(self.assert_succeeds(
                tsq("bench", "-m", model, "-p", "0", "-n", "1", "-r", "1", "-t", "1", "-o", "json")).out)
            bytes_per_token, tied = expected(model)
            self.assertEqual(row["bytes_per_token"], bytes_per_token)
            kinds.add(tied)
        self.assertEqual(kinds, {True, False})

    def test_two_models_in_one_table(self):
        other = self.folder / 'a "b".tsq'
        shutil.copy(self.model, other)
        done = self.bench("-m", other, "-p", "4", "-n", "0", "-t", "1", "-r", "1", "-o", "csv")
        rows = list(csv.DictReader(io.StringIO(done.out)))
        self.assertEqual([row["model_filename"] for row in rows], [str(self.model), str(other)])
        self.assertEqual([row["test"] for row in rows], ["pp4", "pp4"])

    def test_a_model_without_a_tokenizer(self):
        source = Gguf().set("general.architecture", STRING, "llama")
        for key, value in {"block_count": 1, "embedding_length": 32, "feed_forward_length": 32,
                           "context_length": 64, "attention.head_count": 2}.items():
            source.set("llama." + key, U32, value)
        source.set("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)
        norms, matrices = ["attn_norm", "ffn_norm"], ["attn_q", "attn_k", "attn_v", "attn_output",
                                                      "ffn_gate", "ffn_up", "ffn_down"]
        for name in ["output_norm"] + ["blk.0." + norm for norm in norms]:
            source.add(name + ".weight", 0, [32], struct.pack("<32f", *[1] * 32))
        for name in ["token_embd"] + ["blk.0." + matrix for matrix in matrices]:
            source.add(name + ".weight", 0, [32, 32],
                       struct.pack("<1024f", *[(i * 7 % 11 - 5) / 16 for i in range(1024)]))
        gguf, model = self.folder / "none.gguf", self.folder / "none.tsq"
        gguf.write_bytes(source.build())
        self.assert_succeeds(tsq("convert", gguf, "-o", model))
        done = self.assert_succeeds(tsq("bench", "-m", model, "-p", "4", "-n", "4", "-t", "1"))
        self.assertEqual(len(done.out.splitlines()), 4)
        self.assertRegex(tsq("run", "-m", model, "-p", "x").err, "holds no tokenizer")

    def test_mistakes(self):
        for message, *arguments in [("nothing to measure", "-p", "0", "-n", "0"),
                                    ("--n-prompt", "-p", "-1"), ("--threads", "-t", "0"),
                                    ("--format.*md,csv,json", "-o", "xml"),
                                    ("--repetitions", "-r", "0")]:
            done = tsq("bench", "-m", self.model, *arguments)
            self.assertEqual((done.code, done.out), (USAGE, ""))
            self.assertRegex(done.err, r"\Atsq: bench: .*" + message)

    def test_an_interrupt_leaves_a_whole_table(self):
        process = start("bench", "-m", self.model, "-p", "4", "-n", "4096", "-r", "50", "-t", "1", "-o",
                        "json", bufsize=0)
        first = process.stdout.read(1)  # the first row is there
        process.send_signal(signal.SIGINT)
        done = finish(process)
        self.assertEqual(done.code, INTERRUPTED, done.err)
        self.assertEqual([row["test"] for row in json.loads(first.decode() + done.out)], ["pp4"])
        self.assertRegex(done.err, r"\A(tsq: warning: a context of 4096 tokens[^\n]*\n)?\Z")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
