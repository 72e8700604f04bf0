"""GGUF v3 with the two ternary block types, read and written with numpy alone."""
import struct

import numpy as np

F32, PQ2_0, PTQ1_0 = 0, 142, 143
GROUP = 128
ALIGNMENT = 32
BLOCK_BYTES = {PQ2_0: 34, PTQ1_0: 28}

# PTQ1_0: element e of a block is digit DIGIT[e] of byte BYTE[e]; digit 0 is the most significant of base-3 numbers.
E = np.arange(GROUP)
BYTE = np.where(E < 80, E % 16, np.where(E < 120, 16 + (E - 80) % 8, 24 + (E - 120) % 2))
DIGIT = np.where(E < 80, E // 16, np.where(E < 120, (E - 80) // 8, (E - 120) // 2))
POWER = 3 ** (4 - DIGIT)  # a qh byte has four digits, and a fifth that is 0


def encode(codes, scales, kind):
    """codes: [rows, inputs] in {-1, 0, 1}; scales: [rows, inputs / 128]. Returns [rows, bytes of a row]."""
    rows = len(codes)
    digits = (codes + 1).astype(np.int64).reshape(rows, -1, GROUP)
    half = scales.astype(np.float16)
    assert (half.astype(np.float32) == scales).all(), "a scale is no fp16 number"
    scale = half.view(np.uint8).reshape(rows, -1, 2)
    if kind == PQ2_0:
        lanes = digits.reshape(rows, -1, 32, 4)
        body = (lanes << np.array([0, 2, 4, 6])).sum(-1).astype(np.uint8)
        return np.concatenate([scale, body], -1).reshape(rows, -1)
    q = np.zeros((*digits.shape[:2], 26), np.int64)
    np.add.at(q, (slice(None), slice(None), BYTE), digits * POWER)
    body = ((q * 256 + 242) // 243).astype(np.uint8)
    return np.concatenate([body, scale], -1).reshape(rows, -1)


def decode(data, rows, inputs, kind):
    """The inverse: (codes, scales)."""
    blocks = np.frombuffer(data, np.uint8).reshape(rows, inputs // GROUP, BLOCK_BYTES[kind])
    if kind == PQ2_0:
        scale, body = blocks[..., :2], blocks[..., 2:]
        digits = (body[..., None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    else:
        body, scale = blocks[..., :26], blocks[..., 26:]
        # Digit n: the byte times 3^n modulo 256, times 3, bits 8 and up.
        digits = (((body[..., BYTE].astype(np.int64) * 3**DIGIT) & 255) * 3) >> 8
    codes = digits.reshape(rows, inputs).astype(np.int8) - 1
    scales = np.ascontiguousarray(scale).view(np.float16)[..., 0].astype(np.float32)
    return codes, scales


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
PACK = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}


def pack_value(kind, value):
    return string(value) if kind == STRING else struct.pack(PACK[kind], value)


def pack_entry(key, kind, value):
    if isinstance(kind, tuple):  # (ARRAY, element kind)
        body = struct.pack("<IIQ", ARRAY, kind[1], len(value)) + b"".join(pack_value(kind[1], v) for v in value)
    else:
        body = struct.pack("<I", kind) + pack_value(kind, value)
    return string(key) + body


def write(path, metadata, tensors):
    """metadata: [(key, kind, value)]; tensors: [(name, dims innermost first, type id, bytes)]."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(pack_entry(*entry) for entry in metadata)
    offset = 0
    for name, dims, kind, data in tensors:
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for *_, data in tensors:
            out.write(data + bytes(-len(data) % ALIGNMENT))


class Reader:
    """metadata: key -> value; tensors: name -> (dims, type id, bytes)."""

    SCALAR = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}

    def __init__(self, path):
        self.raw, self.at = open(path, "rb").read(), 4
        assert self.raw[:4] == b"GGUF"
        version, tensors, entries = self.take("<IQQ")
        assert version == 3
        self.metadata = {}
        for _ in range(entries):
            key = self.text()
            self.metadata[key] = self.value(self.take("<I")[0])
        infos = []
        for _ in range(tensors):
            name = self.text()
            dims = self.take(f"<{self.take('<I')[0]}Q")
            infos.append((name, dims, *self.take("<IQ")))
        start = -(-self.at // ALIGNMENT) * ALIGNMENT
        self.tensors = {}
        for name, dims, kind, offset in infos:
            count = int(np.prod(dims))
            size = 4 * count if kind == F32 else count // GROUP * BLOCK_BYTES[kind]
            self.tensors[name] = (dims, kind, self.raw[start + offset : start + offset + size])

    def take(self, form):
        values = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        n = self.take("<Q")[0]
        self.at += n
        return self.raw[self.at - n : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            element, count = self.take("<IQ")
            return [self.value(element) for _ in range(count)]
        return self.take(self.SCALAR[kind])[0]
