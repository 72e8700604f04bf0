"""What perplexity prints."""

import hashlib
import re

from cli.support import CliTest
from tsq_tool import USAGE, tsq


class Perplexity(CliTest):
    TEXT = "The king had three daughters, and the youngest was as kind as she was fair. " * 40

    def measure(self, *arguments, text=TEXT):
        return tsq("perplexity", "-m", self.model, "-f", "-", *arguments, stdin=text)

    def estimate(self, done):
        match = re.search(r"Final estimate: PPL = ([\d.]+) \+- ([\d.]+)\n\Z",
                          self.assert_succeeds(done).out)
        self.assertTrue(match, done.out)
        return float(match[1])

    def test_a_random_model_guesses(self):
        done = self.measure("-c", "64")
        self.assertGreater(self.estimate(done), 50)
        self.assertIn("sha256 " + hashlib.sha256(self.TEXT.encode()).hexdigest(), done.out)
        self.assertRegex(done.err, r"(?m)^\[1/\d+\] [\d.]+$")

    def test_chunks(self):
        done = self.measure("-c", "64", "--chunks", "2")
        self.assertIn("scored          62 tokens in 2 chunks of 64", done.out)

    def test_activations(self):
        exact = self.estimate(self.measure("-c", "64", "--activations", "f32"))
        rounded = self.estimate(self.measure("-c", "64"))
        self.assertNotEqual(exact, rounded)
        self.assertLess(abs(exact - rounded) / exact, 0.1)

    def test_a_text_that_is_too_short(self):
        done = self.measure(text="too short")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertRegex(done.err, r"\d+ tokens, one chunk needs 512")

    def test_saved_logits_replace_nothing_else(self):
        text = self.file("text.txt", self.TEXT.encode())
        arguments = ["perplexity", "-m", self.model, "-f", text, "-c", "64", "--chunks", "1"]
        done = tsq(*arguments, "--save-logits", text)
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn("exists and holds no saved logits", done.err)
        self.assertEqual(text.read_bytes(), self.TEXT.encode())
        saved = self.folder / "saved"
        for _ in range(2):
            self.assert_succeeds(tsq(*arguments, "--save-logits", saved))
        done = tsq(*arguments, "--save-logits", saved, "--kl-base", saved)
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn("is read as --kl-base", done.err)
