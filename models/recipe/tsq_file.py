"""Reads what a .tsq file of this recipe holds, in numpy, from the definition in src/format/FORMAT.md: f32 and t1 tensors,
rotations. train.py --init continues a training from it.
"""
import numpy as np

GROUP, ROWS = 128, 32


def _digits(data):
    """Bytes -> five digits each, the most significant first."""
    out, v = [], data.astype(np.uint16)
    for _ in range(5):
        out.append(3 * v >> 8)
        v = 3 * v & 255
    return np.stack(out)


def _t1(body, rows, cols):
    """Returns (codes in {-1, 0, 1} [rows, cols], scales [rows, groups])."""
    blocks, groups = -(-rows // ROWS), -(-cols // GROUP)
    codes = np.empty((blocks, ROWS, groups * GROUP), np.int8)
    scales = np.empty((blocks, ROWS, groups), np.float32)
    body = body.reshape(blocks, -1)
    at = 0
    for first in range(0, groups, 5):
        r = min(5, groups - first)
        lines = body[:, at : at + 64 * r].copy().view(np.float16).reshape(blocks, r, ROWS)
        scales[:, :, first : first + r] = lines.transpose(0, 2, 1)
        at += 64 * r
        tail = _digits(body[:, at : at + 256].reshape(blocks, 2, ROWS, 4))  # digit, block, t, row, j
        at += 256
        part = _digits(body[:, at : at + 768 * r].reshape(blocks, r, 6, ROWS, 4))  # digit, block, group, c, row, j
        at += 768 * r
        for g in range(r):
            start = GROUP * (first + g)
            inner = part[:, :, g].transpose(1, 3, 2, 0, 4).reshape(blocks, ROWS, 120)  # 20 c + 4 d + j
            codes[:, :, start : start + 120] = inner.astype(np.int8) - 1
            last = tail[g].transpose(0, 2, 1, 3).reshape(blocks, ROWS, 8)  # 4 t + j
            codes[:, :, start + 120 : start + 128] = last.astype(np.int8) - 1
    assert at == body.shape[1]
    return codes.reshape(-1, groups * GROUP)[:rows, :cols], scales.reshape(-1, groups)[:rows]


def read(path):
    """Returns ({name: f32 array, or (codes, scales)}, {width: signs})."""
    data = np.fromfile(path, np.uint8)
    u32 = lambda at, n=1: data[at : at + 4 * n].view(np.uint32)
    u64 = lambda at: int(data[at : at + 8].view(np.uint64)[0])
    assert bytes(data[:4]) == b"TSQ\0" and u32(4)[0] == 2, "a .tsq file, version 2"
    section = lambda kind: (u64(96 + 64 * (kind - 1) + 8), u64(96 + 64 * (kind - 1) + 24))
    signs, (at, count) = {}, section(3)
    for _ in range(count):
        width = int(u32(at + 4)[0])
        words = u32(at + 16, -(-width // 32))
        signs[width] = 1 - 2 * np.unpackbits(words.view(np.uint8), bitorder="little")[:width].astype(np.float32)
        at += 16 + 4 * len(words)
    tensors, (at, count), (base, _) = {}, section(4), section(7)
    name_at = at + 192 * count
    for record in range(at, name_at, 192):
        length, encoding = u32(record, 2)
        name = bytes(data[name_at : name_at + length]).decode()
        name_at += int(length)
        cols, rows = u64(record + 24), u64(record + 32)
        body = data[base + u64(record + 80) :][: u64(record + 88)]
        if encoding == 0:
            tensors[name] = body.view(np.float32).reshape(rows, -1)[:, :cols].copy()
        elif encoding == 17:
            tensors[name] = _t1(body, rows, cols)
        else:
            raise ValueError(f"{name}: encoding {encoding}, expected f32 or t1")
    return tensors, signs
