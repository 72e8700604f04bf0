"""Lines on stderr: levels, JSON, progress bars."""

import datetime
import json
import os
import re

from cli.support import CliTest, SOURCE, on_terminal
from tsq_tool import DAMAGED, FAILURE, SUCCESS, USAGE, finish, start, tsq


class Log(CliTest):
    def run_model(self, *arguments, **options):
        return self.assert_succeeds(
            tsq("run", "-m", self.model, "-p", "Once", "-n", "2", "-s", "7", *arguments, **options))

    def lines(self, done):
        return [json.loads(line) for line in done.err.splitlines()]

    def test_levels(self):
        whole = self.run_model("-c", "1025")  # more than the model's: a warning
        self.assertEqual(self.run_model("-c", "1025", "--log-level", "info").out, whole.out)
        self.assertIn("tsq: warning: a context of 1025 tokens", whole.err)
        self.assertIn("model      ", whole.err)
        warned = self.run_model("-c", "1025", "--log-level=warn")
        self.assertEqual(warned.out, whole.out)
        self.assertRegex(warned.err, r"\Atsq: warning: a context of 1025 tokens[^\n]*\n\Z")
        self.assertEqual(self.run_model("-c", "1025", "--log-level", "error").err, "")
        more = self.run_model("--log-level", "debug", env={**os.environ, "TSQ_TOP_K": "3"})
        self.assertIn("tsq: debug: from the environment: TSQ_TOP_K='3'\n", more.err)
        for level in ["error", "warn", "info", "debug"]:
            self.assert_refuses(USAGE, "no model: name one", "run", "-p", "x", "--log-level", level,
                                cwd=self.folder)
        self.assert_refuses(USAGE, "run: --log-level: .*error,warn,info,debug", "run", "-p", "x",
                            "--log-level", "loud")

    def test_json(self):
        before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
        lines = self.lines(self.run_model("--log-json"))
        for line in lines:
            self.assertEqual(list(line), ["time", "level", "message", "fields"])
            self.assertEqual(line["level"], "info")
            self.assertRegex(line["time"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
            time = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00"))
            self.assertLessEqual(before, time)
            self.assertLessEqual(time, datetime.datetime.now(datetime.timezone.utc))
        facts = {line["fields"]["fact"]: line["fields"] for line in lines}
        self.assertEqual(list(facts)[0], "model")
        self.assertEqual(facts["model"]["architecture"], "llama")
        self.assertEqual(facts["model"]["file_bytes"], self.model.stat().st_size)
        self.assertEqual(facts["context"]["tokens"], 1024)
        self.assertEqual(facts["compute"]["activations"], "int8")
        self.assertEqual(facts["seed"]["seed"], 7)
        self.assertEqual(facts["generated"]["tokens"], 2)
        self.assertGreater(facts["prompt"]["tokens_per_second"], 0)

    def test_the_largest_seed_stays_whole(self):
        done = tsq("run", "-m", self.model, "-p", "x", "-n", "0", "--log-json", "-s", 2**64 - 1)
        self.assertIn(2**64 - 1, [line["fields"].get("seed") for line in self.lines(done)])

    def test_json_of_every_command(self):
        text = self.file("text.txt", b"once upon a time " * 200)
        for code, level, arguments in [
            (SUCCESS, None, ["inspect", self.model]),
            (SUCCESS, None, ["verify", self.model]),
            (SUCCESS, None, ["convert", SOURCE, "-o", self.folder / "a.tsq", "--allow-random"]),
            (SUCCESS, "info", ["perplexity", "-m", self.model, "-f", text, "-c", "64"]),
            (SUCCESS, "warn", ["run", "-m", self.model, "-p", "x", "-n", "0", "-c", "1025"]),
            (USAGE, "error", ["run", "--bogus"]),
            (USAGE, "error", ["run", "-n", "many"]),
            (USAGE, "error", ["convert"]),
            (FAILURE, "error", ["inspect", self.folder / "absent"]),
            (DAMAGED, "error", ["verify", self.file("empty.tsq")]),
        ]:
            with self.subTest(arguments):
                plain = tsq(*arguments)
                done = tsq(arguments[0], "--log-json", *arguments[1:])
                self.assertEqual((plain.code, done.code), (code, code), done.err)
                self.assertEqual(done.out, plain.out)
                lines = self.lines(done)
                if level is None:
                    self.assertEqual(lines, [])
                else:
                    self.assertIn(level, [line["level"] for line in lines])
                if level == "error":
                    self.assertEqual("tsq: " + lines[0]["message"] + "\n", plain.err)

    def test_json_of_names_that_are_no_text(self):
        path = os.fsencode(self.folder) + b'/a"\\\n\xff.tsq'
        with open(path, "wb"):
            pass
        done = finish(start("verify", "--log-json", os.fsdecode(path)))
        self.assertEqual(done.code, DAMAGED)
        line, = self.lines(done)
        self.assertIn('/a"\\\n\ufffd.tsq', line["message"])

    def test_a_value_that_looks_like_the_option(self):
        done = self.assert_succeeds(tsq("run", "-m", self.model, "-n", "0", "-p", "--log-json"))
        self.assertTrue(done.err.startswith("model      "))

    def test_bars_are_not_among_json_lines_nor_below_info(self):
        arguments = ["run", "-m", self.model, "-p", "Once upon a time " * 40, "-n", "1"]
        self.assertIn("prompt     [", on_terminal(*arguments)[1])
        for quiet in [["--log-json"], ["--log-level", "warn"]]:
            self.assertNotIn("[", on_terminal(*arguments, *quiet)[1].replace("[3]", ""))
        self.assertNotIn("prompt     [", on_terminal(*arguments, env={"TERM": "dumb"})[1])

    def test_json_lines_on_a_terminal_hold_no_echo_of_the_prompt(self):
        code, shown = on_terminal("run", "-m", self.model, "-p", "Xyzzy", "-n", "0", "--log-json")
        self.assertEqual(code, SUCCESS)
        for line in shown.splitlines():
            json.loads(line)

    def test_json_lines_of_a_conversation_on_a_terminal(self):
        shown = on_terminal("run", "-m", self.model, "-cnv", "-n", "1", "--log-json",
                            typed=b"/help\n/nonsense\n\x04")[1]
        lines = [line for line in shown.splitlines() if line.startswith("{")]
        levels = [json.loads(line)["level"] for line in lines]
        self.assertGreater(levels.count("info"), 10)
        self.assertEqual(levels.count("error"), 1)
        # What is left is what the terminal itself echoes.
        others = "".join(line for line in shown.splitlines() if not line.startswith("{"))
        self.assertEqual(re.sub(r"/help|/nonsense|\^D|\x08", "", others), "")

    def test_a_bar_fits_its_terminal(self):
        arguments = ["run", "-m", self.model, "-p", "Once upon a time " * 40, "-n", "1"]
        for columns in [20, 40, 70]:
            shown = on_terminal(*arguments, columns=columns)[1]
            bars = [part.split("\x1b")[0] for part in shown.split("\r") if "prompt  " in part]
            self.assertTrue(bars)
            self.assertLess(max(map(len, [bar for bar in bars if "%" in bar])), columns)

    def test_a_closed_stderr_changes_nothing(self):
        expected = self.run_model().out
        for arguments in [[], ["--log-json"], ["--log-level", "debug"]]:
            done = finish(start("run", "-m", self.model, "-p", "Once", "-n", "2", "-s", "7",
                                *arguments, preexec_fn=lambda: os.close(2)))
            self.assertEqual((done.code, done.out), (SUCCESS, expected))
