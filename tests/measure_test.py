"""What measures: models of real sizes with random weights.

    measure_test.py TSQ MODELS MAKE_SYNTHETIC [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models, MAKE_SYNTHETIC the program of tests/tools.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from tsq_tool import SUCCESS, tsq

MODELS = pathlib.Path(sys.argv[2]).resolve()
MAKE_SYNTHETIC = pathlib.Path(sys.argv[3]).resolve()


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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
