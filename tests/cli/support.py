"""What the tests of the tool share: a model to run, and what every refusal looks like."""

import fcntl
import os
import pathlib
import pty
import shutil
import struct
import sys
import tempfile
import termios
import unittest

from tsq_tool import SUCCESS, TSQ, tsq

MODELS = pathlib.Path(sys.argv[2]).resolve()
SOURCE = MODELS / "llama_rot128.ptq1_0.gguf"
CONTEXT = 1024  # of every tiny model

COMMANDS = ["run", "convert", "inspect", "verify", "perplexity", "bench", "completion", "man"]


def on_terminal(*arguments, env=None, columns=None, typed=b""):
    """Runs with a terminal for stdin, stdout and stderr: the exit code and all it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        if columns:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        os.execve(TSQ, ["tsq", *map(str, arguments)], {**os.environ, **(env or {})})
    os.write(terminal, typed)
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
