"""Conversations, at a pseudo-terminal and through pipes."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from cli.support import CliTest, SOURCE
from tsq_tool import DAMAGED, FAILURE, INTERRUPTED, SUCCESS, TSQ, USAGE, tsq

TEMPLATE = ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
            "{% if enable_thinking is defined and enable_thinking %} <think>\n{% endif %}")
CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"


def with_template(gguf, template):
    """The GGUF with a chat template as its first key, padded so that the tensors stay aligned."""
    key = b"tokenizer.chat_template"
    entry = len(key) + len(template) + 20 + len("{##}")
    template = "{#" + " " * (-entry % 32) + "#}" + template
    added = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(template)) + template.encode()
    count = struct.unpack_from("<Q", gguf, 16)[0]
    return gguf[:16] + struct.pack("<Q", count + 1) + added + gguf[24:]


class Terminal:
    """The tool at a terminal of its own."""

    def __init__(self, *arguments, env=None):
        self.raw, self.read_to = b"", 0
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:  # so wide that no line wraps
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
            environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **(env or {})}
            os.execve(TSQ, ["tsq", *map(str, arguments)], environment)

    def read(self, seconds):
        """Whether something came within the time; None at the end."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:  # the other end is closed
            return None
        self.raw += piece
        return True if piece else None

    @property
    def shown(self):
        return self.raw.replace(b"\r\n", b"\n").decode(errors="replace")

    def expect(self, pattern, seconds=20):
        """Reads on until the pattern follows what was expected before: the match."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern).search(self.shown, self.read_to)
            if found:
                self.read_to = found.end()
                return found
            if self.read(max(0, end - time.monotonic())) is not True:
                raise AssertionError(f"no {pattern!r} in {self.shown[self.read_to:]!r} of {self.shown[-900:]!r}")

    def send(self, keys):
        os.write(self.descriptor, keys if isinstance(keys, bytes) else keys.encode())

    def expect_prompt(self):
        self.expect(r"(?<=\n)> \Z")  # an answer, too, may hold one

    def say(self, line):
        """Types a line once it is asked for."""
        self.expect_prompt()
        self.send(line + "\r")
        self.expect(re.escape(line.split("\r")[-1]) + "\n")

    def end(self):
        """The exit code, once the tool has ended by itself."""
        while self.read(20):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Chat(CliTest):
    OPTIONS = ["-s", "1", "--ignore-eos"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = cls.shared / "chat.gguf"
        source.write_bytes(with_template(SOURCE.read_bytes(), TEMPLATE))
        cls.model = cls.shared / "chat.tsq"
        done = tsq("convert", source, "-o", cls.model, "--allow-random")
        assert done.code == SUCCESS, done.err

    def terminal(self, *arguments, n=8):
        terminal = Terminal("run", "-m", self.model, *self.OPTIONS, "-n", n, *arguments)
        terminal.expect("/help lists the commands")
        return terminal

    def piped(self, text, *arguments, n=8):
        return tsq("run", "-m", self.model, *self.OPTIONS, "-n", n, "-cnv", *arguments, stdin=text)

    def saved(self, terminal):
        """The messages so far."""
        path = self.folder / "saved.json"
        terminal.say(f"/save {path}")
        terminal.expect("saved\n")
        return json.loads(path.read_text())["messages"]

    def test_a_conversation(self):
        terminal = self.terminal()
        terminal.say("Hello thére")
        terminal.say("And then?")
        messages = self.saved(terminal)
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        self.assertEqual([m["content"] for m in messages[::2]], ["Hello thére", "And then?"])
        self.assertIn(messages[1]["content"].splitlines()[0], terminal.shown)
        terminal.expect_prompt()
        terminal.send(CTRL_D)
        self.assertEqual(terminal.end(), SUCCESS)
        self.assertRegex(terminal.shown, r"(?m)^generated +16 tokens in ")

    def test_only_what_is_new_is_read(self):
        done = self.assert_succeeds(self.piped("Hello\n"))
        first = int(re.search(r"(?m)^prompt +(\d+) token", done.err)[1])
        text = "Hello\n" + "Go on\n" * 4
        done = self.assert_succeeds(self.piped(text))
        in_all = int(re.search(r"(?m)^prompt +(\d+) token", done.err)[1])
        # Each turn adds an answer, of which the sampled tokens are held, and the next message.
        self.assertLess(in_all, first + 4 * 60)

    def test_a_recurrent_model_goes_back_to_a_message(self):
        model = self.folder / "hybrid.tsq"
        self.assert_succeeds(tsq("convert", SOURCE.with_name("qwen35_two.gguf"), "-o", model, "--allow-random"))

        def tokens_read(text):
            done = tsq("run", "-m", model, *self.OPTIONS, "-n", 8, "-cnv", stdin=text)
            self.assert_succeeds(done)
            self.assertRegex(done.err, r"(?m)^state +38.9 kB of recurrent layers")
            return int(re.search(r"(?m)^prompt +(\d+) token", done.err)[1])

        message = "Once upon a time " * 20 + "\n"
        once = tokens_read(message)
        # An answer's beginning again; then the answer, the next message and its answer's beginning.
        self.assertLess(tokens_read(message + "/regen\n"), 1.25 * once)
        self.assertLess(tokens_read(message + "/regen\nGo on\n/regen\n"), 2 * once)

    def test_commands(self):
        terminal = self.terminal("-sys", "Be brief")
        terminal.say("/regen")
        terminal.expect("/regen: there is no message to answer yet")
        terminal.say("One")
        first = self.saved(terminal)
        terminal.say("/regen")
        again = self.saved(terminal)
        self.assertEqual(first[:2], [{"role": "system", "content": "Be brief"},
                                     {"role": "user", "content": "One"}])
        self.assertEqual(again[:2], first[:2])
        self.assertNotEqual(again[2]["content"], first[2]["content"])
        terminal.say("/clear")
        self.assertEqual(self.saved(terminal), first[:1])

        note = self.file("note.txt", b"A note")
        terminal.say(f"/read {note}")
        terminal.expect("6 bytes go before your next message")
        terminal.say("What is it?")
        self.assertEqual(self.saved(terminal)[1]["content"], "A note\nWhat is it?")

        old = self.file("old.json", json.dumps(first).encode())
        terminal.say(f"/load {old}")
        terminal.expect("loaded")
        self.assertEqual(self.saved(terminal), first)
        terminal.say("/help")
        terminal.expect("/exit .*\n/clear .*\n/regen .*\n/read +FILE .*\n/save +FILE .*\n/load +FILE ")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_commands_that_go_wrong_change_nothing(self):
        terminal = self.terminal()
        terminal.say("One")
        before = self.saved(terminal)
        other = self.file("other.txt", b"precious")
        broken = self.file("broken.json", b'{"messages": [{"role": "user"}]}')
        deep = self.file("deep.json", b'[{"role": "user", "content": "x", "y": ' + b"[" * 200)
        request = self.file("request.json", b'{"messages": [], "model": "x"}')
        for line, message in [(f"/load {deep}", "nested 202 levels deep, expected at most 100"),
                              (f"/save {request}", "holds something else than a conversation"),
                              ("/read -", "no such file"), ("/foo", "unknown command '/foo': /help lists them"),
                              ("/read", "/read needs a FILE"),
                              ("/clear all", "/clear takes nothing: found 'all'"),
                              ("/read absent.txt", "/read: absent.txt: no such file"),
                              ("/load absent.txt", "/load: absent.txt: no such file"),
                              (f"/load {other}", "no JSON, expected a saved conversation"),
                              (f"/load {broken}", "message 0: no \"content\", expected a string"),
                              (f"/save {other}", "holds something else than a conversation"),
                              (f"/save {self.folder}/absent/x", "cannot create a file in its folder")]:
            terminal.say(line)
            terminal.expect("tsq: [^\n]*" + re.escape(message))
        self.assertEqual(self.saved(terminal), before)
        self.assertEqual(other.read_bytes(), b"precious")
        terminal.say("/usr/bin/x is what?")  # no command
        self.assertEqual(self.saved(terminal)[2]["content"], "/usr/bin/x is what?")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_longer_messages(self):
        terminal = self.terminal()
        terminal.expect_prompt()
        terminal.send("one \\\r")
        terminal.expect(r"\.\.\. ")
        terminal.send("two\r")
        self.assertEqual(self.saved(terminal)[0]["content"], "one \ntwo")
        terminal.say("/clear")
        terminal.expect_prompt()
        terminal.send('"""three\r')
        terminal.expect(r"\.\.\. ")
        terminal.send('/four\r')
        terminal.expect(r"\.\.\. ")
        terminal.send('"""\r')
        self.assertEqual(self.saved(terminal)[0]["content"], "three\n/four\n")
        terminal.say("/clear")
        terminal.expect_prompt()
        terminal.send("five\rsix\rseven\r")  # pasted
        self.assertEqual(self.saved(terminal)[0]["content"], "five\nsix\nseven")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_one_turn_at_a_terminal(self):
        terminal = Terminal("run", "-m", self.model, *self.OPTIONS, "-n", 8, "-st")
        terminal.say("One")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_keys(self):
        terminal = self.terminal()
        terminal.expect_prompt()
        terminal.send("one two\tthree" + 2 * "\x1b[1;5D" + "\x1b[3~" + "\x1b[H" + "A" + "\x1b[F" +
                      "Z\x1b[5~\r")
        self.assertEqual(self.saved(terminal)[0]["content"], "Aone wo\tthreeZ")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        terminal = Terminal("run", "-m", self.model)
        before = termios.tcgetattr(terminal.descriptor)  # the model is not even open
        terminal.expect_prompt()
        terminal.send("x")
        terminal.expect("x")
        self.assertNotEqual(termios.tcgetattr(terminal.descriptor), before)
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.end()
        self.assertEqual(termios.tcgetattr(terminal.descriptor), before)

    def test_a_history_file_that_is_none_is_left_alone(self):
        notes = self.file("notes.txt", b"precious\n")
        terminal = Terminal("run", "-m", self.model, "-n", "4", "--history", notes)
        terminal.expect("notes.txt: holds no history that can be read, and is left as it is")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)
        self.assertEqual(notes.read_bytes(), b"precious\n")

    def test_history(self):
        history = self.folder / "history"
        terminal = self.terminal("--history", history)
        terminal.say("A first message")
        terminal.expect_prompt()
        terminal.send(UP + b"!\r")
        self.assertEqual(self.saved(terminal)[2]["content"], "A first message!")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)
        terminal = self.terminal("--history", history)
        terminal.expect_prompt()
        terminal.send(UP * 3 + b"?\r")  # behind /exit and /save
        self.assertEqual(self.saved(terminal)[0]["content"], "A first message!?")
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_an_interrupt_stops_the_answer(self):
        terminal = Terminal("run", "-m", self.model, "-c", "100000", "--ignore-eos", "-n", "-1")
        terminal.say("Hello")
        terminal.expect("(?s).{40}")  # the answer has begun
        terminal.send(CTRL_C)
        messages = self.saved(terminal)
        self.assertEqual(len(messages), 2)
        self.assertTrue(messages[1]["content"])
        terminal.say("Go on")
        terminal.expect("(?s).{40}")  # the answer has begun
        terminal.send(CTRL_C)
        terminal.expect_prompt()
        terminal.send(b"half a line")
        terminal.expect("half a line")
        terminal.send(CTRL_C)
        terminal.expect_prompt()
        terminal.send(CTRL_C)
        terminal.expect("Ctrl-C again, Ctrl-D or /exit ends the conversation")
        terminal.expect_prompt()
        terminal.send(CTRL_C)
        self.assertEqual(terminal.end(), INTERRUPTED)

    def test_pipes(self):
        done = self.assert_succeeds(self.piped("One\nTwo\n"))
        self.assertNotIn("> ", done.out + done.err)
        whole = self.assert_succeeds(self.piped("One\\\nTwo\n"))
        self.assertRegex(whole.err, r"(?m)^generated +8 tokens")
        self.assertEqual(self.piped("One\nTwo\n").out, done.out)
        done = self.piped("/foo\nOne\n")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assert_succeeds(self.piped(""))

    def test_one_turn(self):
        for done in [self.piped("One\nTwo\n", "-st"),
                     self.piped("", "-st", "-p", "One\nTwo"),
                     self.piped("", "--single-turn", "-f", self.file("x.txt", b"One\nTwo\n"))]:
            self.assert_succeeds(done)
            self.assertRegex(done.err, r"(?m)^generated +8 tokens")
            self.assertEqual(done.out, self.piped('"""One\nTwo"""\n').out)

    def test_what_only_a_conversation_has_asks_for_one(self):
        for options in [["-sys", "x"], ["--think", "on"], ["--think-budget", "1"], ["-st"]]:
            done = self.assert_succeeds(tsq("run", "-m", self.model, *self.OPTIONS, "-n", "8",
                                            "-p", "One", *options))
            self.assertEqual(done.out, self.piped("One\n", *options).out)
            self.assert_refuses(USAGE, f"{options[0]} needs a conversation, -no-cnv forbids it",
                                "run", "-m", self.model, "-no-cnv", "-p", "x", *options)
        plain = ["run", "-m", self.model, *self.OPTIONS, "-n", "8", "-p", "x"]
        done = self.assert_succeeds(tsq(*plain, "-no-cnv"))
        self.assertNotIn("note ", done.err)
        with_environment = tsq(*plain, env={**os.environ, "TSQ_SYSTEM_PROMPT": "x"})
        self.assertEqual(done.out, with_environment.out)
        self.assertIn("note       the model goes on from the text: -cnv talks", with_environment.err)
        self.assert_refuses(USAGE, "--think", "run", "-m", self.model, "-cnv", "--think", "maybe")

    def test_an_empty_message(self):
        for options in [["-st"], ["-p", ""], ["-p", " \n"]]:
            done = self.piped("", *options)
            self.assertEqual((done.code, done.out), (USAGE, ""))
            self.assertIn("tsq: run: the message is empty", done.err)

    def test_thoughts(self):
        plain = self.assert_succeeds(self.piped("One\n")).out
        self.assertNotIn("think", plain)
        done = self.assert_succeeds(self.piped("One\n", "--think", "on", "--think-budget", "3",
                                               n=40))
        self.assertRegex(done.out, r"(?s)\A<think>\n.+\n</think>\n\n.")
        none = self.assert_succeeds(self.piped("One\n", "--think", "on", "--think-budget", "0",
                                               n=40))
        self.assertTrue(none.out.startswith("<think>\n\n</think>\n\n"))
        endless = self.assert_succeeds(self.piped("One\n", "--think", "on", n=40))
        self.assertNotIn("</think>", endless.out)
        self.assertEqual(self.piped("One\n", "--think", "off").out, plain)

        path = self.folder / "thoughts.json"
        self.assert_succeeds(self.piped(f"One\n/save {path}\n", "--think", "on", "--think-budget",
                                        "3", n=40))
        answer = json.loads(path.read_text())["messages"][1]
        self.assertEqual(f"<think>\n{answer['reasoning_content']}\n</think>\n\n{answer['content']}",
                         done.out.rstrip("\n"))

    def test_templates(self):
        refusing = self.file("refusing.jinja", b"{{ raise_exception('Only cats may speak') }}")
        done = self.piped("One\n", "--chat-template-file", refusing)
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertRegex(done.err, "tsq: chat template: .*Only cats may speak")
        unclosed = self.file("unclosed.jinja", b"{% for %}")
        done = self.piped("One\n", "--chat-template-file", unclosed)
        self.assertEqual((done.code, done.out), (DAMAGED, ""))
        self.assertIn(f"tsq: {unclosed}: line 1: ", done.err)
        broken = self.file("broken.jinja", b"{{ 1 // 0 }}")
        done = self.assert_succeeds(self.piped("One\nTwo\n", "--chat-template-file", broken))
        self.assertEqual(len(re.findall("tsq: warning: .*: ChatML is used instead", done.err)), 1)
        self.assertNotEqual(done.out, self.piped("One\nTwo\n").out)
        missing = self.piped("One\n", "--chat-template-file", "absent.jinja")
        self.assertEqual((missing.code, missing.out), (FAILURE, ""))

    def test_a_context_that_is_full(self):
        done = self.assert_succeeds(self.piped("One\n", "-c", "24", n=-1))
        self.assertIn("the context is full at 24 tokens: the answer stops here", done.err)
        done = self.piped("One\n" + "x" * 100 + "\n", "-c", "40")
        self.assertEqual(done.code, FAILURE)
        self.assertRegex(done.err, r"tsq: prompt: \d+ tokens do not fit.*/clear begins anew")
        terminal = self.terminal("-c", "40")
        terminal.say("x" * 100)
        terminal.expect("/clear begins anew")
        self.assertEqual(self.saved(terminal), [])
        terminal.say("/exit")
        self.assertEqual(terminal.end(), SUCCESS)

    def test_a_stop_string_is_never_shown(self):
        whole = self.piped("One\n", n=40).out
        stop = re.search("[ -~]{3}", whole[5:])[0]
        path = self.folder / "stopped.json"
        done = self.assert_succeeds(self.piped(f"One\n/save {path}\n", "--stop", stop, n=40))
        self.assertEqual(done.out.rstrip("\n"), whole[: whole.index(stop)].rstrip("\n"))
        self.assertEqual(json.loads(path.read_text())["messages"][1]["content"],
                         whole[: whole.index(stop)])
