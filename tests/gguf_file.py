"""GGUF files in memory, sound or broken in one place; numbers of every width may be put anywhere."""

import random
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B",
          U64: "<Q", I64: "<q", F64: "<d"}


def text(value, length=None):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data) if length is None else length) + data


def encoded(kind, value):
    return text(value) if kind == STRING else struct.pack(_FORMS[kind], value)


def array(kind, values, count=None):
    """The encoded value of an array that says it has `count` elements."""
    n = len(values) if count is None else count
    return struct.pack("<IQ", kind, n) + b"".join(encoded(kind, v) for v in values)


class Gguf:
    """Keys and tensors; every promise of the file can be overridden before build()."""

    def __init__(self):
        self.magic, self.version, self.alignment = b"GGUF", 3, 32
        self.keys = {}  # name -> (type, encoded value)
        self.tensors = []  # dicts: name, type, dims, data; offset, n_dims, name_length: not what they are
        self.n_keys = self.n_tensors = None  # not their numbers

    def set(self, key, kind, value):
        self.keys[key] = (kind, value if kind == ARRAY else encoded(kind, value))
        return self

    def erase(self, key):
        del self.keys[key]
        return self

    def add(self, name, kind, dims, data, **promises):
        self.tensors.append({"name": name, "type": kind, "dims": dims, "data": data, **promises})
        return self

    def tensor(self, name):
        return next(t for t in self.tensors if t["name"] == name)

    def build(self):
        head, self.boundaries = b"", []
        head += self.magic + struct.pack(
            "<IQQ", self.version, len(self.tensors) if self.n_tensors is None else self.n_tensors,
            len(self.keys) if self.n_keys is None else self.n_keys)
        self.boundaries.append(len(head))
        for key, (kind, value) in self.keys.items():
            head += text(key) + struct.pack("<I", kind) + value
            self.boundaries.append(len(head))
        offset = 0
        for t in self.tensors:
            t["place"] = t.get("offset", offset)
            head += text(t["name"], t.get("name_length"))
            head += struct.pack("<I", t.get("n_dims", len(t["dims"])))
            head += struct.pack(f"<{len(t['dims'])}Q", *t["dims"])
            head += struct.pack("<IQ", t["type"], t["place"])
            self.boundaries.append(len(head))
            offset = self._up(offset + len(t["data"]))
        head += bytes(self._up(len(head)) - len(head))
        data = b""
        for t in self.tensors:
            self.boundaries.append(len(head) + len(data))
            data += t["data"] + bytes(self._up(len(t["data"])) - len(t["data"]))
        return head + data

    def _up(self, n):
        return -(-n // self.alignment) * self.alignment


# Blocks of a type: id, weights, bytes, and how its bytes are drawn, front to back: a count and what
# they may be. "half": an fp16 scale of either sign, "float": an f32 that fp16 holds.
_TWO_BITS = bytes(b for b in range(256) if not b & b >> 1 & 0x55)  # without code 3
_FIVE_DIGITS = bytes(-(-256 * q // 243) for q in range(243))
_FOUR_DIGITS = bytes(-(-256 * 3 * q // 243) for q in range(81))
_ANY = bytes(range(256))


class Block:
    def __init__(self, type_id, weights, size, *parts, row_header=(), tensor_tail=()):
        self.type_id, self.weights, self.size, self.parts = type_id, weights, size, parts
        self.row_header, self.tensor_tail = row_header, tensor_tail

    def data(self, cols, rows, seed=1):
        draw = random.Random(seed)
        out = bytearray()
        for _ in range(rows):
            out += _draw(draw, self.row_header)
            for _ in range(cols // self.weights):
                out += _draw(draw, self.parts)
        return bytes(out + _draw(draw, self.tensor_tail))


def _draw(draw, parts):
    out = bytearray()
    for count, kind in parts:
        if kind == "half":
            out += struct.pack(f"<{count}e", *(draw.choice((-1, 1)) * draw.uniform(0.01, 2)
                                              for _ in range(count)))
        elif kind == "float":
            out += struct.pack("<f", 0.375)
        elif kind == "zero":
            out += bytes(count)
        else:
            out += bytes(draw.choices(kind, k=count))
    return out


BLOCKS = {
    "F32": Block(0, 1, 4, (2, _ANY), (1, b"\x10\x80\xff"), (1, b"\x3e\x3f\xbe\xbf")),
    "F16": Block(1, 1, 2, (1, "half")),
    "BF16": Block(30, 1, 2, (1, _ANY), (1, b"\x3e\x3f\xbe\xbf")),
    "Q4_0": Block(2, 32, 18, (1, "half"), (16, _ANY)),
    "Q4_1": Block(3, 32, 20, (2, "half"), (16, _ANY)),
    "Q5_0": Block(6, 32, 22, (1, "half"), (20, _ANY)),
    "Q5_1": Block(7, 32, 24, (2, "half"), (20, _ANY)),
    "Q8_0": Block(8, 32, 34, (1, "half"), (32, _ANY)),
    "Q4_K": Block(12, 256, 144, (2, "half"), (140, _ANY)),
    "Q5_K": Block(13, 256, 176, (2, "half"), (172, _ANY)),
    "Q6_K": Block(14, 256, 210, (208, _ANY), (1, "half")),
    "TQ1_0": Block(34, 256, 54, (48, _FIVE_DIGITS), (4, _FOUR_DIGITS), (1, "half")),
    "TQ2_0": Block(35, 256, 66, (64, _TWO_BITS), (1, "half")),
    "I2_S": Block(36, 128, 32, (32, _TWO_BITS), tensor_tail=((1, "float"), (28, "zero"))),
    "Q1_0": Block(41, 128, 18, (1, "half"), (16, _ANY)),
    "PQ2_0": Block(142, 128, 34, (1, "half"), (32, _TWO_BITS)),
    "PTQ1_0": Block(143, 128, 28, (24, _FIVE_DIGITS), (2, _FOUR_DIGITS), (1, "half")),
    "IQ1_BN": Block(134, 64, 13, (12, _FIVE_DIGITS), (1, _FOUR_DIGITS), row_header=((1, "half"),)),
    "IQ2_BN": Block(135, 64, 16, (16, _TWO_BITS), row_header=((1, "float"),)),
    # Three layouts of one id.
    "Q2_0": Block(42, 64, 18, (1, b"\x00"), (1, b"\x38"), (16, _TWO_BITS)),  # pairs share a scale
    "Q2_0 of 128": Block(42, 128, 34, (1, "half"), (32, _TWO_BITS)),
    "STQ1_0": Block(42, 256, 42, (40, _ANY), (1, "half")),
}
