"""Paths of models, texts and targets."""

import os
import pathlib
import shutil

from hostile.support import ALLOWED, HostileTest, JUDGES_MEMORY, READERS, SOURCE, run_measured
from tsq_tool import DAMAGED, FAILURE, SUCCESS, USAGE


def fifo(path):
    os.mkfifo(path)


def dangling(path):
    path.symlink_to("nowhere")


def loop(path):
    path.symlink_to(path.name)


def below_a_file(path):
    path.parent.write_text("a file")


NOT_THERE = [  # what, the path in the folder, how it is made, exit, message: as a model and as a source
    ("missing", "absent", None, FAILURE, "no such file"),
    ("in a missing folder", "absent/model", None, FAILURE, "no such file"),
    ("below a file", "file/model", below_a_file, FAILURE, "not a directory"),
    ("a folder", "folder", pathlib.Path.mkdir, FAILURE, "is a folder|config.json: is missing"),
    ("a dangling link", "link", dangling, FAILURE, "no such file"),
    ("a link to itself", "loop", loop, FAILURE, "too many levels"),
    ("a named pipe", "pipe", fifo, FAILURE, "not a regular file"),
    ("a name of 300 bytes", "n" * 300, None, FAILURE, "name too long"),
    ("a path of 5,000 bytes", "/".join(["d" * 99] * 50), None, FAILURE, "name too long"),
    ("empty", "empty", pathlib.Path.touch, DAMAGED, "empty|0 bytes"),
    ("a device", "/dev/null", None, FAILURE, "not a regular file"),
    ("a name in another script", "模型 с пробелами 🦊", None, FAILURE, "模型 с пробелами 🦊: .*no such file"),
    ("a name that is not UTF-8", os.fsdecode(b"\xff\xfe"), None, FAILURE, r"\\xff\\xfe: .*no such file"),
    ("a name with a line break", "a\nb", None, FAILURE, r"a\\x0ab: .*no such file"),
]

TARGETS = [  # what, path, how it is made, exit, message
    ("in a missing folder", "absent/out.tsq", None, FAILURE, "no such file"),
    ("below a file", "file/out.tsq", below_a_file, FAILURE, "not a directory"),
    ("a folder", "folder", pathlib.Path.mkdir, USAGE, "not a regular file"),
    ("a folder by its slash", "folder/", pathlib.Path.mkdir, USAGE, "names a folder"),
    ("a named pipe", "pipe", fifo, USAGE, "not a regular file"),
    ("a device", "/dev/null", None, USAGE, "not a regular file"),
    ("a name of 300 bytes", "n" * 300, None, FAILURE, "name too long"),
    ("a path of 5,000 bytes", "/".join(["d" * 99] * 50), None, FAILURE, "name too long"),
    ("nothing", "", None, USAGE, "names a folder|output"),
]

GOOD_TARGETS = ["模型 с пробелами 🦊.tsq", " ", "-o", "a'b\"c;d$e.tsq", "n" * 255, "é" * 127]


class Paths(HostileTest):
    def path(self, name, make):
        path = self.folder / name
        if make:
            make(path)
        return str(path) + ("/" if name.endswith("/") else "") if name else ""

    def refuses(self, arguments, code, message, **options):
        before = sorted(self.folder.rglob("*"))
        done, memory = run_measured(*arguments, **options)
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, r"\Atsq: [^\n]*\n\Z")
        self.assertRegex(done.err, f"(?i){message}")
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        if JUDGES_MEMORY:
            self.assertLess(memory, ALLOWED)

    def test_models_and_sources(self):
        for what, name, make, code, message in NOT_THERE:
            path = self.path(name, make)
            for command in ("convert", *READERS):
                with self.subTest(what, command=command):
                    self.refuses(self.arguments(command, path), code, message)

    def test_texts(self):
        for what, name, code, message in [
                ("missing", "absent", FAILURE, "no such file"),
                ("a folder", ".", FAILURE, "is a directory"),
                ("a device", "/dev/null", USAGE, "0 tokens, one chunk needs 16"),
        ]:
            with self.subTest(what):
                self.refuses(["run", "-m", self.model, "-f", self.folder / name], code, message) \
                    if code == FAILURE else None
                done, _ = run_measured("perplexity", "-m", self.model, "-f", self.folder / name, "-c",
                                       "16")
                self.assertEqual((done.code, done.out), (code, ""), done.err)
                self.assertRegex(done.err, f"(?m)^tsq: .*(?i:{message})")

    def test_targets(self):
        for what, name, make, code, message in TARGETS:
            with self.subTest(what):
                target = self.path(name, make)
                self.refuses(["convert", SOURCE, "-o", target, "--no-probe"], code, message)
                for path in self.folder.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def test_good_targets(self):
        for name in GOOD_TARGETS:
            with self.subTest(name):
                target = self.folder / name
                done, _ = run_measured("convert", SOURCE, f"--output={target}", "--no-probe")
                self.assertEqual(done.code, SUCCESS, done.err)
                self.assertEqual(list(self.folder.iterdir()), [target])
                self.assertEqual(run_measured("verify", target)[0].code, SUCCESS)
                target.unlink()

    def test_a_target_that_is_a_link(self):
        """What the link names stays; a link to nowhere is no reason to write there."""
        link = self.folder / "link.tsq"
        link.symlink_to("nowhere.tsq")
        done, _ = run_measured("convert", SOURCE, "-o", link, "--no-probe")
        self.assertEqual(done.code, SUCCESS, done.err)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["link.tsq"])

    def test_permissions(self):
        options = {}
        if os.geteuid() == 0:
            options = {"user": 65534, "group": 65534}
            try:
                if run_measured("inspect", self.model, **options)[0].code != SUCCESS:
                    self.skipTest("nobody may not run the tool where it lies")
            except PermissionError:
                self.skipTest("nobody may not run the tool where it lies")
        secret = self.file("secret.tsq", self.model.read_bytes())
        secret.chmod(0)
        text_file = self.file("secret.txt", b"x")
        text_file.chmod(0)
        for command in ("convert", *READERS):
            with self.subTest(command):
                self.refuses(self.arguments(command, secret), FAILURE, "permission denied", **options)
        self.refuses(["run", "-m", self.model, "-f", text_file], FAILURE, "permission denied", **options)
        closed = self.folder / "closed"
        closed.mkdir()
        closed.chmod(0o555)
        self.refuses(["convert", SOURCE, "-o", closed / "out.tsq", "--no-probe"], FAILURE,
                     "permission denied", **options)
        self.refuses(["inspect", closed / "absent"], FAILURE, "no such file", **options)

    def test_a_read_only_target_is_replaced(self):
        """As mv does: the folder decides."""
        target = self.file("out.tsq", self.model.read_bytes())
        target.chmod(0o444)
        done, _ = run_measured("convert", SOURCE, "-o", target, "--no-probe")
        self.assertEqual(done.code, SUCCESS, done.err)
        self.assertNotEqual(target.read_bytes(), self.model.read_bytes())
