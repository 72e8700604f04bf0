"""What convert writes, refuses and leaves behind."""

import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from cli.support import CliTest, MODELS, SOURCE
from gguf_file import Gguf, STRING, U32
from tsq_tool import DAMAGED, FAILURE, INTERRUPTED, TSQ, UNSUPPORTED, USAGE, finish, start, tsq


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
