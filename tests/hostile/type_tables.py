"""Type ids that are not read, one id with three layouts, and widths that blocks do not divide."""

import json

from gguf_file import BLOCKS
from hostile.support import HostileTest, U32_MAX, run_measured, tiny
from tsq_tool import DAMAGED, SUCCESS, UNSUPPORTED


UNREAD_TYPES = [4, 5, 9, 10, 11, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 32, 33,
                37, 38, 39, 40, 44, 99, 133, 136, 144, 2**31, U32_MAX]

# Of 4096 weights in rows of 256: what the id 42 means is told by the bytes.
ID_42 = [("18 bytes for 64", "Q2_0", "Q2_0"), ("34 bytes for 128", "Q2_0 of 128", "PQ2_0"),
         ("42 bytes for 256", "STQ1_0", "STQ1_0")]

ID_42_WRONG = [  # what, dims, bytes of data, exit, message
    ("two readings fit: 256 weights in 96 bytes", [256, 1], 96, UNSUPPORTED,
     "id 42 has several meanings.*more than one"),
    ("one row short", [256, 16], 1088 - 64, DAMAGED, "fit no type of id 42|bytes"),
    ("bytes of no type", [256, 16], 4096, UNSUPPORTED, "fit no type of id 42"),
    ("rows of 100", [100, 64], 1824, UNSUPPORTED, "has blocks of 64.*blocks of 128.*blocks of 256"),
]


class TypeIds(HostileTest):
    def test_unread(self):
        for type_id in UNREAD_TYPES:
            g = tiny()
            g.tensor("codes").update(type=type_id, dims=[256], data=bytes(2048))
            g.add("second", type_id, [256], bytes(2048))
            path = self.file(f"{type_id}.gguf", g.build())
            for command in ("convert", "inspect"):
                with self.subTest(type_id, command=command):
                    self.expect(command, path, UNSUPPORTED, r"2 tensors have types that tsq does not "
                                rf"read, the first is 'codes' \(type .*\bid {type_id}\); .*the file is "
                                "otherwise intact")

    def test_one_id_with_three_layouts(self):
        for what, block, shown in ID_42:
            with self.subTest(what):
                g = tiny()
                g.tensor("codes").update(type=42, dims=[256, 16],
                                         data=BLOCKS[block].data(256, 16))
                path = self.file("id42.gguf", g.build())
                done = self.expect("inspect", path, SUCCESS, "")
                self.assertRegex(done.out, rf"(?m)^  codes +{shown} ")
                self.expect("convert", path, SUCCESS, "")
                self.expect("verify", self.folder / "out.tsq", SUCCESS, "")

    def test_one_id_that_cannot_be_told(self):
        for number, (what, dims, size, code, message) in enumerate(ID_42_WRONG):
            with self.subTest(what):
                g = tiny()
                g.tensor("codes").update(type=42, dims=dims, data=bytes(size))
                path = self.file(f"{number}.gguf", g.build())
                self.expect("convert", path, code, message)
                self.expect("inspect", path, code, message)


WIDTHS = (64, 100, 127, 129, 320, 1000, 3200, 4304, 8640, 13696)
ROWS = (1, 3, 17)
ID_42_NAMES = ("Q2_0", "Q2_0 of 128", "STQ1_0")


class Widths(HostileTest):
    def add(self, g, name, width):
        block = BLOCKS[name]
        for rows in ROWS:
            # An id of several meanings needs a tensor that tells them apart.
            rows = rows * 64 if name in ID_42_NAMES and width * rows < 4096 else rows
            g.add(f"{name} {rows}", block.type_id, [width, rows], block.data(width, rows, seed=rows))

    def check(self, g):
        source = self.file("widths.gguf", g.build())
        target = self.folder / "out.tsq"
        shapes = {t["name"]: list(t["dims"]) for t in g.tensors}
        for options in ([], ["--encoding", "t2", "--dense", "q8"]):
            done, _ = run_measured("convert", source, "-o", target, "--no-probe", *options)
            self.assertEqual(done.code, SUCCESS, done.err)
            self.expect("verify", target, SUCCESS, "")
            done, _ = run_measured("inspect", "--json", target)
            self.assertEqual({t["name"]: t["shape"] for t in json.loads(done.out)["tensors"]}, shapes)

    def test_what_a_type_can_hold(self):
        for width in WIDTHS:
            fitting = [n for n, b in BLOCKS.items() if width % b.weights == 0]
            with self.subTest(width):
                g = tiny()
                for name in fitting:
                    if name not in ID_42_NAMES:
                        self.add(g, name, width)
                self.check(g)
            for name in ID_42_NAMES:
                if name in fitting:
                    with self.subTest(width, name=name):
                        g = tiny()
                        self.add(g, name, width)
                        self.check(g)

    def test_what_it_cannot(self):
        for name, block in BLOCKS.items():
            for width in WIDTHS:
                if width % block.weights == 0:
                    continue
                with self.subTest(width, name=name):
                    g = tiny()
                    rows = -(-width // block.weights)
                    g.add("odd", block.type_id, [width, 16], bytes(16 * rows * block.size))
                    path = self.file("odd.gguf", g.build())
                    for command in ("convert", "inspect"):
                        done = self.run_command(command, path)
                        self.assertIn(done.code, (DAMAGED, UNSUPPORTED))
                        self.assertRegex(done.err, rf"'odd': .*{width}.* blocks of {block.weights}\b")
