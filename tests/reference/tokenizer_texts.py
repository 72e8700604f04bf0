"""The texts of the tokenizer goldens; the vocabulary is trained on them too.

Characters are from Unicode 13 or older, so that libraries with different tables agree on their classes.
"""

ZWJ, VS16 = "\u200d", "\ufe0f"

TEXTS = [
    # English
    "",
    "a",
    " ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "  leading and trailing spaces  ",
    "\"Curiouser and curiouser!\" cried Alice (she was so much surprised, that she forgot...).",
    "one-two--three---four\u2014five\u2013six \u2018quoted\u2019 \u201cdouble\u201d \u2026",
    "ALL CAPS, camelCase, PascalCase, snake_case, kebab-case, SCREAMING_SNAKE",
    "e.g. i.e. etc. U.S.A. p.m. Dr. No. 5",
    # contractions, any case
    "I'm you're he's she'd we'll they've can't it's",
    "I'M YOU'RE HE'S SHE'D WE'LL THEY'VE CAN'T IT'S",
    "'s't're've'm'll'd",
    "'S'T'RE'VE'M'LL'D 'Re 'Ve 'lL",
    "rock 'n' roll o'clock 'tis y'all'd've dogs' 'sword 'told",
    "it\u2019s don\u2019t",
    "the long s: it'\u017f and \u017fo",
    # digits
    "0",
    "1234567890",
    "3.14159 1,000,000 12:34:56 2024-01-31 +49 30 123456",
    "abc123def456 7up x86_64 v1.2.3-rc4 0xDEADBEEF 1e-10",
    " 1 22 333 4444 55555",
    "\u0661\u0662\u0663 \u0967\u0968\u0969 \uff11\uff12\uff13 \u2167 \u00bd \u2460 x\u00b2",
    "year2024\n2025year",
    # spaces
    "  ",
    "   a",
    "a   b",
    "a    b     c      d",
    "a  1  2   3",
    "end with spaces   ",
    "a  !  ?   .",
    "no\u00a0break\u2003em\u2009thin\u3000ideographic\u200bzero\u180emongolian\u0085nel\u2028line",
    "".join(f"a{c}b{c}{c}b {c}b{c} b\n{c}" for c in "\u00a0\u1680\u180e\u0085\u2003\u200b\u2028\u3000"),
    "a" + " " * 40 + "b",
    # line ends and tabs
    "\n",
    "\r",
    "\r\n",
    "\n\n\n",
    "a\nb\r\nc\rd",
    "line\n\nline\n\n\nline\r\n\r\nline",
    "  \n  indented\n    more\n\n  less",
    "trailing \n spaces  \n\n   \nand lines\n",
    "\t",
    "\ttab\t\ttabs \t mixed\t ",
    "a\t\n\tb \n\n\t c",
    "sentence.\nNext!\n\nLast?\r\n",
    "\v\f mixed \v\n\f",
    "....\n\n...\r\n---\n",
    # code
    "def f(x, y=0):\n    return x ** 2 + y  # comment\n\n\nprint(f(3))\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\r\n",
    "#include <vector>\nstd::vector<std::string> v{\"a\", \"b\"};\n",
    "SELECT * FROM t WHERE id >= 10 AND name <> 'x''y';",
    "{\"key\": [1, 2.5, null, true], \"s\": \"\\u00e9\\n\"}",
    "<a href=\"https://example.org/?q=1&r=%20#top\">link</a>",
    "$ grep -rn 'foo.*bar' ./src | sort -u > /tmp/out.txt 2>&1",
    "\\frac{a}{b} \\times 10^{-3} \\leq \\infty",
    # other scripts
    "\u00c4pfel, \u00d6l und \u00dcbung: Stra\u00dfe gr\u00f6\u00dfer",
    "\u00e9t\u00e9 na\u00efve \u0153uvre gar\u00e7on \u00e0 l'\u00e9cole",
    "e\u0301te\u0301 nai\u0308ve a\u030a \u0041\u030a\u0301",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u042d\u0442\u043e \u0442\u0435\u0441\u0442.",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2024\u5e741\u670831\u65e5\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u3001\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u30fc\u3068\u3072\u3089\u304c\u306a",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 \u1112\u1161\u11ab",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a \u0e1c\u0e21\u0e0a\u0e37\u0e48\u0e2d\u0e2d\u0e40\u0e25\u0e47\u0e01\u0e0b\u0e4c",
    "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0628\u0650\u0627\u0644\u0652\u0639\u064e\u0627\u0644\u064e\u0645\u0650",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "Z\u0351\u036b\u0343\u036aa\u0334\u0335l\u031b\u0321g\u0322\u0489o\u0360",
    "\u0301start with a mark \u0301 alone",
    # emoji and symbols
    "\U0001f600 \U0001f680\U0001f680 \U0001f44d\U0001f3fd!",
    f"\U0001f468{ZWJ}\U0001f469{ZWJ}\U0001f467{ZWJ}\U0001f466 family \u2764{VS16}{ZWJ}\U0001f525",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 flags \U0001f3f4\U000e0067\U000e0062\U000e007f",
    "\u20ac100 \u00a35 \u00a5\u00a9\u00ae\u2122 \u2260\u2264\u221a\u2211 \u2192\u21d2 \u2588\u2591",
    "\U0001d4d0\U0001d4d1\U0001d7d9 \U00020bb7\u91ce\u5bb6 \U0010fffd \ue000",
    "\ufeffbyte order mark, \ufffd replacement, soft\u00adhyphen, \u202ertl\u202c",
    # controls
    "a\x00b\x00\x00c",
    "\x00",
    "\x01\x02\x1b[31mred\x1b[0m\x7f\x1c\x1d\x1e\x1f",
    # special tokens in text
    "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|> c",
    "<think>\n\n</think>\n\nAnswer.",
    " <think> x</think>y<think><think>",
    "<|im_start|<|im_end|> <|im_end <think",
    "  <|im_end|>  it's  <|im_end|>\n\n<|im_end|>",
    # long
    "x" * 700,
    "ab" * 300 + " " + "\u4e16\u754c" * 100,
    "=" * 200 + "\n" + "-" * 77 + "\n" * 33 + "." * 65,
]

# Bytes that are not UTF-8. Every byte outside a well-formed sequence is a piece of its own and
# becomes its byte token; the well-formed text before and after it is split as a text of its own.
INVALID = [
    b"\xff",
    b"abc\x80def",
    b"\xc3",
    b"tail \xe2\x82",
    b"\xe2\x82 \xe2\x82\xac",
    b"over\xc0\x80long",
    b"surrogate \xed\xa0\x80\xed\xb0\x80.",
    b"beyond \xf4\x90\x80\x80 it's",
    b"a  \xfe  b\xf0\x9f\x98\x80\xf0\x9f\x98",
    "\u4e16".encode() + b"\xe4\xb8" + "\u754c 12".encode(),
    b"\xf8\x88\x80\x80\x80<think>\xfc",
]


def training_texts():
    """The texts but for the long ones."""
    return [t for t in TEXTS if t and len(t) < 300]
