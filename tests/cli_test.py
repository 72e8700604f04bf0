"""The tool from outside: what it prints, where, and its exit code. The tests lie in cli/.

    cli_test.py TSQ MODELS [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models.
"""

import sys
import unittest

from cli.chat import *
from cli.completion import *
from cli.convert import *
from cli.environment import *
from cli.inspect import *
from cli.log import *
from cli.perplexity import *
from cli.run import *
from cli.usage import *
from cli.verify import *
from cli.wrong_files import *

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
