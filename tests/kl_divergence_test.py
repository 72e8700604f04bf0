"""`tsq perplexity --save-logits` and `--kl-base` against float64 numpy.

    kl_divergence_test.py TSQ REPOSITORY TSQ_LOGITS [unittest arguments]

TSQ is the program, TSQ_LOGITS that of tests/tools, which gives the logits themselves.
"""

import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "reference"))
import kl_divergence as kl
from tsq_tool import DAMAGED, FAILURE, SUCCESS, USAGE, tsq

REPOSITORY = pathlib.Path(sys.argv[2]).resolve()
TSQ_LOGITS = pathlib.Path(sys.argv[3]).resolve()
FAIRY_TALES = REPOSITORY / "models" / "fairy-tales.tsq"
BOS = 0  # of that model, which puts it first
CHUNK, CHUNKS = 64, 4
LEAST = -16


class KlDivergence(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tsq-kl-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.text = cls.folder / "text.txt"
        cls.text.write_bytes((REPOSITORY / "LICENSE").read_bytes()[:4000])
        cls.base = cls.folder / "base"
        done = cls.measure("--activations", "f32", "--save-logits", cls.base)
        assert done.code == SUCCESS, done.err
        cls.saved = kl.Saved(cls.base)

    @classmethod
    def measure(cls, *arguments, model=FAIRY_TALES, text=None, chunk=CHUNK):
        return tsq("perplexity", "-m", model, "-f", text or cls.text, "-t", "1", "-c", str(chunk),
                   "--chunks", str(CHUNKS), *arguments)

    def logits(self, activations, model=FAIRY_TALES, saved=None, bos=BOS):
        """Of the scored positions, [rows, vocab], from the other program."""
        rows = []
        for tokens in (saved or self.saved).tokens:
            first = tokens[:1] if bos is None else [bos]
            (self.folder / "tokens").write_text(" ".join(map(str, [*first, *tokens[1:]])))
            subprocess.run([TSQ_LOGITS, model, self.folder / "tokens", self.folder / "logits",
                            "--activations", activations], check=True)
            all_rows = np.fromfile(self.folder / "logits", "<f4").reshape(CHUNK, -1)
            rows.append(all_rows[CHUNK // 2:-1])
        return np.concatenate(rows)

    def printed(self, done):
        self.assertEqual(done.code, SUCCESS, done.err)
        lines = re.findall(r"(?m)^(.+?)  +([-\d.]+)(?: \+- ([-\d.]+))?(?: %)?$", done.out)
        return {label: [n for n in numbers if n] for label, *numbers in lines}

    def assert_printed(self, done, expected):
        """Every figure, to all its digits."""
        found = self.printed(done)
        for label, numbers in expected.items():
            self.assertEqual(len(found[label]), len(numbers), label)
            for text, number in zip(found[label], numbers):
                half = 0.5001 * 10.0 ** -len(text.partition(".")[2])
                self.assertAlmostEqual(float(text), number, delta=half + 1e-12, msg=label)

    def test_the_file_holds_the_logits(self):
        log_p = kl.log_softmax(self.logits("f32"))
        saved = self.saved
        self.assertEqual((saved.chunk, saved.vocab, len(saved.tokens)), (CHUNK, 4096, CHUNKS))
        self.assertEqual(len(saved.log_p), CHUNKS * (CHUNK // 2 - 1))
        clamped = np.maximum(log_p, log_p.max(-1, keepdims=True) - 16)
        # Half a step, and the rounding of two f32 below 2^6.
        self.assertTrue((np.abs(saved.log_p - clamped) <= saved.step[:, None] / 2 + 2 ** -18).all())
        self.assertTrue((saved.step <= 16.001 / 65535).all())
        exact = -np.take_along_axis(log_p, saved.next_tokens()[:, None], 1)[:, 0]
        self.assertLess(np.abs(saved.nll - exact).max(), 1e-9)

    def test_against_int8_activations(self):
        done = self.measure("--kl-base", self.base)
        log_q = kl.log_softmax(self.logits("int8"))
        self.assert_printed(done, kl.figures(self.saved.log_p, log_q, self.saved.next_tokens(),
                                             self.saved.nll, LEAST))
        self.assertRegex(done.err, r"(?m)^\[4/4\] \d+\.\d{4}  KLD " + self.printed(done)["mean KLD"][0])
        # What the file's rounding of log p by at most half a step moves a divergence by: its terms
        # are p (log p - log q), whose derivative is p (log p - log q + 1). The left-out tail is as
        # small: p <= e^-16.
        log_p = kl.log_softmax(self.logits("f32"))
        ratio = np.abs(log_p - log_q)
        tail = np.where(log_p <= LEAST + 0.001, np.exp(log_p) * ratio, 0).sum(-1)
        bound = self.saved.step / 2 * (1 + (np.exp(log_p) * ratio).sum(-1)) + tail
        exact = kl.divergences(log_p, log_q)
        found = float(self.printed(done)["mean KLD"][0])
        self.assertLess(abs(found - exact.mean()), bound.mean() + 1e-6)

    def test_a_file_of_llama_cpp(self):
        path = self.folder / "llama"
        path.write_bytes(self.saved.llama_cpp)
        done = self.measure("--kl-base", path)
        log_q = kl.log_softmax(self.logits("int8"))
        nll = -np.take_along_axis(self.saved.log_p, self.saved.next_tokens()[:, None], 1)[:, 0]
        self.assert_printed(done, kl.figures(self.saved.log_p, log_q, self.saved.next_tokens(), nll,
                                             LEAST))

    def test_a_run_against_itself(self):
        again = self.folder / "again"
        found = self.printed(self.measure("--activations", "f32", "--kl-base", self.base,
                                          "--save-all-logits", again))
        self.assertEqual(again.read_bytes(), self.base.read_bytes())
        self.assertEqual(found["PPL / base PPL"], ["1.000000", "0.000000"])
        self.assertLess(float(found["maximum KLD"][0]), 2e-4)
        self.assertEqual(found["same top"][0], "100.000")

    def test_models_that_disagree(self):
        models = []
        for name in ["llama_rot128", "qwen3_rot64"]:
            models.append(self.folder / f"{name}.tsq")
            source = REPOSITORY / "tests" / "data" / "models" / f"{name}.ptq1_0.gguf"
            self.assertEqual(tsq("convert", source, "-o", models[-1], "--no-probe").code, SUCCESS)
        base = self.folder / "llama.base"
        self.measure("--save-logits", base, model=models[0])
        done = self.measure("--kl-base", base, model=models[1])
        saved = kl.Saved(base)  # of an odd vocabulary: 333
        log_q = kl.log_softmax(self.logits("int8", models[1], saved, None))
        self.assert_printed(done, kl.figures(saved.log_p, log_q, saved.next_tokens(), saved.nll,
                                             LEAST))
        self.assertGreater(float(self.printed(done)["mean KLD"][0]), 1)

    def refuse(self, code, message, content, *arguments, **options):
        path = self.folder / "wrong"
        path.write_bytes(content)
        done = self.measure("--kl-base", path, *arguments, **options)
        self.assertEqual((done.code, done.out), (code, ""), done.err)
        self.assertRegex(done.err.splitlines()[-1], rf"\Atsq: .*{message}")

    def test_files_that_do_not_fit(self):
        base = self.base.read_bytes()

        def patched(at, value):
            return base[:at] + struct.pack("<i", value) + base[at + 4:]
        other = self.folder / "other.txt"
        other.write_bytes(self.text.read_bytes().replace(b"License", b"Licence"))
        short = self.folder / "short.txt"
        short.write_bytes(self.text.read_bytes()[:400])
        self.refuse(USAGE, "chunks have 64 tokens, those of this run 32: give -c 64", base, chunk=32)
        self.refuse(USAGE, r"token \d+ is \d+, the text's \d+: another text", base, text=other)
        self.refuse(USAGE, "holds 4 chunks, the text has [123]: another text", base, text=short)
        model = REPOSITORY / "tests" / "data" / "models" / "llama_rot128.ptq1_0.gguf"
        small = self.folder / "small.tsq"
        self.assertEqual(tsq("convert", model, "-o", small, "--no-probe").code, SUCCESS)
        self.refuse(USAGE, "vocabulary has 4096 tokens, the model's 333", base, model=small)
        self.refuse(DAMAGED, "does not start with '_logits_'", b"GGUF" + base[4:])
        self.refuse(DAMAGED, "does not start with '_logits_'", b"")
        self.refuse(DAMAGED, rf"{len(base) - 1} bytes, expected \d+", base[:-1])
        self.refuse(DAMAGED, rf"{len(base)} bytes, expected \d+", patched(16, 5))
        self.refuse(DAMAGED, r"-1 chunks of 64 tokens", patched(16, -1))
        self.refuse(DAMAGED, r"bytes, expected \d+", patched(12, 2 ** 31 - 1))
        self.refuse(DAMAGED, "XXH3-64 is", base[:5000] + bytes([base[5000] ^ 1]) + base[5001:])
        done = self.measure("--kl-base", self.folder / "absent")
        self.assertEqual((done.code, done.out), (FAILURE, ""))

    def test_where_nothing_can_be_written(self):
        done = self.measure("--save-logits", self.folder / "no" / "folder")
        self.assertEqual((done.code, done.out), (FAILURE, ""))
        self.assertRegex(done.err, "no/folder: ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
