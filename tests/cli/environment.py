"""TSQ_* variables."""

import os
import re

from cli.support import COMMANDS, CliTest
from tsq_tool import SUCCESS, USAGE, tsq


class Environment(CliTest):
    def with_variables(self, variables, *arguments, **options):
        return tsq(*arguments, env={**os.environ, **variables}, **options)

    def options_of(self, command):
        """(first long name, variable) of every option that the help shows."""
        text = self.assert_succeeds(tsq(command, "--help")).out
        found = []
        for entry in re.split(r"\n  (?=-)", text)[1:]:
            name = re.match(r"(?:-\w,)?--([a-z0-9-]+)", entry)[1]
            variable = re.search(r"\((TSQ_\w+)\)", entry)
            found.append((name, variable and variable[1]))
        return found

    def test_every_option_has_one_by_rule(self):
        for command in COMMANDS:
            options = self.options_of(command)
            self.assertIn(("log-level", "TSQ_LOG_LEVEL"), options)
            for name, variable in options:
                with self.subTest(command=command, option=name):
                    expected = None if name == "help" else "TSQ_" + name.upper().replace("-", "_")
                    self.assertEqual(variable, expected)
                    self.assertNotEqual(variable, "TSQ_ISA")  # the kernels' own

    def test_values_and_flags(self):
        variables = {"TSQ_MODEL": str(self.model), "TSQ_PREDICT": "3", "TSQ_SEED": "5",
                     "TSQ_TEMP": "0.5", "TSQ_THREADS": "1", "TSQ_CTX_SIZE": "256",
                     "TSQ_ACTIVATIONS": "f32", "TSQ_PROMPT": "Once", "TSQ_DISPLAY_PROMPT": "1"}
        done = self.assert_succeeds(self.with_variables(variables, "run"))
        for line in ["context    256 tokens", "1 thread, f32 activations", "seed       5\n",
                     "generated  3 tokens"]:
            self.assertIn(line, done.err)
        expected = tsq("run", "-m", self.model, "-p", "Once", "-n", "3", "-s", "5", "--temp=0.5",
                       "-t1", "-c", "256", "--activations=f32", "--display-prompt")
        self.assertEqual(done.out, expected.out)

    def test_the_command_line_wins(self):
        variables = {"TSQ_MODEL": "absent.tsq", "TSQ_PREDICT": "many", "TSQ_FILE": "absent.txt",
                     "TSQ_NO_TIMINGS": "1", "TSQ_SEED": "3"}
        done = self.assert_succeeds(self.with_variables(
            variables, "run", f"--model={self.model}", "-n2", "-p", "x", "-s=4",
            "--no-timings=false"))
        self.assertIn("generated  2 tokens", done.err)
        self.assertIn("seed       4\n", done.err)

    def test_variables_of_other_commands_and_empty_ones_do_not_count(self):
        self.assert_succeeds(self.with_variables({"TSQ_TEMP": "hot"}, "inspect", self.model))
        self.assert_succeeds(self.with_variables({"TSQ_TEMP": "hot"}, "run", "--help"))
        self.assert_succeeds(self.with_variables({"TSQ_TEMP": "hot"}, "--version"))
        self.assert_succeeds(self.with_variables({"TSQ_TEMP": "", "TSQ_LOG_LEVEL": ""}, "run", "-m",
                                                 self.model, "-p", "x", "-n", "1"))

    def test_one_value_of_a_repeatable_option(self):
        done = self.with_variables({"TSQ_ASSUME_LAYOUT": "i2s-64"}, "convert", "absent", "-o", "x")
        self.assertIn("absent", done.err)
        self.assert_refuses(USAGE, r"TSQ_ASSUME_LAYOUT='i2s': .*i2s-64", "convert", "absent", "-o",
                            "x", env={**os.environ, "TSQ_ASSUME_LAYOUT": "i2s"})

    def test_a_required_option(self):
        target = self.folder / "a.tsq"
        variables = {"TSQ_OUTPUT": str(target), "TSQ_NO_PROBE": "yes"}
        self.assert_succeeds(self.with_variables(variables, "convert", self.model))
        self.assertTrue(target.exists())

    def test_flags(self):
        for on in ["1", "true", "YES", "on"]:
            done = self.with_variables({"TSQ_JSON": on}, "inspect", self.model)
            self.assertTrue(self.assert_succeeds(done).out.startswith("{"), on)
        for off in ["0", "false", "No", "off", ""]:
            done = self.with_variables({"TSQ_JSON": off}, "inspect", self.model)
            self.assertFalse(self.assert_succeeds(done).out.startswith("{"), off)

    def test_bad_values_name_the_variable(self):
        for variable, value, message in [
            ("TSQ_PREDICT", "many", "--predict"), ("TSQ_PREDICT", "-7", "not in range"),
            ("TSQ_SEED", "-2", "expected 0 to"), ("TSQ_TEMP", "hot", "--temp"),
            ("TSQ_ACTIVATIONS", "f16", "int8,f32"), ("TSQ_LOG_LEVEL", "loud", "debug"),
            ("TSQ_LOG_JSON", "maybe", "expected 1"), ("TSQ_IGNORE_EOS", "2", "expected 1"),
        ]:
            with self.subTest(variable, value=value):
                self.assert_refuses(USAGE, f"tsq: {variable}='{value}': .*{message}", "run", "-m",
                                    self.model, "-p", "x", env={**os.environ, variable: value})
        # What only the library can tell names it behind.
        for variable, value, message in [
            ("TSQ_TEMP", "-1", "temperature is -1"), ("TSQ_TOP_P", "0", "top-p is 0"),
            ("TSQ_THREADS", "-1", "-1 threads"), ("TSQ_CTX_SIZE", "-1", "-1 tokens"),
        ]:
            with self.subTest(variable, value=value):
                self.assert_refuses(USAGE, rf"{message}.* \(the environment gives "
                                           rf"{variable}='{value}'\)", "run", "-m", self.model,
                                    "-p", "x", env={**os.environ, variable: value})

    def test_two_that_exclude_each_other(self):
        both = {"TSQ_PROMPT": "x", "TSQ_FILE": "y"}
        self.assert_refuses(USAGE, "TSQ_PROMPT and TSQ_FILE: the environment sets both", "run", "-m",
                            self.model, env={**os.environ, **both})
        done = self.with_variables(both, "run", "-m", self.model, "-p", "z", "-n", "0")
        self.assertEqual(done.code, SUCCESS, done.err)

    def test_arguments_behind_a_double_dash(self):
        done = self.with_variables({"TSQ_JSON": "1"}, "inspect", "--", self.model)
        self.assertTrue(self.assert_succeeds(done).out.startswith("{"))
