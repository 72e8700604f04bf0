"""Running the tool: what cli_test.py and hostile_test.py share. TSQ, the program, is their first argument."""

import pathlib
import subprocess
import sys

TSQ = pathlib.Path(sys.argv[1]).resolve()

SUCCESS, FAILURE, USAGE, DAMAGED, UNSUPPORTED, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_CODES = (SUCCESS, FAILURE, USAGE, DAMAGED, UNSUPPORTED, INTERRUPTED)


class Finished:
    """A process that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out_bytes, self.err = code, out, err.decode()
        self.out = (out or b"").decode()  # the tool never prints half a character


def start(*arguments, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
               "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([TSQ, *map(str, arguments)], **options)


def finish(process, text=None):
    out, err = process.communicate(text, timeout=120)
    return Finished(process.returncode, out, err)


def tsq(*arguments, stdin=None, **options):
    if stdin is None:
        return finish(start(*arguments, **options))
    return finish(start(*arguments, stdin=subprocess.PIPE, **options), stdin.encode())
