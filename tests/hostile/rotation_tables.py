"""The rotation contract of a GGUF: each key absent, of another type, wrong."""

from gguf_file import ARRAY, BOOL, F32, I32, STRING, U32, U64, array
from hostile.support import HostileTest, key, rotated
from tsq_tool import DAMAGED, SUCCESS, UNSUPPORTED


def hadamard(name, kind, value):
    return key("prism.hadamard." + name, kind, value)


def without(name):
    return lambda g: g.erase("prism.hadamard." + name)


def names(*values):
    return array(STRING, values)


Q = "blk.0.attn_q.weight"
ROTATIONS = [  # key: what, exit, message, change
    ("nothing", SUCCESS, "", lambda g: None),
    ("version: absent", DAMAGED, "version' is missing", without("version")),
    ("version: a text", DAMAGED, "version' is string", hadamard("version", STRING, "1")),
    ("version: 0", UNSUPPORTED, "version' is 0, expected 1", hadamard("version", U32, 0)),
    ("version: 2", UNSUPPORTED, "version' is 2, expected 1", hadamard("version", U32, 2)),
    ("block_size: absent", DAMAGED, "block_size' is missing", without("block_size")),
    ("block_size: a float", DAMAGED, "block_size' is f32", hadamard("block_size", F32, 64)),
    ("block_size: 0", DAMAGED, "block_size' is 0, expected a power", hadamard("block_size", U32, 0)),
    ("block_size: 48", DAMAGED, "block_size' is 48", hadamard("block_size", U32, 48)),
    ("block_size: 2^31", DAMAGED, "block_size' is 2147483648", hadamard("block_size", U32, 2**31)),
    ("block_size: 2^40", DAMAGED, "block_size' is 1099511627776", hadamard("block_size", U64, 2**40)),
    ("block_size: no divisor of a width", DAMAGED, "sign_widths' holds 64, .*block size, 256",
     hadamard("block_size", U32, 256)),
    ("transform: absent", DAMAGED, "transform' is missing", without("transform")),
    ("transform: a number", DAMAGED, "transform' is u32", hadamard("transform", U32, 1)),
    ("transform: sequency", UNSUPPORTED, "transform' is 'sequency'",
     hadamard("transform", STRING, "sequency")),
    ("axis: absent", DAMAGED, "axis' is missing", without("axis")),
    ("axis: a boolean", DAMAGED, "axis' is bool", hadamard("axis", BOOL, 1)),
    ("axis: output", UNSUPPORTED, "axis' is 'output'", hadamard("axis", STRING, "output")),
    ("sign_mode: absent", DAMAGED, "sign_mode' is missing", without("sign_mode")),
    ("sign_mode: a number", DAMAGED, "sign_mode' is u32", hadamard("sign_mode", U32, 1)),
    ("sign_mode: random", UNSUPPORTED, "sign_mode' is 'random'",
     hadamard("sign_mode", STRING, "random")),
    ("sign_mode: identity, but signs", DAMAGED, "'identity', but .*sign_values' holds -1",
     hadamard("sign_mode", STRING, "identity")),
    ("sign_widths: absent", DAMAGED, "sign_widths' is missing", without("sign_widths")),
    ("sign_widths: a number", DAMAGED, "sign_widths' is u32", hadamard("sign_widths", U32, 256)),
    ("sign_widths: texts", DAMAGED, "sign_widths' is array of string",
     hadamard("sign_widths", ARRAY, names("256"))),
    ("sign_widths: empty", DAMAGED, "sign_widths' is empty", hadamard("sign_widths", ARRAY, array(I32, []))),
    ("sign_widths: negative", DAMAGED, "sign_widths' holds -64",
     hadamard("sign_widths", ARRAY, array(I32, [384, -64]))),
    ("sign_widths: twice", DAMAGED, "sign_widths' holds 64 twice",
     hadamard("sign_widths", ARRAY, array(I32, [64, 64, 192]))),
    ("sign_widths: sum too large", DAMAGED, "holds 320 values, the widths .* add up to 384",
     hadamard("sign_widths", ARRAY, array(I32, [256, 128]))),
    ("sign_widths: the sum wraps", DAMAGED, "sign_widths' holds 9223372036854775744",
     hadamard("sign_widths", ARRAY, array(U64, [2**63 - 64, 2**63 - 64, 448]))),
    ("sign_widths: none for a weight", DAMAGED, "'token_embd.weight' has 64 inputs, .* no such width",
     lambda g: (hadamard("sign_widths", ARRAY, array(I32, [256]))(g),
                hadamard("sign_values", ARRAY, array(I32, [1] * 256))(g))),
    ("sign_values: absent", DAMAGED, "sign_values' is missing", without("sign_values")),
    ("sign_values: a text", DAMAGED, "sign_values' is string", hadamard("sign_values", STRING, "+-")),
    ("sign_values: 0", DAMAGED, "sign_values' holds 0 at 7",
     hadamard("sign_values", ARRAY, array(I32, [1] * 7 + [0] + [1] * 312))),
    ("sign_values: one too few", DAMAGED, "holds 319 values, the widths .* add up to 320",
     hadamard("sign_values", ARRAY, array(I32, [1] * 319))),
    ("weight_names: absent", DAMAGED, "weight_names' is missing", without("weight_names")),
    ("weight_names: a text", DAMAGED, "weight_names' is string", hadamard("weight_names", STRING, Q)),
    ("weight_names: empty", DAMAGED, "weight_names' is empty", hadamard("weight_names", ARRAY, names())),
    ("weight_names: unknown", DAMAGED, "'blk.9.attn_q.weight', but there is no such tensor",
     hadamard("weight_names", ARRAY, names(Q, "blk.9.attn_q.weight"))),
    ("weight_names: twice", DAMAGED, f"weight_names' holds '{Q}' twice",
     hadamard("weight_names", ARRAY, names(Q, Q))),
    ("weight_names: a norm", UNSUPPORTED, "holds 'blk.0.attn_norm.weight', expected",
     hadamard("weight_names", ARRAY, names(Q, "blk.0.attn_norm.weight"))),
    ("weight_names: a vector", DAMAGED, f"'{Q}' is named .* is no matrix",
     lambda g: g.tensor(Q).update(dims=[256])),
    ("inverse_weight_names: absent", DAMAGED, "inverse_weight_names' is missing",
     without("inverse_weight_names")),
    ("inverse_weight_names: numbers", DAMAGED, "inverse_weight_names' is array of i32",
     hadamard("inverse_weight_names", ARRAY, array(I32, [1]))),
    ("inverse_weight_names: another", UNSUPPORTED, f"inverse_weight_names' holds '{Q}'",
     hadamard("inverse_weight_names", ARRAY, names(Q))),
    ("inverse_weight_names: twice", DAMAGED, "holds 'token_embd.weight' twice",
     hadamard("inverse_weight_names", ARRAY, names(*["token_embd.weight"] * 2))),
    ("gdn_v_grouped: a number", DAMAGED, "gdn_v_grouped' is u32", hadamard("gdn_v_grouped", U32, 1)),
    ("ssm_out without gdn_v_grouped", UNSUPPORTED, "ssm_out.weight' is rotated without",
     lambda g: (g.tensor(Q).update(name="blk.0.ssm_out.weight"),
                hadamard("weight_names", ARRAY, names("blk.0.ssm_out.weight"))(g))),
    ("an architecture outside the contract", UNSUPPORTED, "architecture 'bert'",
     key("general.architecture", STRING, "bert")),
    ("one key alone", DAMAGED, "is missing",
     lambda g: [g.erase(k) for k in list(g.keys) if k.startswith("prism") and "axis" not in k]),
]


class Rotations(HostileTest):
    def test_the_contract(self):
        for number, (what, code, message, change) in enumerate(ROTATIONS):
            g = rotated()
            change(g)
            path = self.file(f"{number}.gguf", g.build())
            for command in ("convert", "inspect"):
                with self.subTest(what, command=command):
                    self.expect(command, path, code, message)
