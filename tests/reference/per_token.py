"""Writes a .tsq file again with activations per token for all of its ternary tensors.

    per_token.py FROM.tsq TO.tsq

By FORMAT.md: activation_quant of each record, feature bit 4, the digests of tensor directory and header.
Needs the standard library alone.
"""

import struct
import sys
from hashlib import sha256
from pathlib import Path

RECORD, TERNARY, PER_TOKEN = 192, 16, 2
DIRECTORY = 96 + 64 * 3  # the entry of the tensor directory: offset at 8, bytes, count; digest at 32


def main(source, target):
    data = bytearray(Path(source).read_bytes())
    offset, n_bytes, count = struct.unpack_from("<3Q", data, DIRECTORY + 8)
    for at in range(offset, offset + RECORD * count, RECORD):
        if struct.unpack_from("<I", data, at + 4)[0] >= TERNARY:
            struct.pack_into("<I", data, at + 60, PER_TOKEN)
    data[72] |= 1 << 4  # critical_features
    data[DIRECTORY + 32:DIRECTORY + 64] = sha256(data[offset:offset + n_bytes]).digest()
    data[992:1024] = sha256(data[:992]).digest()
    Path(target).write_bytes(data)


main(*sys.argv[1:])
