"""Help, mistakes, values and streams."""

import os

from cli.support import COMMANDS, CliTest, SOURCE
from tsq_tool import FAILURE, SUCCESS, USAGE, finish, start, tsq


class Usage(CliTest):
    def test_nothing_shows_the_help_and_is_an_error(self):
        done = tsq()
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn("Usage: tsq", done.err)

    def test_help_goes_to_stdout(self):
        done = self.assert_succeeds(tsq("--help"))
        self.assertEqual(done.err, "")
        for command in COMMANDS:
            self.assertRegex(done.out, rf"(?m)^  {command}\b")
            own = self.assert_succeeds(tsq(command, "--help"))
            self.assertEqual(own.err, "")
            self.assertIn(f"Usage: tsq {command}", own.out)

    def test_mistakes(self):
        for message, *arguments in [
            ("unknown command 'runn'; did you mean 'run'[?] see 'tsq --help'\n", "runn"),
            ("unknown command 'fskc'; did you mean 'fsck'[?]", "fskc"),
            ("unknown command 'x'; see 'tsq --help'\n", "x"),
            ("unknown option '--bogus'; see 'tsq --help'\n", "--bogus"),
            ("unknown option '--versoin'; did you mean '--version'[?]", "--versoin"),
            ("run: unknown option '--bogus'; see 'tsq run --help'\n", "run", "--bogus"),
            ("run: unknown option '-x'; see 'tsq run --help'\n", "run", "-p", "x", "-x"),
            ("run: unknown option '--tmep'; did you mean '--temp'[?] see 'tsq run --help'\n", "run",
             "--tmep", "0"),
            ("run: unknown option '--tmep=0'; did you mean '--temp'[?]", "run", "--tmep=0"),
            ("run: unknown option '-temp'; did you mean '--temp'[?]", "run", "-temp", "0"),
            ("verify: unknown option '--log-jsno'; did you mean '--log-json'[?]", "verify",
             "--log-jsno"),
            ("run: unknown option '--bogus=1'", "run", "-p", "x", "--bogus=1"),
            ("run: unexpected argument 'model.tsq'", "run", "model.tsq"),
            ("run: .*--predict", "run", "-n", "many"),
            ("run: .*--predict", "run", "--predict", "-7"),
            ("run: .*--seed", "run", "--seed", "-2"),
            ("run: .*--seed", "run", "--seed", "18446744073709551616"),
            ("run: unknown option '-hf'", "run", "-hf", "someone/model", "-p", "x"),
            ("run: unknown option '-fa'", "run", "-p", "x", "-fa"),
            ("run: unknown option '-tb'", "run", "-tb", "4"),
            ("run: .*--activations.*int8,f32", "run", "--activations", "f16"),
            ("run: .*--stop", "run", "--stop", ""),
            ("run: .*--model", "run", "-p", "x", "-m"),
            ("run: .*--prompt", "run", "-p", "x", "-f", "y"),
            ("convert: SRC is required", "convert", "-o", "x"),
            ("convert: --output is required", "convert", "x.gguf"),
            ("convert: .*--encoding.*auto,t1,t2", "convert", "x", "-o", "y", "--encoding", "t3"),
            ("convert: .*--dense.*keep,f16,q8,q4", "convert", "x", "-o", "y", "--dense", "q5"),
            ("convert: .*--assume-layout.*i2s-64", "convert", "x", "-o", "y", "--assume-layout=i2"),
            ("inspect: MODEL is required", "inspect"),
            ("verify: MODEL is required", "verify"),
            ("perplexity: --file is required", "perplexity"),
            ("perplexity: .*--ctx-size", "perplexity", "-f", "x", "-c", "3"),
        ]:
            with self.subTest(arguments):
                self.assert_refuses(USAGE, message, *arguments)

    def test_bad_sampling(self):
        for message, *arguments in [
            ("temperature is -1, expected 0", "--temp", "-1"),
            ("temperature is nan", "--temp", "nan"),
            ("top-k is -1, expected", "--top-k", "-1"),
            ("top-p is 0, expected", "--top-p", "0"),
            ("min-p is 2, expected", "--min-p", "2"),
            ("repeat-penalty is 0, expected", "--repeat-penalty", "0"),
            ("repeat-last-n is -1, expected", "--repeat-last-n", "-1"),
        ]:
            with self.subTest(arguments):
                self.assert_refuses(USAGE, message, "run", "-m", self.model, "-p", "x", *arguments)

    def test_what_is_documented_but_not_built_is_refused_by_name(self):
        for command, arguments in [
            ("run", ["-ngl", "99"]),
            ("run", ["-ngl=99"]),
            ("run", ["--dtype", "ternary-bonsai"]),
            ("convert", ["--ternarize"]), ("convert", ["--rle-threshold", "0.28"]),
            ("convert", ["--residual-ratio", "0.01"]), ("convert", ["--hadamard-order", "64"]),
            ("perplexity", ["-ngl", "99"]), ("bench", ["-ngl", "99"]),
        ]:
            with self.subTest(arguments):
                name = arguments[0].split("=")[0]
                self.assert_refuses(USAGE, f"{command}: {name} is not built yet", command,
                                    *arguments)
        self.assert_refuses(USAGE, "serve is not built yet", "serve", "-m", "x")

    def test_a_value_may_look_like_an_option(self):
        done = self.assert_succeeds(tsq("run", "-m", self.model, "-p", "-ngl", "-n", "0"))
        self.assertIn("prompt", done.err)
        done = self.assert_succeeds(tsq("run", "-m", self.model, "--prompt=", "-n", "0"))
        self.assertIn("prompt     1 token", done.err)
        for short in [("-p=hi", "-n=3"), ("-p", "hi", "-n3")]:
            done = self.assert_succeeds(tsq("run", "-m", self.model, *short, "-s=1"))
            self.assertIn("generated  3 tokens", done.err)
            self.assertIn("seed       1\n", done.err)

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            done = finish(start("inspect", self.model, stdout=full))
        self.assertEqual(done.code, FAILURE)
        self.assertRegex(done.err, "standard output: no space left on device")

    def test_closed_streams(self):
        def start_without(stream, *arguments):
            return finish(start(*arguments, preexec_fn=lambda: os.close(stream)))

        self.assertEqual(start_without(0, "run", "-m", self.model).code, FAILURE)
        for stream, code in [(1, FAILURE), (2, SUCCESS)]:
            target = self.folder / f"{stream}.tsq"
            done = start_without(stream, "convert", SOURCE, "-o", target, "--allow-random")
            self.assertEqual(done.code, code, done.err)
            self.assertEqual(target.read_bytes(), self.model.read_bytes())
