"""What verify finds."""

import hashlib
import json
import re
import struct

from cli.support import CliTest, SOURCE
from tsq_tool import DAMAGED, tsq


class Verify(CliTest):
    def test_a_sound_file(self):
        done = self.assert_succeeds(tsq("verify", self.model))
        self.assertRegex(done.out, r"(?m)^ok +token probe")
        self.assertNotRegex(done.out, r"(?m)^FAILED")
        self.assertEqual(self.assert_succeeds(tsq("fsck", self.model)).out, done.out)

    def section(self, k):
        """Where section k of the model lies, in the order of FORMAT.md."""
        return struct.unpack_from("<QQ", self.model.read_bytes(), 96 + 64 * k + 8)

    def planted(self, change, model=None):
        """The model after a change of its small sections, signed again."""
        content = bytearray((model or self.model).read_bytes())
        change(content)
        for k in range(6):
            entry = 96 + 64 * k
            offset, size = struct.unpack_from("<QQ", content, entry + 8)
            digest = hashlib.sha256(content[offset : offset + size]).digest()
            content[entry + 32 : entry + 64] = digest
        content[992:1024] = hashlib.sha256(content[:992]).digest()
        return self.file("planted.tsq", content)

    def assert_fails(self, path, check):
        """The one check that fails."""
        done = tsq("verify", path)
        self.assertEqual(done.code, DAMAGED, done.err)
        self.assertEqual(re.findall("(?m)^FAILED", done.out), ["FAILED"], done.out)
        self.assertRegex(done.out, rf"(?m)^FAILED +{check}")
        self.assertRegex(done.err, rf"\Atsq: {re.escape(str(path))}: 1 of the checks failed\n\Z")

    def test_a_weight_that_the_graph_misses(self):
        """Without a token probe nothing else would notice."""
        silent = self.folder / "silent.tsq"
        self.assert_succeeds(tsq("convert", SOURCE, "-o", silent, "--no-probe"))

        def rename(content):
            at = content.index(b"output_norm.weight")
            content[at : at + 18] = b"output_form.weight"
        self.assert_fails(self.planted(rename, silent), "tensor 'output_norm.weight' is missing")

    def test_a_flipped_bit_in_the_data(self):
        def flip(content):
            content[-100] ^= 1
        path = self.damaged_model(flip)
        done = tsq("verify", path)
        self.assertEqual(done.code, DAMAGED)
        self.assertRegex(done.out, r"(?m)^FAILED +tensor '[\w.]+': XXH3-64.*: found .*, expected")
        self.assertRegex(done.err, rf"\Atsq: {re.escape(str(path))}: \d+ of the checks failed\n\Z")

    def test_the_token_probe_is_replayed(self):
        probe = json.loads(tsq("inspect", "--json", self.model).out)["token_probe"]
        start, _ = self.section(5)

        def put(offset, form, value):
            return lambda content: struct.pack_into(form, content, start + offset, value)
        for change, check in [
            (put(16, "<d", 1.5), rf"token probe: mean .* is {probe['mean_nll']:.3f}.*, expected 1\.5"),
            (put(24 + 4 * 3, "<I", 7),
             f"token probe: token 3 is 7, expected {probe['tokens'][3]}, as its text begins"),
            (put(152 + 4 * 5, "<I", probe["greedy"][5] ^ 1),
             f"token probe: greedy token 5 is {probe['greedy'][5]}, expected"),
            (put(0, "<216s", struct.pack("<I", 4)),
             "token probe: found that there is no tokenizer, and a tokenizer section"),
            (put(0, "<216s", b""), "token probe: found an empty slot"),
        ]:
            with self.subTest(check):
                self.assert_fails(self.planted(change), check)

    def test_the_token_probe_sees_what_no_other_check_does(self):
        info = json.loads(tsq("inspect", "--json", self.model).out)

        def other_rope(content):
            at = content.index(b"llama.rope.freq_base") + 20 + 4
            struct.pack_into("<f", content, at, 2 * info["metadata"]["llama.rope.freq_base"])

        def other_sign(content):
            # Rotation 0: block, width, flags, reserved, signs. The first input without a probe.
            rotations, probes = self.section(2)[0], self.section(5)
            probed = {struct.unpack_from("<Q", content, at + 16)[0]
                      for at in range(probes[0] + 216, sum(probes), 32)}
            i = min(set(range(256)) - probed)
            content[rotations + 16 + i // 8] ^= 1 << i % 8

        for change in [other_rope, other_sign]:
            with self.subTest(change.__name__):
                self.assert_fails(self.planted(change), "token probe: mean negative log-likelihood")

    def test_rotations(self):
        probes, _ = self.section(5)
        rotations, _ = self.section(2)
        col = struct.unpack_from("<Q", self.model.read_bytes(), probes + 216 + 16)[0]

        def sign_at_a_probe(content):
            content[rotations + 16 + col // 8] ^= 1 << col % 8
        done = tsq("verify", self.planted(sign_at_a_probe))
        self.assertEqual(done.code, DAMAGED, done.err)
        self.assertRegex(done.out, rf"(?m)^FAILED +rotation 0, tensor '[\w.]+', un-rotated weight of "
                                   rf"row 0, input {col}: found .*, expected")
        self.assertRegex(done.out, "(?m)^skipped +token probe: the data is damaged")

    def test_the_header_follows_from_the_rest(self):
        for offset, field in [(8, "hidden_size"), (12, "num_layers"), (20, "quant_type"),
                              (24, "hadamard_order"), (72, "critical_features")]:
            def change(content):
                content[offset] ^= 1
            self.assert_refuses(DAMAGED, f"header: {field}", "verify", self.planted(change))
