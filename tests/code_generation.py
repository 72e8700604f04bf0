#!/usr/bin/env python3
"""What the compiler made of the kernels: no spills beside a dot product, no symbols for others.

    code_generation.py --objdump OBJDUMP --nm NM --compiler NAME --allowed FILE OBJECT ...

Of each function of the objects the innermost loops that hold a dot product of bytes are looked at:
one that reads or writes a slot of the stack, or calls, keeps in memory what should lie in registers
and runs at half the speed or less. An access with an index register is an array, not a slot.

An object's folder names its level, and the object may define for others only what lies in
tsq::kernels::LEVEL. A function of the standard library, or an inline one of a shared header,
compiled with the level's flags could become the copy that the linker keeps for all callers, on CPUs
that lack the level.

FILE lists the functions that spill all the same, "COMPILER LEVEL/SOURCE FUNCTION" a line. It can
only shrink: a line whose function no longer spills is an error too.
"""
import argparse
import pathlib
import re
import subprocess
import sys

DOTS = ("vpmaddubsw", "vpdpbusd")
# "  1f: <tab>vmovdqa %ymm1,0x20(%rsp)" and "0000000000000040 <name>:"
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\} )?(\S+)\s*(.*)$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
SLOT = re.compile(r"\(%(rsp|rbp)\)")
ENDS = ("ret", "retq", "ud2", "hlt")


class Instruction:
    def __init__(self, address, name, operands):
        self.address, self.name, self.operands = address, name, operands

    def __str__(self):
        return f"{self.address:x}: {self.name} {self.operands}"

    @property
    def jumps_to(self):
        """The address that a direct jump leads to, or None."""
        if not self.name.startswith("j"):
            return None
        target = re.match(r"([0-9a-f]+)\b", self.operands)
        return int(target[1], 16) if target else None

    @property
    def goes_on(self):
        return not (self.name in ENDS or self.name.startswith("jmp"))


def functions(disassembly):
    """Yields name and instructions of every function of `objdump -d` (AT&T syntax)."""
    name, body = None, []
    for line in disassembly.splitlines():
        if start := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = start[1], []
        elif name is not None and (found := INSTRUCTION.match(line)):
            body.append(Instruction(int(found[1], 16), found[2], found[3].split(" #")[0].strip()))
    if body:
        yield name, body


def blocks_of(body):
    """Basic blocks as lists of instructions, and the indices of the blocks that follow each."""
    index = {instruction.address: i for i, instruction in enumerate(body)}
    starts = {0}
    for i, instruction in enumerate(body):
        if instruction.jumps_to in index:
            starts.add(index[instruction.jumps_to])
        if instruction.name.startswith("j") or not instruction.goes_on:
            starts.add(i + 1)
    starts = sorted(s for s in starts if s < len(body))
    blocks = [body[s:e] for s, e in zip(starts, starts[1:] + [len(body)])]
    at = {block[0].address: b for b, block in enumerate(blocks)}
    following = []
    for b, block in enumerate(blocks):
        to = {at[block[-1].jumps_to]} if block[-1].jumps_to in at else set()
        if block[-1].goes_on and b + 1 < len(blocks):
            to.add(b + 1)
        following.append(to)
    return blocks, following


def dominators(following):
    """Of each block the blocks that every way to it passes, itself included; None: unreachable."""
    before = [[] for _ in following]
    for b, to in enumerate(following):
        for t in to:
            before[t].append(b)
    dominate = [None] * len(following)
    dominate[0] = frozenset([0])
    changed = True
    while changed:
        changed = False
        for b in range(1, len(following)):
            known = [dominate[p] for p in before[b] if dominate[p] is not None]
            if known and (new := frozenset.intersection(*known) | {b}) != dominate[b]:
                dominate[b], changed = new, True
    return dominate, before


def loops_of(following):
    """The natural loops, as sets of blocks; those with one head are one."""
    dominate, before = dominators(following)
    loops = {}
    for b, to in enumerate(following):
        for head in to:
            if dominate[b] is None or head not in dominate[b]:
                continue
            body, unseen = loops.setdefault(head, {head}), [b]
            while unseen:
                if (block := unseen.pop()) not in body:
                    body.add(block)
                    unseen += before[block]
    return list(loops.values())


def dot_loops(body):
    """The instructions of each innermost loop that holds a dot product."""
    blocks, following = blocks_of(body)
    with_dot = {b for b, block in enumerate(blocks) if any(i.name in DOTS for i in block)}
    loops = [loop for loop in loops_of(following) if loop & with_dot]
    for loop in loops:
        if not any(other < loop for other in loops):
            yield [i for b in sorted(loop) for i in blocks[b]]


def is_spill(instruction):
    if instruction.name.startswith(("call", "push", "pop")):
        return True
    return bool(SLOT.search(instruction.operands)) and not instruction.name.startswith("lea")


def spills(disassembly):
    """Yields (function, instructions on the stack, instructions) of every dot loop."""
    for name, body in functions(disassembly):
        if any(i.name in DOTS for i in body):
            frame = any(i.name == "mov" and i.operands == "%rsp,%rbp" for i in body)
            for loop in dot_loops(body):
                bad = [i for i in loop if is_spill(i)]
                if not frame:  # then %rbp is a register like any other
                    bad = [i for i in bad if "(%rbp)" not in i.operands]
                yield name, bad, loop


def short(function):
    """A demangled name without what all of them have: clones, parameters, namespaces."""
    name = re.sub(r" \[clone .*", "", function)
    name = name.replace("(anonymous namespace)::", "")
    name = re.sub(r"\((?!\)).*", "", name)
    name = re.sub(r"(tsq|kernels|avx\w+)::|^void |(?<=\d)ul\b", "", name)
    return re.sub(r"\s+", "", name)


def foreign_symbols(symbols, level):
    """The lines of `nm --extern-only --defined-only --demangle` that are not the level's own."""
    for line in symbols.splitlines():
        found = re.match(r"[0-9a-f]+ (\w) (.*)$", line)
        own = found and found[1] in "TRDB" and found[2].startswith(f"tsq::kernels::{level}::")
        if line and not own:
            yield line


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objdump", required=True)
    parser.add_argument("--nm", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--allowed", required=True, type=pathlib.Path)
    parser.add_argument("objects", nargs="+", metavar="OBJECT", type=pathlib.Path)
    options = parser.parse_args()

    allowed = {
        line.removeprefix(options.compiler + " ")
        for line in options.allowed.read_text().splitlines()
        if line.startswith(options.compiler + " ")
    }
    spilling, looked_at, failures = set(), 0, []
    for path in options.objects:
        level = path.parent.name
        source = f"{level}/{path.name.split('.')[0]}"
        disassembly = run(options.objdump, "-d", "-C", "--no-show-raw-insn", path)
        for function, bad, loop in spills(disassembly):
            looked_at += 1
            if not bad:
                continue
            name = f"{source} {short(function)}"
            spilling.add(name)
            if name not in allowed:
                failures.append(
                    f"{name}: {len(bad)} of the {len(loop)} instructions of a loop around a dot "
                    f"product are on the stack, expected none; the first is {bad[0]}"
                )
        symbols = run(options.nm, "--extern-only", "--defined-only", "--demangle", path)
        for symbol in foreign_symbols(symbols, level):
            failures.append(
                f"{path}: defines '{symbol}' for other objects, expected only names in "
                f"tsq::kernels::{level}"
            )
    for function in sorted(allowed - spilling):
        failures.append(f"{options.allowed}: '{function}' no longer spills: take the line out")
    if looked_at == 0:
        failures.append("no dot product was found in any loop of the objects")
    print(f"{looked_at} loops with a dot product, {len(spilling)} functions that spill")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
