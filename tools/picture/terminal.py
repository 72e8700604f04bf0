#!/usr/bin/env python3
"""Runs commands at a terminal of their own and draws what it showed, as SVG.

    tools/picture/terminal.py -o FILE.svg [--path FOLDER] COMMAND...

Each COMMAND is one line for the shell; FOLDER goes before PATH. Nothing is retouched: the picture of
README.md is made by

    tools/picture/terminal.py -o tools/picture/story.svg --path build/release \\
        'tsq run -p "There was once a king who had three daughters" -n 110 -s 7' \\
        'tsq inspect models/fairy-tales.tsq | head -n 11'
"""

import argparse
import html
import os
import pty
import re
import struct
import fcntl
import termios

COLUMNS = 100
CHARACTER, LINE, MARGIN = 8.0, 18, 14


class Screen:
    """What a terminal shows after these bytes: as much of one as the tool makes use of."""

    def __init__(self):
        self.rows, self.column, self.dim = [[]], 0, False

    def put(self, character):
        if self.column == COLUMNS:
            self.newline()
        row = self.rows[-1]
        row[self.column:self.column + 1] = [(character, self.dim)]
        self.column += 1

    def newline(self):
        self.rows.append([])
        self.column = 0

    def feed(self, text):
        for part in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", text, re.S):
            value, command, character = part.groups()
            if command == "K":
                del self.rows[-1][self.column:]
            elif command == "m":
                self.dim = value == "2"
            elif character == "\n":
                self.newline()
            elif character == "\r":
                self.column = 0
            elif character is not None:
                self.put(character)


def run(command, path):
    """All that the command writes to its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PATH": f"{path}:{os.environ['PATH']}"}
        os.execve("/bin/sh", ["sh", "-c", command], environment)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.waitpid(pid, 0)
    return shown.decode(errors="replace")


def draw(rows):
    height = LINE * len(rows) + 2 * MARGIN
    width = int(CHARACTER * COLUMNS + 2 * MARGIN)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}">',
             f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f24"/>',
             '<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
             'font-size="13" fill="#e6e6e6" xml:space="preserve">']
    for y, row in enumerate(rows):
        text = "".join(character for character, _ in row).rstrip()
        if not text:
            continue
        dim = all(d for _, d in row)
        is_command = text.startswith("$ ")
        colour = ' fill="#8b949e"' if dim else ' fill="#7ee787"' if is_command else ""
        lines.append(f'<text x="{MARGIN}" y="{MARGIN + LINE * y + 13}" textLength="'
                     f'{CHARACTER * len(text):.0f}" lengthAdjust="spacingAndGlyphs"{colour}>'
                     f"{html.escape(text)}</text>")
    return "\n".join(lines + ["</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", required=True, metavar="FILE.svg")
    parser.add_argument("--path", default=".")
    parser.add_argument("commands", nargs="+", metavar="COMMAND")
    arguments = parser.parse_args()
    screen = Screen()
    for command in arguments.commands:
        screen.feed(f"$ {command}\n")
        screen.feed(run(command, os.path.abspath(arguments.path)))
    while not screen.rows[-1]:
        screen.rows.pop()
    with open(arguments.o, "w", encoding="utf-8") as file:
        file.write(draw(screen.rows))


if __name__ == "__main__":
    main()
