"""What the tiny models share: shapes, random values, GGUF files, golden logits from `transformers`."""

import json
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers

import ternary_blocks
from gguf_numpy import Gguf
from numpy_forward import Model
from tokenizers_hf import CONTROL, NORMAL, UNUSED, USER_DEFINED

VOCAB = 333  # ten blocks of 32 rows and a rest
EPS = 1e-6
CONTEXT = 1024
HERE = Path(__file__).parent

# (prompt length, positions kept). Every prompt has its own random tokens.
PROMPTS = [(1, [0]), (9, range(9)), (10, [9]), (11, [10]), (63, [62]), (64, [63]), (65, [0, 63, 64]),
           (513, [511, 512])]


@dataclass(frozen=True)
class Spec:
    name: str
    arch: str  # llama or qwen3
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    tied: bool
    theta: float
    pre: str
    seed: int
    rope_scaling: dict | None = None  # transformers' parameters: llama3, yarn, linear
    rope_dims: int | None = None  # of a head; None: all

    def matrices(self):
        """(name, rows, cols, spread) of each matrix; the spreads make peaked attention and logits."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        unit = self.hidden ** -0.5
        yield "token_embd.weight", VOCAB, self.hidden, 4 * unit if self.tied else 1.0
        for i in range(self.layers):
            yield f"blk.{i}.attn_q.weight", q, self.hidden, 1.5 * unit
            yield f"blk.{i}.attn_k.weight", kv, self.hidden, 1.5 * unit
            yield f"blk.{i}.attn_v.weight", kv, self.hidden, unit
            yield f"blk.{i}.attn_output.weight", self.hidden, q, q ** -0.5
            yield f"blk.{i}.ffn_gate.weight", self.ffn, self.hidden, unit
            yield f"blk.{i}.ffn_up.weight", self.ffn, self.hidden, unit
            yield f"blk.{i}.ffn_down.weight", self.hidden, self.ffn, self.ffn ** -0.5
        if not self.tied:
            yield "output.weight", VOCAB, self.hidden, 4 * unit

    def random_norms(self, rng):
        norms = {"output_norm.weight": self.hidden}
        for i in range(self.layers):
            norms |= {f"blk.{i}.attn_norm.weight": self.hidden, f"blk.{i}.ffn_norm.weight": self.hidden}
            if self.arch == "qwen3":
                norms |= {f"blk.{i}.attn_{p}_norm.weight": self.head_dim for p in "qk"}
        return {name: rng.uniform(0.5, 1.5 if "_norm" in name else 2, n).astype(np.float32)
                for name, n in norms.items()}


# GGUF name -> transformers name, for the tensors outside and inside a layer.
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
INNER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_name(name):
    stem = name.removesuffix(".weight")
    if stem in OUTER:
        return OUTER[stem] + ".weight"
    _, layer, stem = stem.split(".")
    return f"model.layers.{layer}.{INNER[stem]}.weight"


def halves_from_pairs(w, head_dim):
    """Rows of q or k as GGUF has them for llama (RoPE turns neighbours) -> transformers' order."""
    return w.reshape(-1, head_dim // 2, 2, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)


def hf_model(spec, values):
    """values: un-rotated weights by GGUF name, float64."""
    config_class, model_class = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    }[spec.arch]
    rope = {"rope_type": "default"} if spec.rope_scaling is None else spec.rope_scaling
    config = config_class(
        vocab_size=VOCAB, hidden_size=spec.hidden, intermediate_size=spec.ffn,
        num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
        num_key_value_heads=spec.kv_heads, head_dim=spec.head_dim, rms_norm_eps=EPS,
        max_position_embeddings=CONTEXT, tie_word_embeddings=spec.tied,
        rope_parameters={"rope_theta": spec.theta, **rope}, attn_implementation="eager")
    model = model_class(config).double().eval()
    state = {}
    for name, w in values.items():
        if spec.arch == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
            w = halves_from_pairs(w, spec.head_dim)
        state[hf_name(name)] = torch.from_numpy(np.array(w, np.float64))
    if spec.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


def rope_divisors(spec):
    """rope_freqs.weight: what transformers' llama3 scaling divides each frequency by."""
    values = {name: np.zeros((rows, cols)) for name, rows, cols, _ in spec.matrices()}
    model = hf_model(spec, values | spec.random_norms(np.random.default_rng(0)))
    plain = spec.theta ** (-np.arange(0, spec.head_dim, 2) / spec.head_dim)
    return (plain / model.model.rotary_emb.inv_freq.double().numpy()).astype(np.float32)


def write_gguf(path, spec, tensors, keys=()):
    """tensors: name -> float array, or (type name, bytes [rows, row bytes]), or (type name, bytes, (rows,
    row bytes)) where bytes follow the rows. keys: (key, value)."""
    writer = gguf.GGUFWriter(path, spec.arch)
    writer.add_name(spec.name)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(spec.hidden)
    writer.add_block_count(spec.layers)
    writer.add_feed_forward_length(spec.ffn)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_key_length(spec.head_dim)
    writer.add_value_length(spec.head_dim)
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_rope_dimension_count(spec.rope_dims or spec.head_dim)
    writer.add_rope_freq_base(spec.theta)
    scaling = spec.rope_scaling or {}
    if scaling.get("rope_type") in ("yarn", "linear"):  # llama3's is a tensor, rope_freqs.weight
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
    if scaling.get("rope_type") == "yarn":
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_vocab_size(VOCAB)
    tokens, merges, types = small_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(spec.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_custom_alignment(32)
    for key, value in keys:
        add_key(writer, key, value)
    for name, data in tensors.items():
        if isinstance(data, tuple):
            type_name, data, *shape = data
            writer.add_tensor(name, data, raw_shape=shape[0] if shape else None,
                              raw_dtype=tensor_type(type_name))
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_key(writer, key, value):
    """gguf writes a list of int as int32, as Prism's fork does."""
    add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string, list: writer.add_array}
    add[type(value)](key, value)


def tensor_type(name):
    """A type of the gguf package; those of forks, which it does not know, are added to its enumeration."""
    kinds = gguf.GGMLQuantizationType
    if name not in kinds.__members__:
        block = ternary_blocks.TYPES[name]
        kind = int.__new__(kinds, block.type_id)
        kind._name_, kind._value_ = name, block.type_id
        kinds._member_map_[name] = kinds._value2member_map_[block.type_id] = kind
        gguf.GGML_QUANT_SIZES[kind] = (block.weights, block.size)
    return kinds[name]


def small_vocabulary():
    """The first VOCAB - 3 tokens of the tests' vocabulary, its two user-defined ones, one unused."""
    with open(HERE / "../data/tokenizer/vocabulary.json", encoding="ascii") as f:
        full = json.load(f)
    user = [t for t, kind in zip(full["tokens"], full["token_types"]) if kind == USER_DEFINED]
    head = full["tokens"][:VOCAB - 3]
    merges = [m for m in full["merges"]
              if {*m.split(" "), m.replace(" ", "")} <= set(head)]
    tokens = head + user + [f"[PAD{VOCAB - 1}]"]
    types = full["token_types"][:len(head)] + [USER_DEFINED] * len(user) + [UNUSED]
    assert len(tokens) == VOCAB and set(types) == {NORMAL, CONTROL, USER_DEFINED, UNUSED}
    return tokens, merges, types


def write_goldens(folder, spec, values, make_model=hf_model):
    """NAME.json and NAME.logits.f32: transformers' logits, computed in float64 but for its RMS norms,
    softmax and RoPE angles, which it always computes in float32. Returns the prompts and logits."""
    model = make_model(spec, values)
    rng = np.random.default_rng(spec.seed + 1000)
    prompts, rows, row = [], [], 0
    for length, positions in PROMPTS:
        tokens = rng.integers(0, VOCAB, length)
        with torch.no_grad():
            logits = model(torch.from_numpy(tokens)[None]).logits[0].numpy()
        prompts.append({"tokens": tokens.tolist(), "positions": list(positions), "row": row})
        rows += [logits[p] for p in positions]
        row += len(positions)
    rows = np.array(rows)
    rows.astype("<f4").tofile(folder / f"{spec.name}.logits.f32")
    about = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}, float64",
             "logits": f"{spec.name}.logits.f32", "dtype": "f32 little-endian", "rows": row, "vocab": VOCAB,
             "prompts": prompts}
    with open(folder / f"{spec.name}.json", "w", encoding="ascii") as f:
        lines = [f'"{k}": {json.dumps(v)}' for k, v in about.items() if k != "prompts"]
        listed = ",\n".join(json.dumps(p) for p in prompts)
        f.write("{\n" + ",\n".join(lines) + f',\n"prompts": [\n{listed}\n]\n}}\n')
    return prompts, rows


def check_file(path, prompts, rows, graph=Model):
    """The file, read back and run by numpy in its own basis, must give the golden logits."""
    file = Gguf(path)
    model = graph(file.metadata, stored_values(path, file))
    worst = 0.0
    for prompt in prompts:
        want = rows[prompt["row"]:][:len(prompt["positions"])]
        got = model.logits(prompt["tokens"])[prompt["positions"]]
        worst = max(worst, np.abs(got - want).max() / np.abs(want).max())
    p = np.exp(rows - rows.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    entropy = -(p * np.log(p)).sum(-1).mean()
    print(f"{path.name}: {path.stat().st_size} bytes, numpy against transformers {worst:.1e}, "
          f"logits {rows.std():.2f} rms, entropy {entropy:.2f} of {np.log(VOCAB):.2f}")
    assert worst < 1e-5  # a float32 angle at position 512 is off by up to 3e-5


def stored_values(path, file):
    """Every tensor of the file as an array, dequantised but not un-rotated."""
    ours = [tensor_type(name) for name in ("PQ2_0", "PTQ1_0", "Q2_0", "I2_S", "IQ2_BN")]
    values = {}
    for t in gguf.GGUFReader(path).tensors:
        if t.tensor_type in ours:
            codes, scales = file.ternary(t.name)
            values[t.name] = ternary_blocks.values(codes, scales)
        else:
            values[t.name] = gguf.dequantize(t.data, t.tensor_type)
    return values
