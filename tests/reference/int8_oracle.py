"""Checks traced projections of the int8 path against the numeric contract, in numpy.

    int8_oracle.py TRACE_DIR MODEL.gguf     exit code 1 and a line for each projection that differs
    int8_oracle.py --self-test MODEL.gguf   plants one defect after the other; each must be found

TRACE_DIR holds for each projection i, raw and little-endian:
    i.json        {"name": tensor, "rows": R, "cols": C, "n_columns": N, "group": 64 or 128,
                   "per_token": false or true}
    i.x.f32       [N][P] the input, after its rotation; P is C rounded up to 128, the padding is 0
    i.q.i8        [N][P] its int8 codes
    i.xscale.f32  [N][P / 128] their scales
    i.codes.i8    [R][C] weights -1, 0, 1 (optional: the oracle decodes MODEL.gguf itself)
    i.dot.i32     [N][R][P / group] integer products
    i.y.f32       [N][R] the output, before any epilogue

The contract: per 128 inputs a = max |x|, q = round-half-even(x * (127 / a)), scale = a / 127, all in
float32; zeros and scale 0 where a < 1e-30. Then, groups ascending,
acc = fma(float(dot), w_scale * x_scale, acc).
Per token: s = 127 / max(a, 1e-5) with a of the whole row, q = round-half-even(x * s), every scale 1 / s;
and where a tensor has one scale, y = float(sum of the dots) * (w_scale / s).
Needs numpy alone.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from gguf_numpy import Gguf

OUTPUT_BOUND = 1e-6  # of max |y|: 16 roundings of float32, while a wrong term shows in the third digit
FILES = {"x.f32": "<f4", "q.i8": "i1", "xscale.f32": "<f4", "codes.i8": "i1", "dot.i32": "<i4", "y.f32": "<f4"}


def quantise(x):
    """x [N, C] -> int8 codes [N, C], scales [N, C / 128]."""
    x = x.reshape(len(x), -1, 128)
    a = np.abs(x).max(-1, keepdims=True)
    zero = a < np.float32(1e-30)
    a = np.where(zero, np.float32(1), a)
    q = np.where(zero, 0, np.rint(x * (np.float32(127) / a)))
    scale = np.where(zero, np.float32(0), a / np.float32(127))
    return q.astype(np.int8).reshape(len(x), -1), scale[..., 0]


def quantise_token(x):
    """The same per token, and s [N]."""
    s = np.float32(127) / np.maximum(np.abs(x).max(-1), np.float32(1e-5))
    q = np.rint(x * s[:, None]).astype(np.int8)
    return q, np.repeat(np.float32(1) / s[:, None], x.shape[1] // 128, 1), s


def fma(a, b, c):
    """float32 fma of arrays whose product fits float64 exactly (here 15 + 24 bits).

    The sum in float64 is made odd in its last bit where it was inexact; rounding it again, to float32,
    then gives what one rounding would have given.
    """
    p, c = np.float64(a) * np.float64(b), np.float64(c)
    s = p + c
    back = s - p
    error = (p - (s - back)) + (c - back)
    even = s.view(np.int64) & 1 == 0
    s = np.where((error != 0) & even, np.nextafter(s, np.copysign(np.inf, error)), s)
    return s.astype(np.float32)


def project(weights, w_scales, q, x_scales, group):
    """weights [R, P] of -1, 0, 1; w_scales [R, P / group] or [1, P / group]. Returns dots [N, R, groups]
    and y [N, R]."""
    n_groups = weights.shape[1] // group
    dots = np.einsum("ngi,rgi->nrg", q.reshape(len(q), n_groups, group).astype(np.int32),
                     weights.reshape(len(weights), n_groups, group).astype(np.int32))
    y = np.zeros(dots.shape[:2], np.float32)
    for g in range(n_groups):
        y = fma(dots[:, :, g], w_scales[None, :, g] * x_scales[:, None, g * group // 128], y)
    return dots, y


def weights_of(model, name, group):
    """Weights -1, 0, 1 [R, P] and their scales [R, P / group], of a tensor with one [1, P / group]."""
    codes, scales = model.ternary(name)
    cols = codes.shape[1]
    padding = ((0, 0), (0, -cols % 128))
    scales = np.pad(np.repeat(scales, cols // scales.shape[1], 1), padding)[:, ::group]
    return np.pad(codes.astype(np.int8) - np.int8(1), padding), scales


def expected(model, name, x, group, per_token=False):
    weights, w_scales = weights_of(model, name, group)
    if per_token:
        q, x_scales, s = quantise_token(x)
    else:
        q, x_scales = quantise(x)
    dots, y = project(weights, w_scales, q, x_scales, group)
    if per_token and len(w_scales) == 1:
        y = dots.sum(-1, dtype=np.int32).astype(np.float32) * (w_scales[0, 0] / s[:, None])
    cols = model.tensors[name][0][0]
    return {"q": q, "xscale": x_scales, "codes": weights[:, :cols], "dot": dots, "y": y}


def read_trace(stem, about):
    n, rows, cols = about["n_columns"], about["rows"], about["cols"]
    padded = -(-cols // 128) * 128
    shapes = {"x": (n, padded), "q": (n, padded), "xscale": (n, padded // 128), "codes": (rows, cols),
              "dot": (n, rows, padded // about["group"]), "y": (n, rows)}
    traced = {}
    for file, dtype in FILES.items():
        part, path = file.split(".")[0], Path(f"{stem}.{file}")
        if part != "codes" or path.exists():
            traced[part] = np.fromfile(path, dtype).reshape(shapes[part])
    return traced


def compare(model, stem):
    """One line about a projection, and whether it is right."""
    about = json.loads(Path(f"{stem}.json").read_text())
    name, group = about["name"], about["group"]
    head = f"{stem.name} {name}"
    (cols, rows), *_ = model.tensors[name]
    if (about["rows"], about["cols"]) != (rows, cols):
        return f"{head}: traced {about['rows']} x {about['cols']}, the file has {rows} x {cols}", False
    traced = read_trace(stem, about)
    want = expected(model, name, traced["x"], group, about["per_token"])
    for part in ("codes", "q", "xscale", "dot"):
        if part in traced and (different := np.argwhere(traced[part] != want[part])).size:
            at = tuple(different[0])
            return (f"{head}: {part}{list(map(int, at))} is {traced[part][at]}, expected "
                    f"{want[part][at]}; {len(different)} differ"), False
    error = np.abs(traced["y"].astype(float) - want["y"]).max() / max(np.abs(want["y"]).max(), 1e-30)
    if not error <= OUTPUT_BOUND:
        return f"{head}: y is off by {error:.2g} of its maximum, allowed {OUTPUT_BOUND:g}", False
    head += " per token" if about["per_token"] else ""
    same = "every bit of y too" if (traced["y"] == want["y"]).all() else f"y within {error:.1g}"
    return f"{head}: codes and products equal, {same}", True


def check(trace, model):
    stems = sorted((p.with_suffix("") for p in Path(trace).glob("*.json")), key=lambda p: int(p.name))
    results = [compare(model, stem) for stem in stems]
    for line, _ in results:
        print(line)
    right = sum(ok for _, ok in results)
    print(f"{right} of {len(results)} projections as the contract says")
    return bool(results) and right == len(results)


def self_test(model):
    """A trace made by the oracle passes; the same trace with one defect does not."""
    # 64 + 2^-18 + 2^-54: half way between two float32 but for a part that float64 drops.
    assert fma(np.int32([8194]), np.float32([16773121 * 2.0 ** -55]), np.float32([64])) == 64 + 2 ** -17
    ffn = [(record[0], name) for name, record in model.tensors.items() if name.startswith("blk.0.ffn_")]
    (cols, rows), name = max((dims, name) for dims, name in ffn if len(dims) == 2)
    weights, w_scales = weights_of(model, name, 128)
    x = np.random.default_rng(1).normal(size=(3, cols)).astype(np.float32)
    x[1, :128] = 0
    good = {"x": x, **expected(model, name, x, 128)}
    last = np.abs(good["y"]).max()
    defects = {
        "none": lambda t: None,
        "a weight with the wrong sign": lambda t: np.negative(t["codes"][:1, :9], out=t["codes"][:1, :9]),
        "a code off by one": lambda t: np.add.at(t["q"], (2, cols - 1), 1),
        "a scale one bit too large": lambda t: np.nextafter(t["xscale"], np.inf, out=t["xscale"]),
        "a product off by one": lambda t: np.add.at(t["dot"], (0, rows - 1, 0), 1),
        "an output off by 3e-6": lambda t: np.add.at(t["y"], (2, 0), 3e-6 * last),
        "an output that is not a number": lambda t: t["y"].put(0, np.nan),
        "activations quantised per token": lambda t: t.update(expected(model, name, x, 128, True)),
        "scales of the next group": lambda t: t.update(
            y=project(weights, np.roll(w_scales, 1, 1), t["q"], t["xscale"], 128)[1]),
    }
    found = 0
    for what, plant in defects.items():
        traced = {part: a.copy() for part, a in good.items()}
        plant(traced)
        with tempfile.TemporaryDirectory() as folder:
            stem = Path(folder) / "0"
            Path(f"{stem}.json").write_text(json.dumps(
                {"name": name, "rows": rows, "cols": cols, "n_columns": len(x), "group": 128,
                 "per_token": False}))
            for file, dtype in FILES.items():
                traced[file.split(".")[0]].astype(dtype).tofile(f"{stem}.{file}")
            line, ok = compare(model, stem)
        print(f"defect: {what}; {line}")
        found += ok == (what == "none")
    print(f"{found} passed, {len(defects) - found} failed")
    return found == len(defects)


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(not self_test(Gguf(sys.argv[2])))
    sys.exit(not check(sys.argv[1], Gguf(sys.argv[2])))
