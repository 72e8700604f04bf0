"""The ternary blocks of GGUF files in numpy: codes (0, 1, 2 for -1, 0, +1) and scales <-> bytes."""

from typing import NamedTuple

import numpy as np


ROW = -1


class Block(NamedTuple):
    type_id: int
    size: int  # bytes
    scale: int | None  # offset of the fp16 scale; None: one f32 scale behind all blocks of a tensor;
    # ROW: one f32 scale before the blocks of a row
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


def strided(n):
    """Four codes a byte, the highest bits first, n / 4 weights apart."""
    return np.arange(n) % (n // 4), 3 - np.arange(n) // (n // 4)


TAIL = 32  # bytes behind the blocks of a tensor without scales in them: the f32 scale, zeros
TYPES = {
    "TQ1_0": Block(34, 54, 52, 0, 3, *runs((32, 5), (16, 5), (4, 4))),
    "TQ2_0": Block(35, 66, 64, 0, 4, *runs((32, 4), (32, 4))),
    "I2_S": Block(36, 32, None, 0, 4, *strided(128)),
    "Q2_0": Block(42, 18, 0, 2, 4, *consecutive(64)),
    "PQ2_0": Block(142, 34, 0, 2, 4, *consecutive(128)),
    "PTQ1_0": Block(143, 28, 26, 0, 3, *runs((16, 5), (8, 5), (2, 4))),
    "IQ2_BN": Block(135, 16, ROW, 0, 4, *runs((16, 4))),
}
BY_ID = {block.type_id: block for block in TYPES.values()}


def encode(block, codes, scales):
    """codes [rows, cols], scales [rows, cols / weights], [rows, 1] or [1, 1] -> bytes [rows, row bytes], or
    where these are not blocks alone [bytes]."""
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
    if block.scale is None:
        tail = np.zeros(TAIL, np.uint8)
        tail[:4] = scales.astype("<f4").reshape(-1).view(np.uint8)
        return np.concatenate([out.reshape(-1), tail])
    if block.scale == ROW:
        heads = scales.astype("<f4").view(np.uint8).reshape(rows, 4)
        return np.concatenate([heads, out.reshape(rows, -1)], 1).reshape(-1)
    out[:, block.scale:block.scale + 2] = scales.astype("<f2").reshape(-1, 1).view(np.uint8)
    return out.reshape(rows, -1)


def decode(block, data, rows):
    """bytes, with the tail if there is one -> codes [rows, cols] uint8, scales [rows, groups], [rows, 1] or
    [1, 1] float32."""
    data = np.frombuffer(data, np.uint8)
    if block.scale is None:
        data, tail = data[:-TAIL], data[-TAIL:]
    if block.scale == ROW:
        data = data.reshape(rows, -1)
        heads, data = data[:, :4].copy().view("<f4"), data[:, 4:]
    data = data.reshape(-1, block.size)
    packed = data[:, block.codes + block.byte].astype(np.uint32)
    if block.base == 3:
        codes = (packed * 3 ** block.digit.astype(np.uint32) % 256 * 3) >> 8
    else:
        codes = (packed >> (2 * block.digit.astype(np.uint32))) & 3
    codes = codes.astype(np.uint8).reshape(rows, -1)
    if block.scale is None:
        return codes, tail[:4].view("<f4").reshape(1, 1)
    if block.scale == ROW:
        return codes, heads
    scales = data[:, block.scale:block.scale + 2].copy().view("<f2").astype(np.float32)
    return codes, scales.reshape(rows, -1)


def values(codes, scales):
    """codes [rows, cols], scales [rows, groups] or [1, 1] -> weights in float64."""
    return (codes.astype(np.float64) - 1) * np.repeat(scales, codes.shape[1] // scales.shape[1], 1)
