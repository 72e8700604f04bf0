"""What the tool does with files and paths that nobody should give it: the tables of hostile/.

    hostile_test.py TSQ MODELS [unittest arguments]

TSQ is the program, MODELS the folder tests/data/models. A row says what is wrong, the exit code and the
message.
"""

import sys
import unittest

from hostile.gguf_tables import *
from hostile.hybrid_tables import *
from hostile.memory_tables import *
from hostile.path_tables import *
from hostile.rotation_tables import *
from hostile.tsq_tables import *
from hostile.type_tables import *

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
