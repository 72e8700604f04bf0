// Text to tokens and back: goldens of Hugging Face tokenizers, special tokens, bytes that are not
// UTF-8, long runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/make.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer_files.h"

namespace tsq {
namespace {

using format::PreTokenizer;
using format::TokenType;
using format::Vocabulary;
using Tokens = std::vector<Token>;

struct Named {
  PreTokenizer kind;
  const char* name;  // in the golden files
};
constexpr Named kPreTokenizers[] = {
    {PreTokenizer::gpt2, "gpt-2"},    {PreTokenizer::smollm, "smollm"},
    {PreTokenizer::qwen2, "qwen2"},   {PreTokenizer::llama_bpe, "llama-bpe"},
    {PreTokenizer::qwen35, "qwen35"}, {PreTokenizer::deepseek_v3, "deepseek-v3"}};

constexpr EncodeOptions kParseSpecial = {.parse_special = true};

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string random_bytes(std::mt19937& random, std::size_t n, unsigned kinds = 256) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() % kinds);
  return bytes;
}

class GoldenTest : public testing::TestWithParam<Named> {};

TEST_P(GoldenTest, TokensOfHuggingFace) {
  const OpenedTokenizer opened(trained_vocabulary(GetParam().kind));
  const auto entries = read_json("golden.json")["entries"];
  ASSERT_GE(entries.size(), 100u);
  for (const auto& entry : entries) {
    SCOPED_TRACE(entry.dump());
    const std::string text =
        entry.contains("hex") ? from_hex(entry["hex"]) : entry["text"].get<std::string>();
    const auto& golden = entry[GetParam().name];
    const auto ids = golden["ids"].get<Tokens>();
    EXPECT_EQ(encode(opened.tokenizer, text), ids);
    EXPECT_EQ(opened.tokenizer.decode(ids), text);
    const auto special = golden.contains("special") ? golden["special"].get<Tokens>() : ids;
    EXPECT_EQ(encode(opened.tokenizer, text, kParseSpecial), special);
  }
}

TEST_P(GoldenTest, EveryUnicodeBlock) {
  Vocabulary v = trained_vocabulary(GetParam().kind);
  const OpenedTokenizer opened(v);
  v.nfc = true;
  const OpenedTokenizer normalising(v);
  const std::string name = GetParam().name;
  const auto entries = read_json("blocks.json")["entries"];
  ASSERT_GE(entries.size(), 300u);
  for (const auto& entry : entries) {
    SCOPED_TRACE(entry["block"]);
    const auto text = entry["text"].get<std::string>();
    const auto ids = entry[entry.contains(name) ? name : "ids"].get<Tokens>();
    EXPECT_EQ(encode(opened.tokenizer, text), ids);
    EXPECT_EQ(opened.tokenizer.decode(ids), text);
    if (entry.contains("nfc") && entry["nfc"].contains(name)) {
      EXPECT_EQ(encode(normalising.tokenizer, text), entry["nfc"][name].get<Tokens>());
    }
  }
}

TEST_P(GoldenTest, TokensAfterNfc) {
  Vocabulary v = trained_vocabulary(GetParam().kind);
  v.nfc = true;
  const OpenedTokenizer opened(v);
  const auto entries = read_json("golden.json")["entries"];
  int changed = 0;
  for (const auto& entry : entries) {
    if (!entry.contains("text")) continue;
    SCOPED_TRACE(entry.dump());
    const auto& golden = entry[GetParam().name];
    const bool has_nfc = golden.contains("nfc");
    changed += has_nfc;
    EXPECT_EQ(encode(opened.tokenizer, entry["text"].get<std::string>()),
              golden[has_nfc ? "nfc" : "ids"].get<Tokens>());
  }
  EXPECT_EQ(changed, 3);
}

TEST_P(GoldenTest, PiecesOfHuggingFace) {
  const auto entries = read_json("pieces.json")["entries"];
  ASSERT_GE(entries.size(), 10u);
  for (const bool jit : {true, false}) {
    const auto splitter = Splitter::create(GetParam().kind, jit);
    ASSERT_TRUE(splitter) << splitter.error().message();
    for (const auto& entry : entries) {
      SCOPED_TRACE(entry.dump());
      const auto text = entry["text"].get<std::string>();
      std::vector<std::string_view> pieces;
      ASSERT_TRUE(splitter->split(text, pieces));
      EXPECT_EQ(std::vector<std::string>(pieces.begin(), pieces.end()),
                entry[GetParam().name].get<std::vector<std::string>>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPreTokenizer, GoldenTest, testing::ValuesIn(kPreTokenizers),
                         [](const auto& test) { return std::to_string(test.index); });

// The definition: of all neighbours, merge the pair of the lowest rank, the leftmost of equals.
Tokens merged_by_definition(const format::TokenizerView& view, std::string_view piece) {
  Tokens tokens;
  for (const char& byte : piece)
    tokens.push_back(static_cast<Token>(view.find({&byte, 1}).value()));
  for (;;) {
    std::size_t best = tokens.size();
    format::TokenizerView::Merged best_merge{format::kNoToken, 0};
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto merge = view.merge(static_cast<std::uint32_t>(tokens[i]),
                                    static_cast<std::uint32_t>(tokens[i + 1]));
      if (merge && merge->rank < best_merge.rank) {
        best = i;
        best_merge = *merge;
      }
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = static_cast<Token>(best_merge.result);
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Three letters and every token of up to four of them: most neighbours merge, in a random order.
Vocabulary dense_vocabulary(std::mt19937& random) {
  Vocabulary v = byte_vocabulary();
  std::vector<std::uint32_t> words = {'a', 'b', 'c'};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (v.tokens[words[i]].size() == 4) break;
    for (const char letter : {'a', 'b', 'c'}) {
      words.push_back(static_cast<std::uint32_t>(v.tokens.size()));
      v.tokens.push_back(v.tokens[words[i]] + letter);
      v.types.push_back(TokenType::normal);
    }
  }
  for (const std::uint32_t left : words) {
    for (const std::uint32_t right : words) {
      const std::string text = v.tokens[left] + v.tokens[right];
      const auto result = std::ranges::find(v.tokens, text);
      if (result == v.tokens.end()) continue;
      v.merges.push_back({left, right, static_cast<std::uint32_t>(result - v.tokens.begin())});
    }
  }
  std::ranges::shuffle(v.merges, random);
  return v;
}

TEST(Bpe, MergesByDefinition) {
  std::mt19937 random(1);
  for (int vocabulary = 0; vocabulary < 20; ++vocabulary) {
    const OpenedTokenizer opened(dense_vocabulary(random));
    for (int i = 0; i < 100; ++i) {
      std::string piece(random() % 40, '\0');
      for (char& letter : piece) letter = static_cast<char>('a' + random() % 3);
      EXPECT_EQ(encode(opened.tokenizer, piece), merged_by_definition(opened.view, piece)) << piece;
    }
  }
}

TEST(Nfc, AsPythonAndHuggingFaceHaveIt) {
  const auto entries = read_json("nfc.json")["entries"];
  ASSERT_GE(entries.size(), 200u);
  for (const auto& entry : entries) {
    const auto text = entry[0].get<std::string>(), expected = entry[1].get<std::string>();
    EXPECT_EQ(to_nfc(text), expected) << entry;
    EXPECT_EQ(to_nfc(expected), expected) << entry;
    EXPECT_TRUE(may_need_nfc(text) || text == expected) << entry;
  }
  EXPECT_FALSE(may_need_nfc("\u00e9 \u02ff"));
  EXPECT_EQ(to_nfc(""), "");
}

// Texts on both sides of a special token, and of a byte that is not UTF-8, do not combine.
TEST(Nfc, StopsWhereTheTextDoes) {
  Vocabulary v = byte_vocabulary({{"<t>", TokenType::user_defined}});
  v.nfc = true;
  const OpenedTokenizer opened(v);
  EXPECT_EQ(encode(opened.tokenizer, "e\u0301"), (Tokens{0xc3, 0xa9}));
  EXPECT_EQ(encode(opened.tokenizer, "e<t>\u0301"), (Tokens{'e', 256, 0xcc, 0x81}));
  EXPECT_EQ(encode(opened.tokenizer, "e\xff\u0301"), (Tokens{'e', 0xff, 0xcc, 0x81}));
}

TEST(Tokenizer, WholePieces) {
  Vocabulary v = byte_vocabulary({{"ab", TokenType::normal},
                                  {"bc", TokenType::normal},
                                  {"abc", TokenType::normal},
                                  {"abcd", TokenType::control}});
  v.merges = {{'b', 'c', 257}, {'a', 'b', 256}};
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "abc"), (Tokens{'a', 257}));
  v.whole_pieces = true;
  const OpenedTokenizer opened(v);
  EXPECT_EQ(encode(opened.tokenizer, "abc"), Tokens{258});
  EXPECT_EQ(encode(opened.tokenizer, "abc abc"), (Tokens{258, ' ', 'a', 257}));
  EXPECT_EQ(encode(opened.tokenizer, "abcd"), (Tokens{'a', 257, 'd'}));  // control: stays text
}

TEST(Tokenizer, AnyBytesComeBack) {
  std::mt19937 random(2);
  for (const auto& [kind, name] : kPreTokenizers) {
    const OpenedTokenizer opened(trained_vocabulary(kind));
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_bytes(random, random() % 100);
      for (const bool parse_special : {false, true}) {
        const auto tokens = encode(opened.tokenizer, text, {.parse_special = parse_special});
        EXPECT_EQ(opened.tokenizer.decode(tokens), text) << name;
      }
    }
  }
}

TEST(Tokenizer, BytesThatAreNotUtf8StayByThemselves) {
  Vocabulary v = byte_vocabulary();
  v.tokens.push_back("\xff\xff");  // would merge if the two were one piece
  v.tokens.push_back("\xc3\xa9");
  v.types.resize(v.tokens.size(), TokenType::normal);
  v.merges = {{0xff, 0xff, 256}, {0xc3, 0xa9, 257}};
  const OpenedTokenizer opened(v);
  EXPECT_EQ(encode(opened.tokenizer, "\xff\xff"), (Tokens{0xff, 0xff}));
  EXPECT_EQ(encode(opened.tokenizer, "\xc3\xa9\xc3"), (Tokens{257, 0xc3}));
  EXPECT_EQ(encode(opened.tokenizer, "\xe2\x82"), (Tokens{0xe2, 0x82}));  // a cut U+20AC
}

TEST(Tokenizer, NulIsAByte) {
  const OpenedTokenizer opened(byte_vocabulary({{std::string("<\0>", 3), TokenType::control}}));
  const std::string_view text("a\0b\0\0<\0>", 8);
  EXPECT_EQ(encode(opened.tokenizer, text), (Tokens{'a', 0, 'b', 0, 0, '<', 0, '>'}));
  EXPECT_EQ(encode(opened.tokenizer, text, kParseSpecial), (Tokens{'a', 0, 'b', 0, 0, 256}));
  EXPECT_EQ(opened.tokenizer.decode(Tokens{'a', 0, 256}), std::string_view("a\0<\0>", 5));
}

TEST(Tokenizer, SpecialTokensLeftmostThenLongest) {
  const OpenedTokenizer opened(byte_vocabulary({{"<a>", TokenType::user_defined},     // 256
                                                {"<a><b>", TokenType::user_defined},  // 257
                                                {"b><c><d>", TokenType::user_defined},
                                                {"<a><b", TokenType::control},  // 259
                                                {"<a><b><c>", TokenType::control},
                                                {"\xff!", TokenType::control}}));  // 261
  const auto plain = [&](std::string_view text) { return encode(opened.tokenizer, text); };
  const auto parsed = [&](std::string_view text) {
    return encode(opened.tokenizer, text, kParseSpecial);
  };
  EXPECT_EQ(plain("<a>"), Tokens{256});
  EXPECT_EQ(plain("<<a>>"), (Tokens{'<', 256, '>'}));
  EXPECT_EQ(plain("<a><a><b>"), (Tokens{256, 257}));
  EXPECT_EQ(plain("<a><b"), (Tokens{256, '<', 'b'}));  // 259 only when control tokens are parsed
  EXPECT_EQ(parsed("<a><b"), Tokens{259});
  EXPECT_EQ(parsed("<a><b>"), Tokens{257});
  EXPECT_EQ(parsed("<a><b><c>"), Tokens{260});
  EXPECT_EQ(plain("<a><b><c>"), (Tokens{257, '<', 'c', '>'}));
  EXPECT_EQ(plain("<a><b><c><d>"),
            (Tokens{257, '<', 'c', '>', '<', 'd', '>'}));  // 258 starts later
  EXPECT_EQ(plain("b><c><d>"), Tokens{258});
  EXPECT_EQ(plain("<a"), (Tokens{'<', 'a'}));
  EXPECT_EQ(plain("\xff!"), (Tokens{0xff, '!'}));
  EXPECT_EQ(parsed("\xff!"), Tokens{261});
}

TEST(Tokenizer, AGuardKeepsAControlTokenText) {
  Vocabulary v = byte_vocabulary({{"end>", TokenType::control}, {"en", TokenType::normal}});
  v.merges = {{'e', 'n', 257}};
  const OpenedTokenizer opened(v);
  const std::string mark = "\xef\xb7\x90";  // U+FDD0
  const EncodeOptions guarded = {.parse_special = true, .guard = mark};
  // The mark leaves no trace: what it parted merges again.
  EXPECT_EQ(encode(opened.tokenizer, "<e" + mark + "nd>end>", guarded),
            (Tokens{'<', 257, 'd', '>', 256}));
  EXPECT_EQ(encode(opened.tokenizer, mark + "a" + mark + mark + "b" + mark, guarded),
            (Tokens{'a', 'b'}));
  EXPECT_EQ(encode(opened.tokenizer, mark, guarded), Tokens{});
  EXPECT_EQ(encode(opened.tokenizer, mark, kParseSpecial), (Tokens{0xef, 0xb7, 0x90}));
}

TEST(Tokenizer, ManySpecialTokensAndNoneOfThemThere) {
  std::vector<std::pair<std::string, TokenType>> special;
  for (int i = 0; i < 2000; ++i)
    special.push_back({"<|reserved_" + std::to_string(i) + "|>", TokenType::user_defined});
  const OpenedTokenizer opened(byte_vocabulary(special));
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "<|reserved_x";
  EXPECT_EQ(encode(opened.tokenizer, text).size(), text.size());
  EXPECT_EQ(encode(opened.tokenizer, "<|reserved_1999|><|reserved_19|>"), (Tokens{2255, 275}));
}

TEST(Tokenizer, TokensAroundTheText) {
  Vocabulary v = byte_vocabulary({{"<s>", TokenType::control}, {"</s>", TokenType::control}});
  v.bos = 256;
  v.eos = 257;
  for (const bool bos : {false, true}) {
    for (const bool eos : {false, true}) {
      v.add_bos = bos;
      v.add_eos = eos;
      const OpenedTokenizer opened(v);
      Tokens expected = {'x'};
      if (bos) expected.insert(expected.begin(), 256);
      if (eos) expected.push_back(257);
      EXPECT_EQ(encode(opened.tokenizer, "x"), expected);
      EXPECT_EQ(encode(opened.tokenizer, "x", {.add_special = false}), Tokens{'x'});
      EXPECT_EQ(encode(opened.tokenizer, "").size(), std::size_t{bos} + std::size_t{eos});
      EXPECT_EQ(opened.tokenizer.adds_bos(), bos);
    }
  }
}

TEST(Tokenizer, AByteWithoutAToken) {
  Vocabulary v = byte_vocabulary();
  v.tokens[7] = "seven";
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "a\x07\x07z\x07"), (Tokens{'a', 'z'}));
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "\x07"), Tokens{});
  v.unknown = '?';
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "ab\x07"), (Tokens{'a', 'b', '?'}));
  v.types['?'] = TokenType::control;
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "ab\x07"), (Tokens{'a', 'b'}));
}

TEST(Tokenizer, WhatATokenIs) {
  Vocabulary v = byte_vocabulary({{"<s>", TokenType::control},
                                  {"</s>", TokenType::control},
                                  {"<think>", TokenType::user_defined},
                                  {"<|eot|>", TokenType::control},
                                  {"", TokenType::unused}});
  v.bos = 256;
  v.eos = 257;
  v.end_tokens = {259, 257};
  Tokenizer moved = OpenedTokenizer(byte_vocabulary()).tokenizer;
  OpenedTokenizer opened(v);
  moved = std::move(opened.tokenizer);
  const Tokenizer t = std::move(moved);
  EXPECT_EQ(t.vocab_size(), 261);
  EXPECT_EQ(t.bos(), 256);
  EXPECT_EQ(t.eos(), 257);
  EXPECT_FALSE(t.adds_bos());
  EXPECT_TRUE(std::ranges::equal(t.end_tokens(), Tokens{257, 259}));
  for (Token token = -1; token <= 261; ++token) {
    EXPECT_EQ(t.is_end(token), token == 257 || token == 259) << token;
    EXPECT_EQ(t.is_control(token), token == 256 || token == 257 || token == 259) << token;
  }
  EXPECT_EQ(t.bytes(0xc3), "\xc3");
  EXPECT_EQ(t.bytes(258), "<think>");
  EXPECT_EQ(t.bytes(260), "");
  EXPECT_EQ(t.bytes(261), "");
  EXPECT_EQ(t.bytes(-1), "");
  EXPECT_EQ(t.find("<think>"), 258);
  EXPECT_EQ(t.find("<s>"), 256);
  EXPECT_EQ(t.find("<think"), std::nullopt);
  EXPECT_EQ(t.find(""), std::nullopt);
  const Tokens all = {256, 'h', 0xc3, 0xa9, 258, 9999, -5, 257};
  EXPECT_EQ(t.decode(all), "<s>h\xc3\xa9<think></s>");
  EXPECT_EQ(t.decode(all, {.skip_control = true}), "h\xc3\xa9<think>");

  const OpenedTokenizer bare(byte_vocabulary());
  EXPECT_EQ(bare.tokenizer.bos(), std::nullopt);
  EXPECT_EQ(bare.tokenizer.eos(), std::nullopt);
  EXPECT_TRUE(bare.tokenizer.end_tokens().empty());
}

// Whether the tokens give the text and, within its pieces, no two neighbours are left to merge.
void expect_fully_merged(const OpenedTokenizer& opened, const Splitter& splitter,
                         const std::string& text, const Tokens& tokens) {
  ASSERT_EQ(opened.tokenizer.decode(tokens), text);
  if (!utf8_is_valid(text)) return;  // then the pieces are not the splitter's alone
  std::vector<std::string_view> pieces;
  ASSERT_TRUE(splitter.split(text, pieces));
  std::size_t next = 0;
  for (const std::string_view piece : pieces) {
    std::size_t bytes = opened.tokenizer.bytes(tokens[next]).size();
    for (; bytes < piece.size(); ++next) {
      ASSERT_FALSE(opened.view.merge(static_cast<std::uint32_t>(tokens[next]),
                                     static_cast<std::uint32_t>(tokens[next + 1])));
      bytes += opened.tokenizer.bytes(tokens[next + 1]).size();
    }
    ASSERT_EQ(bytes, piece.size());
    ++next;
  }
  EXPECT_EQ(next, tokens.size());
}

void encode_long_texts() {
  for (const auto& [kind, name] : kPreTokenizers) {
    Vocabulary vocabulary = trained_vocabulary(kind);
    vocabulary.nfc = kind == PreTokenizer::qwen35;
    const OpenedTokenizer opened(vocabulary);
    const auto interpreter = Splitter::create(kind, /*jit=*/false);
    ASSERT_TRUE(interpreter);
    for (const std::string& text : long_texts()) {
      SCOPED_TRACE(std::string(name) + ": " + std::to_string(text.size()) + " bytes, " +
                   text.substr(0, 3));
      const std::string expected = vocabulary.nfc && utf8_is_valid(text) ? to_nfc(text) : text;
      expect_fully_merged(opened, *interpreter, expected, encode(opened.tokenizer, text));
    }
  }
}

TEST(Tokenizer, LongRunsOnASmallStack) { run_on_a_small_stack(encode_long_texts); }

TEST(Tokenizer, OneForManyThreads) {
  const OpenedTokenizer opened(trained_vocabulary(PreTokenizer::qwen2));
  const std::string text =
      "Alice was beginning to get very tired of sitting by her sister\n  <think>";
  const Tokens expected = encode(opened.tokenizer, text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) EXPECT_EQ(encode(opened.tokenizer, text), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ByteAlphabet, EveryByte) {
  // Written from the definition, as UTF-8.
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself =
        (byte >= 33 && byte <= 126) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const int character = itself ? byte : next++;
    std::string text;
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xc0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
    EXPECT_EQ(bytes_from_gpt2_alphabet(text), std::string(1, static_cast<char>(byte))) << byte;
  }
  EXPECT_EQ(next, 0x144);
  EXPECT_EQ(bytes_from_gpt2_alphabet("\u0120hello\u010a\u00e9"), " hello\n\xe9");
  EXPECT_EQ(bytes_from_gpt2_alphabet(""), "");
}

TEST(ByteAlphabet, RefusesEveryOtherCharacter) {
  for (const char* text :
       {" ", "a b", "\n", "\x7f", "\u0080", "\u00a0", "\u00ad", "\u0144", "\u0180", "\u07ff",
        "\u65e5", "\U0001f600", "\xc4", "\xc4\x41", "\xff"}) {
    EXPECT_EQ(bytes_from_gpt2_alphabet(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tsq
