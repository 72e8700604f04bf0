"""What the tool makes of sources of every kind: folders, split files, models that it has no graph for.

    sources_test.py TSQ MODELS [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

from gguf_file import BLOCKS, F32, Gguf, STRING, U16, U32
from tsq_tool import DAMAGED, FAILURE, SUCCESS, UNSUPPORTED, tsq

MODELS = pathlib.Path(sys.argv[2]).resolve()
HIDDEN, FFN, VOCABULARY = 32, 64, 6


def model(architecture="llama"):
    """All that the graph of llama needs, and no tokenizer."""
    g = Gguf().set("general.architecture", STRING, architecture)
    a = architecture + "."
    g.set(a + "context_length", U32, 64).set(a + "embedding_length", U32, HIDDEN)
    g.set(a + "block_count", U32, 1).set(a + "feed_forward_length", U32, FFN)
    g.set(a + "attention.head_count", U32, 2).set(a + "attention.head_count_kv", U32, 1)
    g.set(a + "attention.layer_norm_rms_epsilon", F32, 1e-5)
    for name, cols, rows in [("token_embd", HIDDEN, VOCABULARY), ("output_norm", HIDDEN, 1),
                             ("blk.0.attn_norm", HIDDEN, 1), ("blk.0.attn_q", HIDDEN, HIDDEN),
                             ("blk.0.attn_k", HIDDEN, 16), ("blk.0.attn_v", HIDDEN, 16),
                             ("blk.0.attn_output", HIDDEN, HIDDEN), ("blk.0.ffn_norm", HIDDEN, 1),
                             ("blk.0.ffn_gate", HIDDEN, FFN), ("blk.0.ffn_up", HIDDEN, FFN),
                             ("blk.0.ffn_down", FFN, HIDDEN)]:
        dims = [cols] if name.endswith("norm") else [cols, rows]
        g.add(name + ".weight", 0, dims, BLOCKS["F32"].data(cols, rows))
    return g


NEEDED = ["context_length", "embedding_length", "block_count", "feed_forward_length",
          "attention.head_count", "attention.layer_norm_rms_epsilon"]


class SourcesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tsq-sources-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.target = self.folder / "out.tsq"

    def file(self, name, g):
        path = self.folder / name
        path.write_bytes(g.build())
        return path

    def succeeds(self, *arguments):
        done = tsq(*arguments)
        self.assertEqual(done.code, SUCCESS, done.err)
        return done


class Inspect(SourcesTest):
    def test_a_folder_and_a_file_in_it(self):
        for source in (MODELS / "hf_qwen3", MODELS / "hf_qwen3" / "model.safetensors"):
            with self.subTest(source.name):
                done = self.succeeds("inspect", source)
                self.assertEqual(done.err, "")
                self.assertRegex(done.out, r"(?m)^format +Hugging Face folder; 'tsq convert' makes")
                self.assertRegex(done.out, r"(?m)^  qwen3\.rope\.scaling\.type +string +yarn$")
                self.assertRegex(done.out, r"(?m)^  blk\.1\.attn_q_norm\.weight +BF16 +32 +64 +-$")

    def test_a_sharded_folder(self):
        info = json.loads(self.succeeds("inspect", "--json", MODELS / "hf_llama").out)
        self.assertEqual(info["format"], "hugging-face")
        self.assertEqual(info["metadata"]["llama.embedding_length"], 64)
        names = [t["name"] for t in info["tensors"]]
        self.assertIn("token_embd.weight", names)
        self.assertIn("blk.1.ffn_down.weight", names)
        self.assertIn("rope_freqs.weight", names)

    def test_a_folder_without_a_model(self):
        done = tsq("inspect", self.folder)
        self.assertEqual((done.code, done.out), (FAILURE, ""))
        self.assertRegex(done.err, r"\Atsq: .*config\.json: is missing")

    def test_a_split_gguf(self):
        whole = model()
        for part in (0, 1):
            g = model()
            g.tensors = whole.tensors[5 * part:5 + 6 * part]
            g.set("split.no", U16, part).set("split.count", U16, 2)
            self.file(f"m-0000{part + 1}-of-00002.gguf", g)
        for part in (1, 2):
            path = self.folder / f"m-0000{part}-of-00002.gguf"
            info = json.loads(self.succeeds("inspect", "--json", path).out)
            self.assertEqual([t["name"] for t in info["tensors"]], [t["name"] for t in whole.tensors])


class GraphNeeds(SourcesTest):
    """convert writes nothing that verify would fail, with a probe or without."""

    def refuses(self, g, code, message):
        path = self.file("model.gguf", g)
        done = tsq("convert", path, "-o", self.target, "--no-probe")
        self.assertEqual((done.code, done.out), (code, ""), done.err)
        self.assertRegex(done.err, rf"\Atsq: [^\n]*model\.gguf: [^\n]*{message}[^\n]*\n\Z")
        self.assertFalse(self.target.exists())

    def test_a_sound_model(self):
        done = self.succeeds("convert", self.file("model.gguf", model()), "-o", self.target, "--no-probe")
        self.assertNotIn("no graph", done.err)
        self.succeeds("verify", self.target)

    def test_keys_that_are_missing_or_of_another_type(self):
        for key in NEEDED:
            with self.subTest(key):
                self.refuses(model().erase("llama." + key), DAMAGED, f"'llama.{key}' is missing")
                self.refuses(model().set("llama." + key, STRING, "x"), DAMAGED,
                             f"'llama.{key}' is string")

    def test_settings_and_weights_that_the_graph_does_not_have(self):
        self.refuses(model().set("llama.expert_count", U32, 8), UNSUPPORTED, "'llama.expert_count' is set")
        g = model()
        g.tensor("blk.0.ffn_up.weight")["name"] = "blk.0.other.weight"
        self.refuses(g, DAMAGED, "'blk.0.ffn_up.weight' is missing")

    def test_another_architecture_is_converted_with_a_notice(self):
        g = model("other")
        for key in NEEDED:
            if key not in ("embedding_length", "block_count"):
                g.erase("other." + key)
        done = self.succeeds("convert", self.file("model.gguf", g), "-o", self.target, "--no-probe")
        self.assertRegex(done.err, r"(?m)^tsq: warning: tsq has no graph for the architecture 'other' yet")
        done = self.succeeds("verify", self.target)
        self.assertRegex(done.out, r"(?m)^skipped +graph: tsq has none for 'other'$")


class BitNet(SourcesTest):
    """No graph yet: the weights are kept exactly, with activations per token, and tsq says so."""

    def check(self, source, scales):
        done = self.succeeds("convert", source, "-o", self.target)
        self.assertIn("no graph for the architecture 'bitnet", done.err)
        self.assertRegex(self.succeeds("verify", self.target).out, r"(?m)^skipped +graph")
        info = json.loads(self.succeeds("inspect", "--json", self.target).out)
        ternary = [t for t in info["tensors"] if "scales" in t]
        self.assertGreater(len(ternary), 0)
        for tensor in ternary:
            self.assertEqual((tensor["scales"], tensor["activations"]), (scales, "token"))

    def test_gguf(self):
        for architecture in ("bitnet", "bitnet-25", "bitnet-b1.58"):
            with self.subTest(architecture):
                g = model(architecture)
                g.add("blk.0.attn_sub_norm.weight", 0, [HIDDEN], BLOCKS["F32"].data(HIDDEN, 1))
                g.add("i2_s", 36, [256, 4], BLOCKS["I2_S"].data(256, 4))
                self.check(self.file(architecture + ".gguf", g), "tensor")

    def test_folder(self):
        """The tests' llama of packed weights under bitnet's names."""
        source = self.folder / "bitnet"
        shutil.copytree(MODELS / "hf_bitnet", source)
        config = json.loads((source / "config.json").read_text())
        config |= {"model_type": "bitnet", "architectures": ["BitNetForCausalLM"], "hidden_act": "relu2"}
        (source / "config.json").write_text(json.dumps(config))
        self.check(source, "tensor")
        info = json.loads(self.succeeds("inspect", "--json", source).out)
        self.assertEqual(info["metadata"]["general.architecture"], "bitnet-b1.58")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
