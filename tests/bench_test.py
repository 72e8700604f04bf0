"""That the benches run, and that bench/report.py understands what they say.

    bench_test.py KERNELS_BENCH MODEL_BENCH REPORT MODEL [unittest arguments]

MODEL is a .tsq file.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

KERNELS_BENCH, MODEL_BENCH, REPORT, MODEL = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
sys.path.insert(0, str(REPORT.parent))

import report  # noqa: E402


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


class BenchTest(unittest.TestCase):
    def test_every_name_is_understood(self):
        names = run(KERNELS_BENCH, "--benchmark_list_tests", "--full").stdout.split()
        if not names:
            self.skipTest("this CPU has only the level scalar")
        runs = [report.Run({"name": name}) for name in names]
        for name, one in zip(names, runs):
            self.assertEqual(name.split("/")[2:4], [one.level, one.shape])
            self.assertIn(f"/threads:{one.threads}/", name)
        uses = [("decode", ""), ("prefill", "")] + [("batch", f", {n} columns") for n in (2, 4, 8)]
        packed = {"decode t1_escape", "decode s34_lut"}  # only some levels have them
        self.assertEqual(
            {one.kernel for one in runs} - packed,
            {f"{use} {form}{columns}" for use, columns in uses
             for form in ("t2", "t1", "s34", "t2_tensor")},
        )

    def test_a_model_and_its_matrices(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "model.json"
            done = run(MODEL_BENCH, MODEL, "--generate=2", "--prompt=4", "--rounds=1",
                       f"--benchmark_out={out}")
            self.assertEqual(done.returncode, 0, done.stderr)
            _, runs = report.read([out])
            self.assertEqual({r.kernel for r in runs}, {"model decode", "model prefill"})
            for one in runs:
                self.assertGreater(one.counters["of_matrices"], 0)
                self.assertGreater(one.counters["matrices_tokens/s"], 0)

    def test_what_is_asked_for_wrongly(self):
        for arguments, words in (
            ([], "usage"),
            (["absent.tsq"], "absent.tsq"),
            ([MODEL, "--prompt=0"], "--prompt=N"),
            ([MODEL, "--rounds=x"], "'--rounds=x'"),
        ):
            done = run(MODEL_BENCH, *arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
