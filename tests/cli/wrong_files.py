"""What every command that reads a model says to files that are none."""

import os
import re
import shutil
import unittest

from cli.support import CliTest, SOURCE
from tsq_tool import DAMAGED, FAILURE, UNSUPPORTED, tsq


class WrongFiles(CliTest):
    """One row a file."""

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
