"""The tool from outside: what it prints, where, and its exit code.

    cli_test.py TSQ MODELS [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models.
"""

import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from gguf_file import Gguf, STRING, U32
from tsq_tool import (DAMAGED, FAILURE, INTERRUPTED, SUCCESS, TSQ, UNSUPPORTED, USAGE, finish, start,
                      tsq)

MODELS = pathlib.Path(sys.argv[2]).resolve()
SOURCE = MODELS / "llama_rot128.ptq1_0.gguf"
CONTEXT = 1024  # of every tiny model

COMMANDS = ["run", "convert", "inspect", "verify", "perplexity", "bench"]


def on_terminal(*arguments, env=None):
    """Runs with a terminal for stdin, stdout and stderr: the exit code and all it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TSQ, ["tsq", *map(str, arguments)], {**os.environ, **(env or {})})
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tsq-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.model = cls.shared / "model.tsq"
        done = tsq("convert", SOURCE, "-o", cls.model, "--allow-random")
        assert done.code == SUCCESS, done.err

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))

    def file(self, name, content=b""):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def damaged_model(self, change):
        content = bytearray(self.model.read_bytes())
        return self.file("damaged.tsq", change(content) or bytes(content))

    def assert_succeeds(self, done):
        self.assertEqual(done.code, SUCCESS, done.err)
        return done

    def assert_refuses(self, code, message, *arguments, **options):
        """The exit code, nothing on stdout, one line on stderr that holds the message."""
        done = tsq(*arguments, **options)
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, r"\Atsq: [^\n]*\n\Z")
        self.assertRegex(done.err, message)
        return done


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

    def test_version(self):
        self.assertRegex(self.assert_succeeds(tsq("--version")).out, r"\Atsq \d+\.\d+\.\d+\n\Z")

    def test_mistakes(self):
        for message, *arguments in [
            ("unknown command 'runn'", "runn"),
            ("unknown option '--bogus'", "--bogus"),
            ("run: unknown option '--bogus'", "run", "--bogus"),
            ("run: unknown option '--bogus=1'", "run", "-p", "x", "--bogus=1"),
            ("run: unexpected argument 'model.tsq'", "run", "model.tsq"),
            ("run: .*--predict", "run", "-n", "many"),
            ("run: .*--predict", "run", "--predict", "-7"),
            ("run: .*--seed", "run", "--seed", "-2"),
            ("run: .*--seed", "run", "--seed", "18446744073709551616"),
            ("run: unknown option '-hf'", "run", "-hf", "someone/model", "-p", "x"),
            ("run: unknown option '-no-cnv'", "run", "-no-cnv"),
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
            ("run", ["-cnv"]), ("run", ["-sys", "be brief"]), ("run", ["-ngl", "99"]),
            ("run", ["-ngl=99"]), ("run", ["--repack", "t2"]),
            ("run", ["--dtype", "ternary-bonsai"]), ("run", ["--adapter=hadamard-r64"]),
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


class WrongFiles(CliTest):
    """One row a file: what every command that reads a model says to it."""

    def check(self, path, expected, commands=("run", "inspect", "verify", "perplexity", "bench")):
        text = self.file("text.txt", b"once upon a time " * 2000)
        for command in commands:
            arguments = {"run": ["-p", "x", "-m", path], "inspect": [path], "verify": [path],
                         "perplexity": ["-f", text, "-m", path], "bench": ["-m", path]}[command]
            with self.subTest(command=command, file=path.name):
                code, message = expected
                self.assert_refuses(code, f"(?i){re.escape(str(path))}.*({message})", command,
                                    *arguments)

    def test_missing(self):
        self.check(self.folder / "absent.tsq", (FAILURE, "no such file|does not exist"))

    def test_folder(self):
        self.check(self.folder, (FAILURE, "folder|directory"))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_no_permission(self):
        path = self.file("secret.tsq", b"TSQ\0")
        path.chmod(0)
        self.check(path, (FAILURE, "permission"))

    def test_empty(self):
        self.check(self.file("empty.tsq"), (DAMAGED, "empty|0 bytes"))

    def test_text(self):
        self.check(self.file("letter.tsq", b"Dear reader,\n" * 400), (DAMAGED, "not a .tsq file"))

    def test_gguf(self):
        self.check(SOURCE, (UNSUPPORTED, "a GGUF file; convert it first: tsq convert"),
                   commands=("run", "verify", "perplexity", "bench"))

    def test_truncated(self):
        def cut(content):
            return bytes(content[: len(content) // 2])
        self.check(self.damaged_model(cut), (DAMAGED, "."))

    def test_names_with_spaces_and_other_scripts(self):
        path = self.folder / "mein Modell 模型 🦊.tsq"
        shutil.copy(self.model, path)
        self.assert_succeeds(tsq("inspect", path))
        self.assert_succeeds(tsq("run", "-m", path, "-p", "x", "-n", "1"))


class Convert(CliTest):
    def convert(self, *arguments):
        return tsq("convert", *arguments, "--allow-random")

    def files(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_the_summary_is_the_result(self):
        done = self.assert_succeeds(self.convert(SOURCE, "-o", self.folder / "a.tsq"))
        for line in [r"architecture +llama", r"quantisation +ternary_hadamard", r"file +[\d,]+ bytes",
                     r"parameters +[\d,]+", r"bits/weight +\d", r"rotation +block 128 over 256, signs",
                     r"token probe +mean NLL \d"]:
            self.assertRegex(done.out, "(?m)^" + line)
        self.assertEqual(self.files(), ["a.tsq"])

    def test_source_and_target_by_their_other_names(self):
        target = self.folder / "a.tsq"
        self.assert_succeeds(self.convert("--src", SOURCE, "--dst", target))
        self.assertEqual(target.read_bytes(), self.model.read_bytes())

    def test_a_hugging_face_folder(self):
        target = self.folder / "a.tsq"
        done = self.assert_succeeds(self.convert(MODELS / "hf_llama", "-o", target))
        self.assertRegex(done.out, r"(?m)^architecture +llama")
        self.assertNotIn("no tokenizer", done.err)
        whole = target.read_bytes()
        shard = MODELS / "hf_llama" / "model-00002-of-00002.safetensors"
        self.assert_succeeds(self.convert(shard, "-o", target))
        self.assertEqual(target.read_bytes(), whole)

    def test_a_folder_that_is_wrong_is_named_once(self):
        source = self.folder / "model"
        shutil.copytree(MODELS / "hf_qwen3", source)
        (source / "config.json").write_text('{"model_type": "gpt2"}')
        for path in (source, f"{source}/"):
            self.assert_refuses(UNSUPPORTED, f"tsq: {path}: config.json: 'model_type' is 'gpt2'",
                                "convert", path, "-o", self.folder / "a.tsq")
        (source / "config.json").unlink()
        for path in (source, f"{source}/"):
            self.assert_refuses(FAILURE, f"tsq: {source}/config.json: is missing", "convert", path,
                                "-o", self.folder / "a.tsq")

    def test_encodings(self):
        sizes = {}
        for encoding in ["auto", "t1", "t2"]:
            target = self.folder / encoding
            self.assert_succeeds(self.convert(SOURCE, "-o", target, "--encoding", encoding))
            sizes[encoding] = target.stat().st_size
        self.assertEqual(sizes["auto"], sizes["t1"])

    def test_a_tsq_file_converted_again(self):
        t2, back = self.folder / "t2.tsq", self.folder / "back.tsq"
        done = self.assert_succeeds(self.convert(self.model, "-o", back))
        self.assertEqual(done.err, "")
        self.assertEqual(back.read_bytes(), self.model.read_bytes())
        self.assert_succeeds(self.convert(self.model, "-o", t2, "--encoding", "t2"))
        self.assertNotEqual(t2.read_bytes(), self.model.read_bytes())
        self.assert_succeeds(self.convert(t2, "-o", back, "--encoding", "t1"))
        self.assertEqual(back.read_bytes(), self.model.read_bytes())
        self.assert_succeeds(tsq("convert", t2, "-o", back, "--encoding", "t1", "--no-probe"))
        self.assertEqual(back.read_bytes(), self.model.read_bytes())
        self.assert_refuses(USAGE, "the source itself", "convert", t2, "-o", t2)

        def flip(content):
            content[-100] ^= 1
        path = self.damaged_model(flip)
        self.assert_refuses(DAMAGED, rf"{path}: tensor '[\w.]+': XXH3-64 .*'tsq verify' lists",
                            "convert", path, "-o", self.folder / "out.tsq")
        self.assertEqual(self.files(), ["back.tsq", "damaged.tsq", "t2.tsq"])

    def test_float_tensors_of_ternary_values(self):
        def values(scale):
            return struct.pack("<256f", *[scale * (i % 3 - 1) for i in range(256)])
        source = self.file("fake.gguf", gguf_of([("token_embd.weight", 0, [64, 2], bytes(512)),
                                                 ("a", 0, [128, 2], values(0.5)),
                                                 ("b", 0, [128, 2], values(0.1)),
                                                 ("c", 0, [128, 2], values(0.3))]))
        done = self.assert_succeeds(self.convert(source, "-o", self.folder / "a.tsq"))
        self.assertRegex(done.out, r"(?m)^recognised +1 float tensors whose values are ternary")
        self.assertRegex(done.out, r"(?m)^left dense +2 float tensors .* the first is 'b'$")

    def test_dense_matrices_may_be_rounded(self):
        source, target = MODELS / "llama_tied.gguf", self.folder / "a.tsq"
        self.assert_succeeds(self.convert(source, "-o", target))
        exact = target.stat().st_size
        done = self.assert_succeeds(self.convert(source, "-o", target, "--dense", "q8"))
        self.assertRegex(done.out, r"(?m)^rounded +\d+ dense tensors, to q8 as asked$")
        self.assertLess(target.stat().st_size, exact)

    def test_a_random_model_is_refused_unless_allowed(self):
        self.assert_refuses(DAMAGED, f"{SOURCE}: .* no better than chance", "convert", SOURCE, "-o",
                            self.folder / "a.tsq")
        self.assertEqual(self.files(), [])

    def test_without_a_probe(self):
        done = self.assert_succeeds(tsq("convert", SOURCE, "-o", self.folder / "a.tsq",
                                        "--no-probe"))
        self.assertRegex(done.out, r"(?m)^token probe +none \(left out")

    def test_wrong_sources(self):
        source = SOURCE.read_bytes()
        for code, message, path in [
            (FAILURE, "no such file|does not exist", self.folder / "absent.gguf"),
            (FAILURE, "folder|directory", self.shared),
            (DAMAGED, "empty|0 bytes", self.file("empty.gguf")),
            (DAMAGED, "GGUF", self.file("text.gguf", b"Dear reader,\n" * 400)),
            (DAMAGED, ".", self.file("cut.gguf", source[:5000])),
            (DAMAGED, ".", self.file("short.gguf", source[:-1000])),
        ]:
            with self.subTest(path.name):
                before = self.files()
                self.assert_refuses(code, f"(?i){re.escape(str(path))}.*({message})", "convert", path,
                                    "-o", self.folder / "out.tsq")
                self.assertEqual(self.files(), before)

    def test_targets(self):
        old = self.file("old.tsq", self.model.read_bytes())
        self.assert_succeeds(self.convert(SOURCE, "-o", old, "--encoding", "t2"))
        self.assertNotEqual(old.read_bytes(), self.model.read_bytes())

        notes = self.file("notes.txt", b"do not lose me")
        self.assert_refuses(FAILURE, "notes.txt: exists and is no .tsq file; --force replaces it",
                            "convert", SOURCE, "-o", notes)
        self.assertEqual(notes.read_bytes(), b"do not lose me")
        self.assert_succeeds(self.convert(SOURCE, "-o", notes, "--force"))

        source = self.file("source.gguf", SOURCE.read_bytes())
        self.assert_refuses(USAGE, "the source itself", "convert", source, "-o", source, "--force")
        for target in [self.folder, "/dev/null"]:
            self.assert_refuses(USAGE, f"{target}: exists and is not a regular file", "convert",
                                SOURCE, "-o", target, "--force")
        self.assert_refuses(FAILURE, "absent", "convert", SOURCE, "-o",
                            self.folder / "absent" / "a.tsq")
        self.assertEqual(self.files(), ["notes.txt", "old.tsq", "source.gguf"])

    def test_a_limit_on_file_sizes_leaves_nothing(self):
        size = self.model.stat().st_size
        for limit in [0, 20480, 65536, 65536 + 4096, size // 2, size - 1]:
            done = finish(start("convert", SOURCE, "-o", self.folder / "out.tsq", "--allow-random",
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                      (limit, limit))))
            self.assertEqual(done.code, FAILURE, done.err)
            self.assertRegex(done.err, r"\Atsq: .*out.tsq: .*size limit[^\n]*\n\Z")
            self.assertEqual(self.files(), [])

    def test_an_interrupt_leaves_nothing(self):
        source = self.file("big.gguf")
        write_big_gguf(source)
        for number, code in [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM),
                             (signal.SIGQUIT, -signal.SIGQUIT)]:
            with self.subTest(number.name):
                process = start("convert", source, "-o", self.folder / "out.tsq")
                while process.poll() is None and len(self.files()) < 2:
                    time.sleep(0.001)
                process.send_signal(number)
                done = finish(process)
                self.assertEqual(done.code, code, done.err)
                self.assertEqual(done.out, "")
                self.assertEqual(self.files(), ["big.gguf"])

    def test_killed_it_leaves_no_model(self):
        source, target = self.file("big.gguf"), self.file("out.tsq", self.model.read_bytes())
        write_big_gguf(source)
        process = start("convert", source, "-o", target)
        while process.poll() is None and len(self.files()) < 3:
            time.sleep(0.001)
        process.kill()
        self.assertEqual(finish(process).code, -signal.SIGKILL)
        self.assertEqual(target.read_bytes(), self.model.read_bytes())
        temporary, = set(self.files()) - {"big.gguf", "out.tsq"}
        self.assertRegex(temporary, r"^\.out\.tsq\.\d+-\d+\.tmp$")
        # Whatever had been written of it, no command takes it for a model.
        self.assert_refuses(DAMAGED, ".", "verify", self.folder / temporary)
        # Nor does it stand in the way of the next conversion.
        self.assert_succeeds(self.convert(SOURCE, "-o", target, "--encoding", "t2"))

    def test_a_full_disk_leaves_nothing(self):
        # A file system of 200 kB, seen by a namespace of its own: a place for the front, not for all.
        script = ('mount -t tmpfs -o size=200k none "$1" && shift && "$@"; code=$?; '
                  'ls -A "$0"; exit $code')
        def on_small_disk(*arguments):
            return subprocess.run(["unshare", "-rm", "sh", "-c", script, self.folder, self.folder,
                                   *map(str, arguments)], capture_output=True, text=True)
        if on_small_disk("true").returncode != 0:
            self.skipTest("this system lets nobody mount a file system in a namespace")
        source, target = MODELS / "llama_tied.gguf", self.folder / "out.tsq"
        self.assert_succeeds(tsq("convert", source, "-o", target, "--no-probe"))
        self.assertGreater(target.stat().st_size, 200 * 1024)
        done = on_small_disk(TSQ, "convert", source, "-o", target, "--no-probe")
        self.assertEqual((done.returncode, done.stdout), (FAILURE, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Atsq: .*out.tsq: .*the disk is full\n\Z")


def gguf_of(tensors):
    """A model without a graph, of tensors of (name, type, dims, bytes)."""
    model = Gguf().set("general.architecture", STRING, "none")
    model.set("none.embedding_length", U32, 64).set("none.block_count", U32, 1)
    for tensor in tensors:
        model.add(*tensor)
    return model.build()


def write_big_gguf(path):
    """A model of zeros that takes a while to convert: 400 MB, most of it holes in the file."""
    rows = 1_600_000
    head = gguf_of([("token_embd.weight", 0, [64, rows], b"")])
    path.write_bytes(head)
    os.truncate(path, len(head) + 4 * 64 * rows)


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


class Run(CliTest):
    def run_model(self, *arguments, **options):
        return tsq("run", "-m", self.model, *arguments, **options)

    def counted(self, done, what):
        return int(re.search(rf"(?m)^{what} +(\d+) token", done.err)[1])

    def test_streams(self):
        done = self.assert_succeeds(self.run_model("-p", "Once", "-n", "20", "--ignore-eos", "-s",
                                                   "7"))
        self.assertTrue(done.out.endswith("\n"))
        for line in [r"model +.*llama, \d+ layers, .* kB", r"context +1024 tokens, .* of cache and scratch",
                     r"compute +(scalar|avx2|avx512), \d+ threads?, int8 activations", r"seed +7",
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
        self.assertIn("stage", done.err)
        self.assertNotIn("WRONG", done.err)
        none = self.folder / "plain.tsq"
        self.assert_succeeds(tsq("convert", MODELS / "llama_tq.tq1_0.gguf", "-o", none, "--no-probe"))
        done = self.assert_succeeds(tsq("run", "-m", none, *options, "--check-hadamard"))
        self.assertIn("the model's weights are not rotated\n", done.err)
        self.assertNotIn("stage", done.err)

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

    def test_stop_strings(self):
        options = ["-p", "Once", "-n", "40", "--ignore-eos", "-s", "5"]
        whole = self.run_model(*options).out.rstrip("\n")
        stop = re.search("[ -~]{3}", whole[5:])[0]
        expected = whole[: whole.index(stop)].rstrip("\n")
        for name in ["--stop", "-r", "--reverse-prompt"]:
            done = self.assert_succeeds(self.run_model(*options, "--stop", "[never]", name, stop))
            self.assertEqual(done.out.rstrip("\n"), expected)

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
