"""Files of some tens of MB that could make a reader hold many times that: very many tiny parts."""

import json
import os
import struct

from gguf_file import ARRAY, I8, STRING, U32, array, text
from hostile.support import HostileTest, tiny, vocabulary
from tsq_tool import DAMAGED, UNSUPPORTED

MILLION = 1_000_000
NOT_A_NUMBER = b"\0\0\xc0\x7f"


def many(kind, n, element):
    """The encoded value of an array of n times the same element."""
    return struct.pack("<IQ", kind, n) + n * element


def ggml(name, kind, n, element):
    return lambda g: vocabulary(g).set("tokenizer.ggml." + name, ARRAY, many(kind, n, element))


def sentencepiece(g):
    g.set("tokenizer.ggml.model", STRING, "llama")
    g.set("tokenizer.ggml.tokens", ARRAY, many(STRING, 3, text("a")))
    g.set("tokenizer.ggml.scores", ARRAY, many(I8, 20 * MILLION, b"\1"))


MOST_TOKENS, MOST_MERGES = 294_912, 589_824


def full_vocabulary():
    """Tokens as many as there may be and nearly as many merges, of 3 MB of text: one, two or three of 66 words."""
    words = [3 * chr(ord("0") + i) for i in range(66)]
    pairs = [(a, b) for a in words for b in words]
    triples = [(a, b, c) for a, b in pairs for c in words]
    tokens = words + [a + b for a, b in pairs] + [a + b + c for a, b, c in triples]
    tokens += [f"~{i}" for i in range(MOST_TOKENS - len(tokens))]
    merges = pairs + [(a, b + c) for a, b, c in triples] + [(a + b, c) for a, b, c in triples]
    return tokens, merges[:MOST_MERGES]


def at_the_limits(g):
    tokens, merges = full_vocabulary()
    vocabulary(g)
    g.set("tokenizer.ggml.tokens", ARRAY, array(STRING, tokens))
    g.set("tokenizer.ggml.token_type", ARRAY, many(I8, MOST_TOKENS, b"\1"))
    g.set("tokenizer.ggml.merges", ARRAY, array(STRING, [" ".join(merge) for merge in merges]))
    g.set("none.embedding_length", U32, 1)
    g.tensor("token_embd.weight").update(dims=[1, MOST_TOKENS],
                                         data=bytes(4 * MOST_TOKENS - 4) + NOT_A_NUMBER)


def contract(**arrays):
    def change(g):
        h = "prism.hadamard."
        g.set(h + "version", U32, 1).set(h + "block_size", U32, 64)
        g.set(h + "transform", STRING, "normalized-sylvester-walsh-hadamard")
        g.set(h + "axis", STRING, "input-last-dimension").set(h + "sign_mode", STRING, "explicit")
        known = {"sign_widths": (I8, 1, b"\x40"), "sign_values": (I8, 64, b"\1"),
                 "weight_names": (STRING, 1, text("codes")), "inverse_weight_names": (STRING, 0, b"")}
        for name, elements in (known | arrays).items():
            g.set(h + name, ARRAY, many(*elements))
    return change


def keys_without_end(g):
    entry = text("key") + struct.pack("<IB", 0, 1)
    g.keys["x"] = (0, b"\1" + MILLION * entry)
    g.n_keys = MILLION


def tensors_without_end(g):
    g.set("x", STRING, 30 * MILLION * b" ")
    g.n_tensors = 800_000


def not_a_number(g):
    g.tensor("token_embd.weight").update(data=bytes(764) + NOT_A_NUMBER)


def ending_badly(change):
    return lambda g: (change(g), not_a_number(g))


# The same for convert and inspect, but where a row names one of them.
GGUF_MEMORY = [  # what, exit, message, change, commands
    ("800,000 tensors", UNSUPPORTED, "800000 tensors, at most 32768", tensors_without_end, None),
    ("a million keys", UNSUPPORTED, "1000000 metadata entries, at most 65536", keys_without_end, None),
    ("2 million tokens", UNSUPPORTED, "tokens' holds 2000000 values", ggml("tokens", STRING, 2 * MILLION,
                                                                       text("a")), None),
    ("290,000 long tokens", UNSUPPORTED, "bytes of text",
     ggml("tokens", STRING, 290_000, text(60 * "a")), None),
    ("2 million merges", UNSUPPORTED, "merges' holds 2000000 values",
     ggml("merges", STRING, 2 * MILLION, text("a b")), None),
    ("20 million types", DAMAGED, "20000000 types for 3 tokens",
     ggml("token_type", I8, 20 * MILLION, b"\1"), None),
    ("20 million scores", DAMAGED, "20000000 scores for 3 tokens", sentencepiece, None),
    ("20 million signs", UNSUPPORTED, "sign_values' holds 20000000",
     contract(sign_values=(I8, 20 * MILLION, b"\1")), None),
    ("20 million widths", UNSUPPORTED, "sign_widths' holds 20000000",
     contract(sign_widths=(I8, 20 * MILLION, b"\x40")), None),
    ("2 million names of rotated weights", UNSUPPORTED, "weight_names' holds 2000000",
     contract(weight_names=(STRING, 2 * MILLION, text("codes"))), None),
    ("a vocabulary at its limits, then not a number", DAMAGED, "not a number", at_the_limits,
     ("convert",)),
    ("a string of 25 MB", UNSUPPORTED, "'x' makes the metadata larger",
     ending_badly(lambda g: g.set("x", STRING, 25 * MILLION * b"a")), ("convert",)),
    ("3 million strings", UNSUPPORTED, "'x' makes the metadata larger",
     ending_badly(lambda g: g.set("x", ARRAY, many(STRING, 3 * MILLION, text("")))), ("convert",)),
]

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
          "hidden_size": 8, "intermediate_size": 16, "max_position_embeddings": 64,
          "num_attention_heads": 2, "num_hidden_layers": 100_000, "num_key_value_heads": 1,
          "rms_norm_eps": 1e-6, "tie_word_embeddings": True}


def safetensors(tensors):
    """tensors: (name, dims, bytes), all F16."""
    header, end = {}, 0
    for name, dims, size in tensors:
        header[name] = {"dtype": "F16", "shape": dims, "data_offsets": [end, end + size]}
        end += size
    head = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(head)) + head + bytes(end)


def embedding(rows):
    return ("model.embed_tokens.weight", [rows, 1], 2 * rows)


def strings(n, content, end=b"]"):
    return b"[" + b",".join(n * [b'"' + content + b'"']) + end


def members(n):
    return ",".join(f'"{i:06}":{i}' for i in range(n)).encode()


def bpe(vocab, merges):
    return (b'{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},'
            b'"model":{"type":"BPE","vocab":{' + vocab + b'},"merges":[' + merges + b"]}}")


def full_folder(as_text=False, rules=None, **config):
    """A tokenizer at its limits, which is sound; the last weight is not a number."""
    tokens, merges = full_vocabulary()
    model = {"type": "BPE", "byte_fallback": True, "vocab": {t: i for i, t in enumerate(tokens)},
             "merges": [" ".join(merge) for merge in merges] if as_text else merges}
    tokenizer = {"model": model, **(rules or BYTE_LEVEL)}
    return {"tokenizer.json": json.dumps(tokenizer).encode(),
            "config.json": json.dumps(CONFIG | config).encode(),
            "model.safetensors": safetensors([embedding(MOST_TOKENS)])[:-2] + b"\0\x7e"}


def full_folder_of_pads():
    merge = json.dumps(2 * [8 * "a"]).encode()
    return full_folder() | {"tokenizer.json": bpe(b'"a":0', b",".join(MOST_MERGES * [merge]))}


def layer_norms(n):
    return [(f"model.layers.{i}.input_layernorm.weight", [1], 2) for i in range(n)]


NOT_JSON = b",x]"
BYTE_LEVEL = {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}}
STEP = {"type": "ByteLevel"}
SENTENCEPIECE = {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}}
FOLDER_MEMORY = [  # what, exit, message, files
    ("10 million values", UNSUPPORTED, "more than 262144 values",
     lambda: {"config.json": b"[" + 10 * MILLION * b"0," + b"0]"}),
    ("2.3 million values, then an error", DAMAGED, "tokenizer.json.*not JSON",
     lambda: {"tokenizer.json": b"[" + 2_300_000 * b"0," + b"x]"}),
    ("20 MB of strings, then an error", DAMAGED, "tokenizer.json.*not JSON",
     lambda: {"tokenizer.json": strings(10, 2 * MILLION * b"a", NOT_JSON)}),
    ("40 MB of strings with escapes", UNSUPPORTED, "4194304 bytes of strings with escapes",
     lambda: {"config.json": strings(20, b"\\n" + 2 * MILLION * b"a")}),
    ("a million keys, the first twice", DAMAGED, "the key '000000' twice",
     lambda: {"tokenizer.json": b"{" + members(MILLION) + b',"000000":0}'}),
    ("290,000 tokens and merges, then one id twice", DAMAGED, "have the same id, 5",
     lambda: {"tokenizer.json": bpe(members(290_000) + b',"x":5', b",".join(290_000 * [b'"0 1"'])),
              "model.safetensors": safetensors([embedding(290_000)])}),
    ("a vocabulary at its limits, then not a number", DAMAGED, "not a number", full_folder),
    ("its merges as text", DAMAGED, "not a number", lambda: full_folder(as_text=True)),
    ("for SentencePiece", DAMAGED, "not a number", lambda: full_folder(rules=SENTENCEPIECE)),
    ("tokens that the tokenizer leaves out", DAMAGED, "not a number", full_folder_of_pads),
    ("a vocabulary at its limits, then a bad id", DAMAGED, "'eos_token_id' is 294912",
     lambda: full_folder(eos_token_id=MOST_TOKENS)),
    ("a vocabulary at its limits, then many ids", DAMAGED, "'eos_token_id' is -1",
     lambda: full_folder(eos_token_id=250_000 * [0] + [-1])),
    ("many steps behind a vocabulary at its limits", DAMAGED, "not a number",
     lambda: full_folder(True, BYTE_LEVEL | {"post_processor": {"processors": 250_000 * [STEP]}})),
    ("16 MB of merges", UNSUPPORTED, "merges of 16000000 bytes of text",
     lambda: {"tokenizer.json": bpe(b'"a":0', b",".join(500_000 * [b'"%s a"' % (31 * b"a")]))}),
    ("a chat template of 90 MB", UNSUPPORTED, "template has 90000000 bytes, at most 1048576",
     lambda: {"chat_template.jinja": 90 * MILLION * b"a"}),
    ("10 million rows of one value", UNSUPPORTED, "'zz' has no place",
     lambda: {"tokenizer.json": bpe(b'"a":0', b""),
              "model.safetensors": safetensors([embedding(10 * MILLION), ("zz", [1], 2)])}),
    ("60,000 tensors", UNSUPPORTED, "more than 32768 tensors",
     lambda: {"model.safetensors": safetensors([embedding(4)] + layer_norms(60_000))}),
]


def apart(make):
    """Makes files in a process of its own: what this one holds would be measured with the tool's."""
    child = os.fork()
    if child == 0:
        try:
            make()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


class Memory(HostileTest):
    def test_ggufs(self):
        for number, (what, code, message, change, commands) in enumerate(GGUF_MEMORY):
            def make(name=f"{number}.gguf", change=change):
                g = tiny()
                change(g)
                self.file(name, g.build())

            apart(make)
            path = self.folder / f"{number}.gguf"
            for command in commands or ("convert", "inspect"):
                with self.subTest(what, command=command):
                    self.expect(command, path, code, message)
            path.unlink()

    def test_folders(self):
        for number, (what, code, message, files) in enumerate(FOLDER_MEMORY):
            folder = self.folder / str(number)
            folder.mkdir()

            def make(folder=folder, files=files):
                sound = {"config.json": json.dumps(CONFIG).encode(),
                         "model.safetensors": safetensors([embedding(4)])}
                for name, content in (sound | files()).items():
                    (folder / name).write_bytes(content)

            apart(make)
            with self.subTest(what):  # inspect would do the same
                self.expect("convert", folder, code, message)
