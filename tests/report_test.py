"""That bench/report.py says of fixed results what it should.

    report_test.py REPORT [unittest arguments]
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPORT = pathlib.Path(sys.argv[1]).resolve()
DATA = pathlib.Path(__file__).parent / "data" / "bench"
sys.path.insert(0, str(REPORT.parent))

import report  # noqa: E402

EXPECTED = r"""Measured on 2026-11-30 on A CPU, 2 cores, L1 32 KiB, L2 512 KiB, L3 32 MiB: `build/release/bench/kernels_bench --benchmark_out=kernels.json`, `build/release/bench/model_bench b8.tsq`.

| kernel | level | threads | GB/s | Gweights/s | of the read bandwidth | GOP/s | of the int8 peak |
|---|---|---|---|---|---|---|---|
| decode t2 | avx2 | 1 / 2 | 16.0-17.0 / 20.0 | 60.0-64.0 / 75.0-75.2 | 76-79 (82) % / 94 (97) %\* | 120-128 / 150 | 30-33 (34) % / 20-21 (22) %\* |
| batch t1, 4 columns | avx2 | 1 | 5.00 | 23.2 | 25 (26) % | 186 | 55 (56) % |
| prefill t2 | avx2 | 1 | - | 0.40 | - | 400 | 90 (95) % |

| model |  | level | threads | tokens/s | its matrices alone | share of that | of the read bandwidth |
|---|---|---|---|---|---|---|---|
| bonsai-8b | decode | avx2 | 1 | 5.50 | 6.00 | 92 (93) % | 70 (72) % |
| bonsai-8b | prefill | avx2 | 1 | 36.0 | 40.0 | 90 (91) % | - |

Shares are medians of paired ratios, from the lowest of the shapes to the highest, the best round in brackets.
\* A ceiling moved by more than 10 % during the run.
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, REPORT, *map(str, arguments)], capture_output=True, text=True
    )


class ReportTest(unittest.TestCase):
    maxDiff = None

    def test_tables(self):
        done = run(DATA / "kernels.json", DATA / "model.json")
        self.assertEqual(done.stdout, EXPECTED)
        self.assertEqual(done.returncode, 0)
        self.assertIn("left out: fork_join/threads:2", done.stderr)

    def test_a_row_for_each_shape(self):
        out = run("--by-shape", DATA / "kernels.json").stdout
        self.assertIn(
            "| decode t2 | avx2 | 4096x4096 | 1 / 2 | 16.0 / 20.0 | 60.0 / 75.0 "
            "| 76 (80) % / 94 (97) % | 120 / 150 | 30 (31) % / 20 (21) % |\n",
            out,
        )

    def test_bars_are_of_the_nearer_limit(self):
        _, runs = report.read([DATA / "kernels.json"])
        self.assertEqual(
            report.bars(runs),
            {
                "decode t2": {("avx2", 1): (0.777, 0.82), ("avx2", 2): (0.94, 0.97)},
                "batch t1, 4 columns": {("avx2", 1): (0.55, 0.56)},
                "prefill t2": {("avx2", 1): (0.9, 0.95)},
            },
        )

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "needs matplotlib")
    def test_the_plot_is_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plot.png"
            self.assertEqual(run("--plot", path, DATA / "kernels.json").returncode, 0)
            self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_what_cannot_be_read(self):
        for arguments, words in (
            ([DATA / "absent.json"], "absent.json"),
            ([__file__], "expected what a bench wrote"),
            (["--plot", "x.png", DATA / "model.json"], "no kernel with a share"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
