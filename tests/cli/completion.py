"""Completion scripts, run by the shells themselves; the manual page; the version."""

import os
import re
import shutil
import subprocess
import unittest

from cli.support import COMMANDS, CliTest
from tsq_tool import USAGE, finish, start, tsq

LEVELS = "scalar|avx2|avxvnni|avx512"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Completion(CliTest):
    def script(self, shell):
        done = self.assert_succeeds(tsq("completion", shell))
        self.assertEqual(done.err, "")
        path = self.folder / ("_tsq" if shell == "zsh" else "tsq." + shell)
        path.write_text(done.out)
        return path

    def setUp(self):
        super().setUp()
        (self.folder / "a model.tsq").touch()
        (self.folder / "folder").mkdir()

    # Words as they are typed, and all that completes the last one.
    CASES = [
        (["ru"], {"run"}), (["v"], {"verify"}), (["run", "--te"], {"--temp"}),
        (["run", "--activations", ""], {"int8", "f32"}), (["run", "--activations", "f"], {"f32"}),
        (["verify", "--log-level", "w"], {"warn"}), (["fsck", "--log-level", "w"], {"warn"}),
        (["run", "-m", "a"], {"a model.tsq"}), (["verify", "a"], {"a model.tsq"}),
        (["completion", ""], {"bash", "zsh", "fish"}), (["run", "--temp", ""], set()),
    ]

    def test_mistakes(self):
        self.assert_refuses(USAGE, "completion: SHELL is required", "completion")
        self.assert_refuses(USAGE, "completion: .*bash,zsh,fish", "completion", "csh")

    def bash(self, *words):
        script = ('source "$1"; shift; COMP_WORDS=(tsq "$@"); COMP_CWORD=$#; _tsq; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = run("bash", "--norc", "-c", script, "bash", self.script("bash"), *words,
                   cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.splitlines()) - {""}

    def test_bash(self):
        self.assertEqual(run("bash", "-n", self.script("bash")).stderr, "")
        for words, expected in self.CASES:
            with self.subTest(words):
                self.assertEqual(self.bash(*words), expected)
        # "--activations=f" as bash hands it over.
        self.assertEqual(self.bash("run", "--activations", "=", "f"), {"f32"})
        self.assertEqual(self.bash("run", "--activations", "="), {"int8", "f32"})
        self.assertGreaterEqual(self.bash(""), {*COMMANDS, "fsck", "--help", "--version"})
        for command in COMMANDS:
            text = tsq(command, "--help").out
            listed = {name for line in re.findall(r"(?m)^  (-\S*)", text) for name in line.split(",")}
            self.assertEqual(self.bash(command, "-"), listed)

    def test_bash_calls_it_for_tsq(self):
        done = run("bash", "--norc", "-c", 'source "$1"; complete -p tsq', "bash",
                   self.script("bash"))
        self.assertEqual(done.stdout, "complete -F _tsq tsq\n")

    @needs("fish")
    def test_fish(self):
        script = self.script("fish")
        self.assertEqual(run("fish", "-N", "-n", script).stderr, "")
        for words, expected in self.CASES:
            with self.subTest(words):
                done = run("fish", "-N", "-c", "source $argv[1]; complete -C $argv[2]", script,
                           "tsq " + " ".join(words), cwd=self.folder,
                           env={**os.environ, "HOME": str(self.folder)})
                self.assertEqual(done.stderr, "")
                found = {line.split("\t")[0] for line in done.stdout.splitlines()}
                self.assertEqual({word.replace("\\ ", " ") for word in found}, expected)

    @needs("zsh")
    def test_zsh(self):
        script = self.script("zsh")
        self.assertEqual(run("zsh", "-f", "-n", script).stderr, "")
        # _arguments itself needs a line editor: here it only has to be given what it can read.
        program = ('_arguments() { print -rl -- "$@"; state=rest }; compdef() {}; source $1; '
                   'words=($2); _tsq')
        for command in COMMANDS:
            done = run("zsh", "-f", "-c", program, "zsh", script, command)
            self.assertEqual(done.stderr, "")
            specs = done.stdout.splitlines()
            for name in self.bash(command, "--"):
                self.assertTrue(any(re.search(rf"(^|[)*]){re.escape(name)}=?\[", s) for s in specs),
                                (name, specs))


class ManPage(CliTest):
    def page(self):
        done = self.assert_succeeds(tsq("man"))
        self.assertEqual(done.err, "")
        return done.out

    def test_it_names_every_command_option_and_variable(self):
        page = self.page()
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "ENVIRONMENT", "EXAMPLES"]:
            self.assertIn(f".SH {section}\n", page)
        for command in COMMANDS:
            self.assertIn(f'.SS "tsq {command} ', page)
            text = tsq(command, "--help").out
            for name in re.findall(r"--[a-z-]+", " ".join(re.findall(r"(?m)^  (-\S*)", text))):
                self.assertIn(name.replace("-", "\\-"), page)
            for variable in re.findall(r"\((TSQ_\w+)\)", text):
                self.assertIn(f"({variable})", page)

    @needs("groff")
    def test_groff_has_nothing_to_warn_of(self):
        done = run("groff", "-ww", "-man", "-Tascii", input=self.page())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "TSQ_CTX_SIZE")


class Version(CliTest):
    def test_it_says_what_this_build_is(self):
        lines = self.assert_succeeds(tsq("--version")).out.splitlines()
        self.assertRegex(lines[0], r"\Atsq \d+\.\d+\.\d+\Z")
        self.assertEqual([line.split()[0] for line in lines[1:]],
                         ["commit", "compiler", "levels", "this", "chosen"])
        self.assertRegex(lines[1], r"\Acommit +([0-9a-f]{12}|unknown)\Z")
        self.assertRegex(lines[2], r"\Acompiler +(GNU|Clang|AppleClang) \d+\.\S+, \w+\Z")
        self.assertRegex(lines[3], rf"\Alevels +scalar(, ({LEVELS}))*\Z")
        self.assertRegex(lines[4], rf"\Athis CPU +scalar(, ({LEVELS}))*\Z")
        self.assertRegex(lines[5], rf"\Achosen +({LEVELS})\Z")
        with open("/proc/cpuinfo") as cpuinfo:
            flags = cpuinfo.read().split()
        if "avx2" in lines[3] and {"avx2", "fma", "f16c"} <= set(flags):
            self.assertIn("avx2", lines[4])

    def test_it_says_what_is_chosen(self):
        for isa, chosen in [("scalar", r"scalar"), ("avx3", "none: TSQ_ISA=avx3: no such level")]:
            done = finish(start("--version", env={**os.environ, "TSQ_ISA": isa}))
            self.assertRegex(self.assert_succeeds(done).out, rf"(?m)^chosen +{chosen}")
