#!/usr/bin/env python3
"""That code_generation.py sees what it is there for, on disassemblies written by hand."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

import code_generation
from code_generation import foreign_symbols, short, spills


def listing(*lines, name="f"):
    """As objdump prints a function; each line is a hexadecimal address and an instruction."""
    text = f"0000000000000000 <{name}>:\n"
    for line in lines:
        address, instruction = line.split(" ", 1)
        mnemonic, _, operands = instruction.partition(" ")
        text += f"  {address}:\t{mnemonic}{' ' if operands else ''}{operands}\n"
    return text


def found(*lines):
    """The addresses on the stack in each loop with a dot product."""
    return [[f"{i.address:x}" for i in bad] for _, bad, _ in spills(listing(*lines))]


SPILL = (
    "0 sub $0x40,%rsp",
    "4 vmovdqa 0x20(%rsp),%ymm0",
    "8 vpmaddubsw (%rsi),%ymm1,%ymm2",
    "c vpaddw %ymm2,%ymm0,%ymm0",
    "10 vmovdqa %ymm0,0x20(%rsp)",
    "14 add $0x20,%rsi",
    "18 cmp %rdi,%rsi",
    "1c jne 4 <f+0x4>",
    "20 ret",
)


class Loops(unittest.TestCase):
    def test_sums_in_registers(self):
        self.assertEqual(
            found(
                "0 vpxor %xmm0,%xmm0,%xmm0",
                "4 vpmaddubsw (%rsi),%ymm1,%ymm2",
                "8 vpaddw %ymm2,%ymm0,%ymm0",
                "c jne 4 <f+0x4>",
                "10 ret",
            ),
            [[]],
        )

    def test_a_sum_on_the_stack(self):
        self.assertEqual(found(*SPILL), [["4", "10"]])

    def test_every_dot_and_prefix(self):
        for dot in ("vpdpbusd %ymm3,%ymm1,%ymm2", "{vex} vpdpbusd %ymm3,%ymm1,%ymm2"):
            self.assertEqual(
                found(f"0 {dot}", "4 vmovdqa (%rsp),%ymm2", "8 jb 0 <f>", "c ret"), [["4"]], dot
            )

    def test_a_loop_without_a_dot(self):
        self.assertEqual(found("0 mov %rax,0x8(%rsp)", "4 jne 0 <f>", "8 ret"), [])

    def test_a_dot_without_a_loop(self):
        self.assertEqual(found("0 vpmaddubsw 0x8(%rsp),%ymm1,%ymm2", "4 ret"), [])

    def test_only_the_innermost_loop(self):
        self.assertEqual(
            found(
                "0 xor %eax,%eax",
                "4 vmovaps 0x40(%rsp),%ymm5",
                "8 vpmaddubsw (%rsi),%ymm1,%ymm2",
                "c jne 8 <f+0x8>",
                "10 vmovaps %ymm5,0x40(%rsp)",
                "14 jne 4 <f+0x4>",
                "18 ret",
            ),
            [[]],
        )

    def test_a_loop_around_one_without_a_dot(self):
        self.assertEqual(
            found(
                "0 vpmaddubsw (%rsi),%ymm1,%ymm2",
                "4 vmovaps %ymm2,0x40(%rsp)",
                "8 add $0x1,%rax",
                "c jne 8 <f+0x8>",
                "10 jne 0 <f>",
                "14 ret",
            ),
            [["4"]],
        )

    def test_a_part_of_the_loop_that_lies_behind_it(self):
        self.assertEqual(
            found(
                "0 vpmaddubsw (%rsi),%ymm1,%ymm2",
                "4 je 10 <f+0x10>",
                "8 jne 0 <f>",
                "c ret",
                "10 vmovdqa %ymm2,(%rsp)",
                "14 jmp 8 <f+0x8>",
            ),
            [["10"]],
        )

    def test_arrays_and_addresses_are_no_slots(self):
        self.assertEqual(
            found(
                "0 vpmaddubsw 0x40(%rsp,%rax,1),%ymm1,%ymm2",
                "4 lea 0x40(%rsp),%rdx",
                "8 jne 0 <f>",
                "c ret",
            ),
            [[]],
        )

    def test_rbp_is_the_stack_only_as_a_frame_pointer(self):
        loop = ("4 vpmaddubsw -0x20(%rbp),%ymm1,%ymm2", "8 jne 4 <f+0x4>", "c ret")
        self.assertEqual(found("0 mov %rdi,%rbp", *loop), [[]])
        self.assertEqual(found("0 mov %rsp,%rbp", *loop), [["4"]])

    def test_a_call(self):
        self.assertEqual(
            found("0 vpmaddubsw (%rsi),%ymm1,%ymm2", "4 call 90 <g>", "8 jne 0 <f>", "c ret"),
            [["4"]],
        )


class Names(unittest.TestCase):
    def test_what_all_of_them_have_is_left_out(self):
        self.assertEqual(
            short(
                "void tsq::kernels::avx2::(anonymous namespace)::T1<tsq::kernels::(anonymous "
                "namespace)::Scales<0ul, tsq::kernels::(anonymous namespace)::Chain> >::gemv<2>("
                "tsq::kernels::TernaryMatrix const&, unsigned long const (&) [2]) [clone .isra.0]"
            ),
            "T1<Scales<0,Chain>>::gemv<2>",
        )

    def test_what_lies_outside_the_level(self):
        own = "0000000000000000 T tsq::kernels::avx2::t2_gemm(int)\n"
        foreign = (
            "0000000000000000 W std::vector<int>::push_back(int)",
            "0000000000000000 W tsq::kernels::avx2::helper()",
            "0000000000000000 T tsq::kernels::scalar::t2_gemm(int)",
            "0000000000000000 u std::x",
            "0000000000000004 C counter",
            "0000000000000000 V DW.ref.__gxx_personality_v0",
        )
        self.assertEqual(list(foreign_symbols(own, "avx2")), [])
        for line in foreign:
            self.assertEqual(list(foreign_symbols(own + line + "\n", "avx2")), [line])


class Verdicts(unittest.TestCase):
    def run_on(self, disassembly, allowed, symbols=""):
        """The exit code and output for a file of which objdump and nm print so."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, text in (("objdump", disassembly), ("nm", symbols)):
                (folder / f"{name}.txt").write_text(text)
                (folder / name).write_text(f"#!/bin/sh\ncat {folder}/{name}.txt\n")
                os.chmod(folder / name, 0o755)
            (folder / "allowed").write_text(allowed)
            sys.argv = ["code_generation.py", "--compiler", "GNU-12", "kernels/avx2/t1.cpp.o"]
            for name in ("objdump", "nm", "allowed"):
                sys.argv += [f"--{name}", str(folder / name)]
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = code_generation.main()
            return code, out.getvalue()

    def test_a_spill_is_refused_with_its_place(self):
        code, out = self.run_on(listing(*SPILL), "")
        self.assertEqual(code, 1)
        self.assertIn("avx2/t1 f: 2 of the 7 instructions", out)
        self.assertIn("4: vmovdqa 0x20(%rsp),%ymm0", out)

    def test_an_allowed_spill(self):
        self.assertEqual(self.run_on(listing(*SPILL), "GNU-12 avx2/t1 f\n")[0], 0)
        self.assertEqual(self.run_on(listing(*SPILL), "Clang-14 avx2/t1 f\n")[0], 1)

    def test_what_no_longer_spills_leaves_the_list(self):
        code, out = self.run_on(listing(*SPILL), "GNU-12 avx2/t1 f\nGNU-12 avx2/t1 g\n")
        self.assertEqual(code, 1)
        self.assertIn("'avx2/t1 g' no longer spills", out)

    def test_objects_without_a_dot(self):
        code, out = self.run_on(listing("0 ret"), "")
        self.assertEqual(code, 1)
        self.assertIn("no dot product", out)

    def test_a_shared_symbol(self):
        code, out = self.run_on(
            listing(*SPILL), "GNU-12 avx2/t1 f\n", "0000000000000000 W std::terminate()\n"
        )
        self.assertEqual(code, 1)
        self.assertIn("W std::terminate()", out)


if __name__ == "__main__":
    unittest.main()
