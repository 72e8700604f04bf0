"""The ternary blocks of GGUF files in numpy: codes (0, 1, 2 for -1, 0, +1) and fp16 scales <-> bytes."""

from typing import NamedTuple

import numpy as np


class Block(NamedTuple):
    type_id: int
    size: int  # bytes
    scale: int  # offset of the fp16 scale
    codes: int  # offset of the code bytes
    base: int  # 3: up to five digits a byte, most significant first; 4: four, lowest bits first
    byte: np.ndarray  # of weight e: its code byte
    digit: np.ndarray  # and its digit in that byte

    @property
    def weights(self):
        return len(self.byte)


def runs(*shapes):
    """(bytes, digits) of each stage: weights run over the bytes first, then over the digits."""
    byte, digit, start = [], [], 0
    for n_bytes, n_digits in shapes:
        byte += [start + m for _ in range(n_digits) for m in range(n_bytes)]
        digit += [n for n in range(n_digits) for _ in range(n_bytes)]
        start += n_bytes
    return np.array(byte), np.array(digit)


def consecutive(n):
    return np.arange(n) // 4, np.arange(n) % 4


TYPES = {
    "TQ1_0": Block(34, 54, 52, 0, 3, *runs((32, 5), (16, 5), (4, 4))),
    "TQ2_0": Block(35, 66, 64, 0, 4, *runs((32, 4), (32, 4))),
    "PQ2_0": Block(142, 34, 0, 2, 4, *consecutive(128)),
    "PTQ1_0": Block(143, 28, 26, 0, 3, *runs((16, 5), (8, 5), (2, 4))),
}
BY_ID = {block.type_id: block for block in TYPES.values()}


def encode(block, codes, scales):
    """codes [rows, cols], scales [rows, cols / weights] -> bytes [rows, row bytes]."""
    rows = codes.shape[0]
    codes = codes.reshape(-1, block.weights)
    digits = np.zeros((len(codes), block.byte.max() + 1, 5), np.uint32)
    digits[:, block.byte, block.digit] = codes
    if block.base == 3:
        packed = (digits @ np.array([81, 27, 9, 3, 1], np.uint32) * 256 + 242) // 243
    else:
        packed = digits @ np.array([1, 4, 16, 64, 0], np.uint32)
    out = np.zeros((len(codes), block.size), np.uint8)
    out[:, block.codes:block.codes + packed.shape[1]] = packed
    out[:, block.scale:block.scale + 2] = scales.astype("<f2").reshape(-1, 1).view(np.uint8)
    return out.reshape(rows, -1)


def decode(block, data, rows):
    """bytes -> codes [rows, cols] uint8, scales [rows, groups] float32."""
    data = np.frombuffer(data, np.uint8).reshape(-1, block.size)
    packed = data[:, block.codes + block.byte].astype(np.uint32)
    if block.base == 3:
        codes = (packed * 3 ** block.digit.astype(np.uint32) % 256 * 3) >> 8
    else:
        codes = (packed >> (2 * block.digit.astype(np.uint32))) & 3
    scales = data[:, block.scale:block.scale + 2].copy().view("<f2").astype(np.float32)
    return codes.astype(np.uint8).reshape(rows, -1), scales.reshape(rows, -1)


def values(codes, scales):
    """codes [rows, cols], scales [rows, groups] -> weights in float64."""
    return (codes.astype(np.float64) - 1) * np.repeat(scales, codes.shape[1] // scales.shape[1], 1)
