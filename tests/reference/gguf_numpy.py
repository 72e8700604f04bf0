"""A small GGUF reader that needs numpy alone and knows Prism's type ids. It trusts the file."""

import struct

import numpy as np

import ternary_blocks

SCALARS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 8
        assert self.data[:4] == b"GGUF"
        n_tensors, n_keys = self.unpack("<Q"), self.unpack("<Q")
        self.metadata = {self.string(): self.value(self.unpack("<I")) for _ in range(n_keys)}
        self.tensors = {self.string(): self.record() for _ in range(n_tensors)}
        alignment = self.metadata.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment

    def unpack(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        n = self.unpack("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            of, n = self.unpack("<I"), self.unpack("<Q")
            return [self.value(of) for _ in range(n)]
        return self.unpack(SCALARS[kind])

    def record(self):
        """(dims, input width first; type id; offset)."""
        dims = [self.unpack("<Q") for _ in range(self.unpack("<I"))]
        return dims, self.unpack("<I"), self.unpack("<Q")

    def ternary(self, name):
        """Codes 0, 1, 2 [rows, cols] and scales [rows, blocks], [rows, 1] or [1, 1] of a ternary tensor."""
        (cols, rows), type_id, offset = self.tensors[name]
        block = ternary_blocks.BY_ID[type_id]
        n_bytes = rows * cols // block.weights * block.size
        if block.scale is None:
            n_bytes += ternary_blocks.TAIL
        if block.scale == ternary_blocks.ROW:
            n_bytes += 4 * rows
        start = self.start + offset
        return ternary_blocks.decode(block, self.data[start:start + n_bytes], rows)
