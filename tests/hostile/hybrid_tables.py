"""Gated DeltaNet (qwen35): sizes of heads and layers that contradict the tensors or each other, in a GGUF, in a
.tsq whose digests are right, and in a Hugging Face folder."""

import json
import shutil
import struct

from gguf_file import U32
from hostile.support import HostileTest, MODELS, READERS, Tsq, U32_MAX, run_measured
from tsq_tool import DAMAGED, SUCCESS, UNSUPPORTED

TOP = 2**31


def with_number(content, key, value):
    """The bytes of a file in which the u32 of a key is another; GGUF and .tsq write them alike."""
    name = key.encode()
    at = content.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)
    assert struct.unpack_from("<I", content, at)[0] == U32
    return content[:at + 4] + struct.pack("<I", value) + content[at + 8:]


# 2 layers; 2 key heads of 32, 6 value heads of 16, 224 channels; 3 heads of 32, one of them for keys and values.
SIZES = [  # key behind "qwen35.", value, exit, message of any command
    ("ssm.state_size", 32, SUCCESS, ""),
    ("ssm.state_size", 0, DAMAGED, "state_size' is 0, expected 1 to 1024"),
    ("ssm.state_size", 16, DAMAGED, "224 channels, expected 160|expected .*160"),
    ("ssm.state_size", 31, (DAMAGED, UNSUPPORTED), "expected 220|state_size' is 31, tsq has multiples of 16"),
    ("ssm.state_size", 1025, DAMAGED, "state_size' is 1025, expected 1 to 1024"),
    ("ssm.state_size", U32_MAX, DAMAGED, "state_size' is 4294967295"),
    ("ssm.group_count", 0, DAMAGED, "group_count' is 0"),
    ("ssm.group_count", 1, DAMAGED, "expected .*160"),
    ("ssm.group_count", 4, DAMAGED, "time_step_rank' is 6, expected a multiple of .*4"),
    ("ssm.group_count", 6, DAMAGED, "expected .*480"),
    ("ssm.group_count", TOP, DAMAGED, "group_count' is 2147483648"),
    ("ssm.time_step_rank", 0, DAMAGED, "time_step_rank' is 0"),
    ("ssm.time_step_rank", 5, DAMAGED, "time_step_rank' is 5, expected a multiple of .*2"),
    ("ssm.time_step_rank", 2, DAMAGED, "blk.0.ssm_[a-z.]*' .*expected .*2"),
    ("ssm.time_step_rank", 96, (DAMAGED, UNSUPPORTED), "ssm_[a-z.]*' .*expected .*96|heads of 1|multiples of 16"),
    ("ssm.time_step_rank", U32_MAX, DAMAGED, "time_step_rank' is 4294967295"),
    ("ssm.inner_size", 0, DAMAGED, "inner_size' is 0"),
    ("ssm.inner_size", 97, DAMAGED, "inner_size' is 97, expected a multiple of .*6"),
    ("ssm.inner_size", 192, DAMAGED, "expected .*320"),
    ("ssm.inner_size", 2**32 - 96, DAMAGED, "inner_size' is 4294967200"),
    ("ssm.conv_kernel", 0, DAMAGED, "conv_kernel' is 0"),
    ("ssm.conv_kernel", 5, (DAMAGED, UNSUPPORTED), "4 taps, expected 5|conv_kernel' is 5, tsq has 4"),
    ("ssm.conv_kernel", U32_MAX, DAMAGED, "conv_kernel' is 4294967295"),
    ("full_attention_interval", 0, DAMAGED, "interval' is 0, expected 1 to 4096"),
    ("full_attention_interval", 1, UNSUPPORTED, "none of the 2 layers is recurrent"),
    ("full_attention_interval", 3, UNSUPPORTED, "none of the 2 layers attends"),
    ("full_attention_interval", U32_MAX, DAMAGED, "interval' is 4294967295"),
    ("block_count", 0, DAMAGED, "block_count' (is 0|says otherwise)"),
    ("block_count", 3, DAMAGED, "block_count' says otherwise|'blk.2.attn_norm.weight' is missing"),
    ("attention.key_length", 0, DAMAGED, "key_length' is 0"),
    ("attention.key_length", 31, UNSUPPORTED, "heads of 31 keys and 32 values"),
    ("attention.head_count", 0, DAMAGED, "head_count' is 0"),
    ("attention.head_count", 4, DAMAGED, r"attn_q.weight' is \[64, 192\], expected \[64, 256\]"),
    ("attention.head_count_kv", 2, DAMAGED, "head_count' is 3, expected a multiple of the 2"),
    ("attention.head_count_kv", 3, DAMAGED, r"attn_k.weight' is \[64, 32\], expected \[64, 96\]"),
    ("rope.dimension_count", 0, DAMAGED, "dimension_count' is 0, expected 2 to 32"),
    ("rope.dimension_count", 15, DAMAGED, "dimension_count' is 15, expected an even number"),
    ("rope.dimension_count", 34, DAMAGED, "dimension_count' is 34, expected 2 to 32"),
]

FOLDER = [  # setting in text_config, value, exit, message
    ("linear_key_head_dim", 32, SUCCESS, ""),
    ("linear_key_head_dim", 0, DAMAGED, "linear_key_head_dim' is 0, expected a whole number"),
    ("linear_key_head_dim", 16, DAMAGED, r"\[64, 224\], expected \[64, 160\]"),
    ("linear_key_head_dim", -32, DAMAGED, "linear_key_head_dim' is -32"),
    ("linear_key_head_dim", 2**32, DAMAGED, "linear_key_head_dim' is 4294967296"),
    ("linear_num_key_heads", 0, DAMAGED, "linear_num_key_heads' is 0"),
    ("linear_num_key_heads", 4, DAMAGED, "linear_num_value_heads' is 6, expected a multiple of .*4"),
    ("linear_num_value_heads", 8, DAMAGED, "expected .*256"),
    ("linear_num_value_heads", "6", DAMAGED, "linear_num_value_heads' is '6'"),
    ("linear_value_head_dim", 32, DAMAGED, "expected .*320"),
    ("linear_value_head_dim", U32_MAX, DAMAGED, "value heads of 25769803770 values in all"),
    ("linear_conv_kernel_dim", 5, DAMAGED, "has 4 taps, expected 5"),
    ("layer_types", [], DAMAGED, "layer_types"),
    ("layer_types", ["linear_attention"] * 3, DAMAGED, "layer_types"),
    ("layer_types", ["linear_attention"] * 2, UNSUPPORTED, "none of the 2 layers attends"),
    ("layer_types", ["full_attention"] * 2, UNSUPPORTED, "none of the 2 layers is recurrent"),
    ("layer_types", ["full_attention", "linear_attention"], DAMAGED, "is missing"),
    ("layer_types", ["linear_attention", "sliding_attention"], UNSUPPORTED, "sliding_attention"),
    ("num_hidden_layers", 0, DAMAGED, "num_hidden_layers' is 0"),
    ("head_dim", 0, DAMAGED, "head_dim' is 0"),
    ("head_dim", 2048, UNSUPPORTED, "2048"),
    ("attn_output_gate", False, UNSUPPORTED, "attn_output_gate' is false"),
    ("hidden_act", "gelu", UNSUPPORTED, "hidden_act"),
]


class Hybrids(HostileTest):
    def check(self, what, command, path, codes, message):
        codes = codes if isinstance(codes, tuple) else (codes,)
        if command == "verify" and SUCCESS not in codes:
            codes = (DAMAGED,)
        with self.subTest(what, command=command):
            done = self.run_command(command, path)
            self.assertIn(done.code, codes, done.err + done.out)
            if done.code != SUCCESS:
                self.assertRegex(done.out + done.err, message)

    def test_sizes_of_a_gguf(self):
        content = (MODELS / "qwen35_three.gguf").read_bytes()
        for number, (key, value, code, message) in enumerate(SIZES):
            path = self.file(f"{number}.gguf", with_number(content, "qwen35." + key, value))
            self.check(f"{key} {value}", "convert", path, code, message)

    def test_sizes_of_a_tsq(self):
        made = self.folder / "model.tsq"
        done, _ = run_measured("convert", MODELS / "qwen35_three.gguf", "-o", made, "--allow-random")
        self.assertEqual(done.code, SUCCESS, done.err)
        content = made.read_bytes()
        for number, (key, value, code, message) in enumerate(SIZES):
            path = self.file(f"{number}.tsq", Tsq(with_number(content, "qwen35." + key, value)).sign())
            for command in READERS[1:]:
                self.check(f"{key} {value}", command, path, code, message)

    def test_settings_of_a_folder(self):
        for number, (key, value, code, message) in enumerate(FOLDER):
            path = self.folder / str(number)
            shutil.copytree(MODELS / "hf_qwen35_three", path)
            config = json.loads((path / "config.json").read_text())
            config["text_config"][key] = value
            (path / "config.json").write_text(json.dumps(config))
            self.check(f"{key} {value}", "convert", path, code, message)
