"""What run generates: prompts, limits, signals."""

import json
import os
import re
import shutil
import signal
import unittest

from cli.support import CONTEXT, CliTest, MODELS, SOURCE, on_terminal
from tsq_tool import FAILURE, INTERRUPTED, SUCCESS, UNSUPPORTED, USAGE, finish, start, tsq


class Run(CliTest):
    def run_model(self, *arguments, **options):
        return tsq("run", "-m", self.model, *arguments, **options)

    def counted(self, done, what):
        return int(re.search(rf"(?m)^{what} +(\d+) token", done.err)[1])

    def test_streams(self):
        done = self.assert_succeeds(self.run_model("-p", "Once", "-n", "20", "--ignore-eos", "-s",
                                                   "7"))
        self.assertTrue(done.out.endswith("\n"))
        for line in [r"model +.*llama, \d+ layers, .* kB mapped",
                     r"context +1024 tokens: .* of cache \(.*B a token\) and .*B of scratch",
                     r"compute +(scalar|avx2|avx512), \d+ threads?.*, int8 activations", r"seed +7",
                     r"prompt +\d+ tokens? in [\d.]+ s, [\d.]+ tokens/s",
                     r"generated +20 tokens in [\d.]+ s, [\d.]+ tokens/s"]:
            self.assertRegex(done.err, "(?m)^" + line + "$")

    def test_the_seed_decides(self):
        def text(*arguments):
            return self.assert_succeeds(self.run_model("-p", "Once", "-n", "30", *arguments)).out
        self.assertEqual(text("-s", "1"), text("-s", "1"))
        self.assertNotEqual(text("-s", "1"), text("-s", "2"))
        self.assertEqual(text("-s", "1"), text("-s", "1", "-t", "1"))
        self.assertEqual(text("--temp", "0"), text("--temp", "0"))

    def test_the_random_seed_that_is_printed_gives_the_same_text(self):
        first = self.run_model("-p", "Once", "-n", "20")
        seed = re.search(r"(?m)^seed +(\d+)$", first.err)[1]
        self.assertEqual(self.run_model("-p", "Once", "-n", "20", "-s", seed).out, first.out)

    def test_prompts_from_everywhere(self):
        options = ["-n", "20", "-s", "3"]
        expected = self.assert_succeeds(self.run_model("-p", "Once upon", *options)).out
        path = self.file("my prompt.txt", b"Once upon\n")
        for done in [self.run_model(*options, stdin="Once upon\n"),
                     self.run_model(*options, "-f", "-", stdin="Once upon"),
                     self.run_model(*options, "-f", path),
                     self.run_model(*options, "--file=" + str(path)),
                     self.run_model(*options, "--prompt=Once upon")]:
            self.assertEqual(self.assert_succeeds(done).out, expected)

    def test_prompt_files_that_cannot_be_read(self):
        self.assert_refuses(FAILURE, "absent.txt: no such file", "run", "-m", self.model, "-f",
                            "absent.txt")
        self.assert_refuses(FAILURE, "is a directory", "run", "-m", self.model, "-f", self.folder)

    def test_no_prompt_on_a_terminal(self):
        code, shown = on_terminal("run", "-m", self.model)
        self.assertEqual(code, USAGE)
        self.assertRegex(shown, "no prompt: give one with -p TEXT")

    def test_a_terminal_shows_the_prompt_before_the_text(self):
        code, shown = on_terminal("run", "-m", self.model, "-p", "Once upon", "-n", "5", "-s", "1")
        self.assertEqual(code, SUCCESS)
        text = self.run_model("-p", "Once upon", "-n", "5", "-s", "1").out
        self.assertIn("Once upon" + text, shown.replace("\r\n", "\n"))
        done = self.run_model("-p", "Once upon", "-n", "5", "-s", "1", "--display-prompt")
        self.assertEqual(done.out, "Once upon" + text)

    def test_nothing_to_generate(self):
        done = self.assert_succeeds(self.run_model("-p", "Once", "-n", "0"))
        self.assertEqual(done.out, "")
        self.assertEqual(self.counted(done, "generated"), 0)

    def test_progress_is_for_terminals(self):
        arguments = ["run", "-m", self.model, "-p", "Once upon a time " * 40, "-n", "1"]
        self.assertIn("prompt     [", on_terminal(*arguments)[1])
        self.assertNotIn("prompt     [", on_terminal(*arguments, env={"NO_COLOR": "1"})[1])
        self.assertNotIn("[", tsq(*arguments).err)

    def test_no_timings(self):
        done = self.assert_succeeds(self.run_model("-p", "Once", "-n", "3", "--no-timings"))
        self.assertNotRegex(done.err, "(?m)^(prompt|generated)")

    def test_the_rotations_are_checked(self):
        options = ["-p", "Once upon a time", "-n", "5", "-s", "1", "-t", "1"]
        plain = self.run_model(*options)
        done = self.assert_succeeds(self.run_model(*options, "--check-hadamard"))
        self.assertEqual(done.out, plain.out)
        number = r" +[\d.e+-]+"
        for stage in ["attn_q+attn_k+attn_v", "attn_output", "ffn_gate+ffn_up", "ffn_down"]:
            self.assertRegex(done.err, rf"(?m)^blk\.0\.{re.escape(stage)} +128({number}){{9}}$")
        self.assertIn("rotations  sound", done.err)
        self.assertNotIn("WRONG", done.err)
        none = self.folder / "plain.tsq"
        self.assert_succeeds(tsq("convert", MODELS / "llama_tq.tq1_0.gguf", "-o", none, "--no-probe"))
        done = self.assert_succeeds(tsq("run", "-m", none, *options, "--check-hadamard"))
        self.assertIn("the model's weights are not rotated\n", done.err)
        self.assertNotIn("stage", done.err)

    def test_the_order_of_the_rotation(self):
        options = ["-p", "Once", "-n", "5", "-s", "1"]
        plain = self.run_model(*options)
        done = self.assert_succeeds(self.run_model(*options, "--adapter", "hadamard-r128"))
        self.assertEqual(done.out, plain.out)
        for block, message in [(64, "rotation 0, tensor .* the probe says"),
                               (256, "a Hadamard order of 8: rotation"), (2, "expected 4 to 14")]:
            self.assert_refuses(USAGE, message, "run", "-m", self.model, *options,
                                f"--adapter=hadamard-r{block}")
        for name in ["hadamard-r63", "hadamard-r", "lora"]:
            self.assert_refuses(USAGE, "run: --adapter: expected hadamard-rN", "run", "-m",
                                self.model, *options, "--adapter", name)

    def test_an_empty_prompt_needs_a_token_that_begins_a_text(self):
        for done in [self.run_model("-p", "", "-n", "1"), self.run_model("-n", "1"),
                     self.run_model("-n", "1", stdin="\n")]:
            self.assertEqual(self.counted(self.assert_succeeds(done), "prompt"), 1)

        # The same model without one: the key has another name.
        source = self.file("no-bos.gguf", SOURCE.read_bytes().replace(b"bos_token_id", b"xos_token_id"))
        model = self.folder / "no-bos.tsq"
        self.assert_succeeds(tsq("convert", source, "-o", model, "--no-probe"))
        done = tsq("run", "-m", model, "-p", "")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn("tsq: the prompt is empty, and the model has no token that begins a text",
                      done.err)

    def test_the_context_is_a_limit(self):
        # One token a character: no two of them merge.
        def prompt(n):
            return ("\x01" * n)
        for context in [1, 16, 17]:
            for n in [context - 1, context]:
                if n == 0:
                    continue
                with self.subTest(context=context, prompt=n):
                    done = self.assert_succeeds(
                        self.run_model("-p", prompt(n), "-c", context, "--ignore-eos"))
                    self.assertEqual(self.counted(done, "prompt"), n)
                    self.assertEqual(self.counted(done, "generated"), context - n + 1)
                    self.assertIn(f"the context is full at {context} tokens", done.err)
            done = self.run_model("-p", prompt(context + 1), "-c", context)
            self.assertEqual((done.code, done.out), (FAILURE, ""))
            self.assertRegex(done.err, rf"(?m)^tsq: prompt: {context + 1} tokens .* {context} ")

    def test_options_beyond_the_machine_and_the_model(self):
        done = self.assert_succeeds(self.run_model("-p", "x", "-n", "1", "-t", "1000"))
        self.assertRegex(done.err, r"tsq: warning: \d+ threads? .*1000")
        done = self.assert_succeeds(self.run_model("-p", "x", "-n", "1", "-c", CONTEXT + 1))
        self.assertRegex(done.err, r"tsq: warning: .*1025 .*1024")
        self.assert_refuses(USAGE, "2147483647 tokens .* expected at most", "run", "-m", self.model,
                            "-p", "x", "-c", 2**31 - 1)
        self.assert_refuses(USAGE, "-1 threads", "run", "-m", self.model, "-p", "x", "-t", "-1")
        self.assert_refuses(USAGE, "-1 tokens", "run", "-m", self.model, "-p", "x", "-c", "-1")

    def test_a_context_beyond_the_memory_names_the_one_that_fits(self):
        model = MODELS.parents[2] / "models" / "fairy-tales.tsq"
        options = ["run", "-m", model, "-p", "x", "-n", "0", "--activations", "f32"]
        lines = self.assert_succeeds(tsq(*options, "--log-json")).err.splitlines()
        per_token = json.loads(lines[1])["fields"]["cache_bytes_per_token"]
        with open("/proc/meminfo") as meminfo:
            available = 1024 * int(re.search(r"MemAvailable: +(\d+)", meminfo.read())[1])
        if per_token * 2**24 < available:
            self.skipTest("the longest context fits into this machine")
        done = self.assert_refuses(FAILURE, r"a context of 16777216 tokens needs .* GB of cache and "
                                   r".* GB of scratch, .* GB of memory are available: at most \d+ "
                                   r"tokens fit: try -c \d+\n", *options, "-c", 2**24)
        most, offered = map(int, re.search(r"most (\d+) tokens fit: try -c (\d+)", done.err).groups())
        self.assertLess(per_token * most, 0.95 * available)
        self.assertLess(0.9 * most, offered)
        self.assertLess(offered, most)

    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "affinity cannot be set here")
    def test_what_limits_the_threads_is_told(self):
        cpus = sorted(os.sched_getaffinity(0))
        done = finish(start("run", "-m", self.model, "-p", "x", "-n", "0",
                            preexec_fn=lambda: os.sched_setaffinity(0, cpus[:1])))
        cores = json.loads(self.run_model("-p", "x", "-n", "0", "--log-json").err.splitlines()[2])
        self.assertEqual(cores["fields"]["fact"], "compute")
        if cores["fields"]["cores"] == 1:
            self.skipTest("one core cannot be limited")
        self.assertRegex(done.err, rf", 1 thread of {cores['fields']['cores']} cores \(affinity 1"
                                   r"[^)]*\), int8 activations\n")

    def test_stop_strings(self):
        options = ["-p", "Once", "-n", "40", "--ignore-eos", "-s", "5"]
        whole = self.run_model(*options).out.rstrip("\n")
        stop = re.search("[ -~]{3}", whole[5:])[0]
        expected = whole[: whole.index(stop)].rstrip("\n")
        for name in ["--stop", "-r", "--reverse-prompt"]:
            done = self.assert_succeeds(self.run_model(*options, "--stop", "[never]", name, stop))
            self.assertEqual(done.out.rstrip("\n"), expected)

    def test_repacked_weights_give_the_same_text(self):
        options = ["run", "-m", MODELS.parents[2] / "models" / "fairy-tales.tsq", "-p", "Once", "-n",
                   "20", "-s", "1", "--no-timings"]
        plain = self.assert_succeeds(tsq(*options))
        self.assertNotIn("repacked", plain.err)
        none = self.assert_succeeds(tsq(*options, "--repack", "none"))
        self.assertEqual((none.out, none.err), (plain.out, plain.err))
        for repack in ["t2", "auto"]:
            done = self.assert_succeeds(tsq(*options, "--repack", repack))
            self.assertEqual(done.out, plain.out)
            self.assertRegex(done.err, r"(?m)^repacked +(29 tensors, 1\.\d+ MB of memory|nothing: .*)$")
        t2 = self.assert_succeeds(tsq(*options, "--repack", "t2", "--log-json"))
        fields = next(fields for line in t2.err.splitlines()
                      if (fields := json.loads(line)["fields"]).get("fact") == "repacked")
        self.assertEqual(fields["tensors"], 29)
        self.assertGreater(fields["bytes"], 1700000)

    def test_f32_activations(self):
        done = self.assert_succeeds(self.run_model("-p", "x", "-n", "1", "--activations", "f32"))
        self.assertIn("f32 activations", done.err)

    def test_cpu_levels(self):
        options = ["run", "-m", self.model, "-p", "Once", "-n", "20", "-s", "1"]
        scalar = finish(start(*options, env={**os.environ, "TSQ_ISA": "scalar"}))
        self.assertIn("compute    scalar", scalar.err)
        self.assertEqual(scalar.out, tsq(*options).out)
        wrong = finish(start(*options, env={**os.environ, "TSQ_ISA": "avx3"}))
        self.assertEqual((wrong.code, wrong.out), (UNSUPPORTED, ""))
        self.assertRegex(wrong.err, "avx3")

    def test_the_default_model(self):
        self.assert_refuses(USAGE, "no model: name one with -m", "run", "-p", "x",
                            cwd=self.folder)
        below = self.folder / "models" / "recipe"
        below.mkdir(parents=True)
        shutil.copy(self.model, self.folder / "models" / "fairy-tales.tsq")
        for folder in [self.folder, below]:
            self.assert_succeeds(tsq("run", "-p", "x", "-n", "1", cwd=folder))
        (below / ".git").mkdir()
        self.assert_refuses(USAGE, "no model", "run", "-p", "x", cwd=below)

    def endless(self):
        process = start("run", "-m", self.model, "-p", "Once", "-c", 1_000_000, "--ignore-eos")
        self.assertTrue(process.stdout.read(1))
        return process

    def test_an_interrupt_ends_the_text(self):
        process = self.endless()
        process.send_signal(signal.SIGINT)
        done = finish(process)
        self.assertEqual(done.code, INTERRUPTED)
        self.assertTrue(done.out.endswith("\n"))
        self.assertRegex(done.err, r"(?m)^generated +\d+ tokens?")

    def test_two_interrupts_end_the_process(self):
        process = self.endless()
        os.kill(process.pid, signal.SIGSTOP)  # so that both wait for it
        process.send_signal(signal.SIGINT)
        os.kill(process.pid, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        self.assertEqual(finish(process).code, INTERRUPTED)

    def test_a_closed_pipe_ends_it_quietly(self):
        process = self.endless()
        process.stdout.close()
        self.assertEqual(process.wait(60), -signal.SIGPIPE)
        self.assertNotIn("tsq:", process.stderr.read().decode().split("\nseed")[1])
        process.stderr.close()
