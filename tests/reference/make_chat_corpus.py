"""The seeds of tests/fuzz/chat_fuzz.cpp: make_chat_corpus.py ../fuzz/corpus/chat

Numbered files beside them are what the fuzzer found from these.
"""

import json
import sys
from pathlib import Path

from chat_cases import CONVERSATIONS


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, source, conversation):
        text = json.dumps({k: v for k, v in conversation.items() if k != "add_generation_prompt"}, ensure_ascii=False)
        (folder / name).write_text(source + "\n----\n" + text, encoding="utf-8", newline="")

    goldens = json.loads((Path(__file__).parent / "../data/chat/expressions.json").read_text(encoding="utf-8"))
    expressions = [e for e, text in goldens["expressions"] if text is not None]  # one that fails would hide the rest
    snippets = [s for s, text in goldens["snippets"] if text is not None]
    tools = CONVERSATIONS["tool answers"]
    for path in sorted((Path(__file__).parent / "../data/chat/templates").glob("*.jinja")):
        write(path.stem, path.read_text(encoding="utf-8"), tools)
    plain = {"messages": CONVERSATIONS["turns"]["messages"][:3], "variables": {"n": 3, "l": [2, 1], "d": {"a": None}, "s": "Aé"}}
    for i in range(0, len(expressions), 60):
        write(f"expressions{i // 60:02}", "".join("{{ " + e + " }}\n" for e in expressions[i:i + 60]), plain)
    for i in range(0, len(snippets), 10):
        write(f"snippets{i // 10:02}", "\n".join(snippets[i:i + 10]), plain)


main(sys.argv[1])
