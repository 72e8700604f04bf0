"""What inspect shows."""

import json

from cli.support import CliTest, SOURCE
from tsq_tool import tsq


class Inspect(CliTest):
    def test_text(self):
        done = self.assert_succeeds(tsq("inspect", self.model))
        self.assertEqual(done.err, "")
        size = self.model.stat().st_size
        for line in [r"format +\.tsq, version 2", rf"file +{size:,} bytes = .* kB = .* KiB",
                     r"metadata \(\d+\)", r"tensors \(\d+\)",
                     r"  blk\.0\.attn_q\.weight +t1 .* 128 signs"]:
            self.assertRegex(done.out, "(?m)^" + line)

    def test_json(self):
        info = json.loads(self.assert_succeeds(tsq("inspect", "--json", self.model)).out)
        self.assertEqual(info["summary"]["file_bytes"], self.model.stat().st_size)
        self.assertEqual(info["metadata"]["general.architecture"], "llama")
        self.assertEqual(info["rotations"][0]["block"], 128)
        self.assertEqual(len(info["token_probe"]["tokens"]), 32)
        weights = zeros = 0
        for tensor in info["tensors"]:
            count = 1
            for dim in tensor["shape"]:
                count *= dim
            self.assertAlmostEqual(tensor["bits_per_weight"], 8 * tensor["bytes"] / count)
            weights += count
            zeros += tensor.get("zeros", 0)
        self.assertEqual(info["summary"]["parameters"], weights)
        self.assertAlmostEqual(info["summary"]["zero_rate"],
                               zeros / info["summary"]["ternary_weights"])

    def test_gguf(self):
        done = self.assert_succeeds(tsq("inspect", SOURCE))
        self.assertRegex(done.out, r"(?m)^format +GGUF; 'tsq convert' makes a .tsq of it")
        self.assertRegex(done.out, r"(?m)^  blk\.0\.attn_q\.weight +PTQ1_0 ")
        info = json.loads(self.assert_succeeds(tsq("inspect", "--json", SOURCE)).out)
        self.assertEqual(info["format"], "gguf")
        self.assertEqual(info["metadata"]["general.architecture"], "llama")
