// SentencePiece BPE: goldens of the sentencepiece package, its section, and what a careless merge
// loop gets wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "base/utf8.h"
#include "tokenizer_files.h"

namespace tsq {
namespace {

using format::TokenizerView;
using format::TokenType;
using format::Vocabulary;
using Tokens = std::vector<Token>;

constexpr EncodeOptions kParseSpecial = {.parse_special = true};

// The bytes at ids 0 to 255, then these with their scores.
struct Piece {
  std::string text;
  float score = 0;
  TokenType type = TokenType::normal;
};
Vocabulary vocabulary_of(const std::vector<Piece>& pieces, bool space_prefix = false) {
  Vocabulary v = byte_vocabulary();
  v.model = format::TokenizerModel::sentencepiece_bpe;
  v.space_prefix = space_prefix;
  std::ranges::fill(v.types, TokenType::byte);
  v.scores.resize(256);
  for (const Piece& piece : pieces) {
    v.tokens.push_back(piece.text);
    v.types.push_back(piece.type);
    v.scores.push_back(piece.score);
  }
  return v;
}

TEST(SentencePiece, TokensOfTheOriginal) {
  const auto entries = read_json("sentencepiece_golden.json")["entries"];
  ASSERT_GE(entries.size(), 90u);
  for (const bool prefix : {true, false}) {
    const OpenedTokenizer opened(sentencepiece_vocabulary(prefix));
    Vocabulary with_unused = sentencepiece_vocabulary(prefix);
    std::ranges::replace(with_unused.types, TokenType::unused, TokenType::normal);
    const OpenedTokenizer careless(with_unused);
    int fell_apart = 0;
    for (const auto& entry : entries) {
      SCOPED_TRACE(entry.dump());
      const auto text = entry["text"].get<std::string>();
      const auto ids = entry[prefix ? "prefix" : "plain"].get<Tokens>();
      EXPECT_EQ(encode(opened.tokenizer, text), ids);
      if (text.find("\u2581") == std::string::npos) {
        EXPECT_EQ(opened.tokenizer.decode(ids, {.strip_space_prefix = true}), text);
      }
      fell_apart += encode(careless.tokenizer, text) != ids;
    }
    EXPECT_GE(fell_apart, 20);  // texts that reach an unused token
  }
}

TEST(SentencePiece, EveryUnicodeBlock) {
  const OpenedTokenizer opened(sentencepiece_vocabulary(true));
  const auto entries = read_json("blocks.json")["entries"];
  ASSERT_GE(entries.size(), 300u);
  for (const auto& entry : entries) {
    SCOPED_TRACE(entry["block"]);
    const auto text = entry["text"].get<std::string>();
    const auto ids = entry["sentencepiece"].get<Tokens>();
    EXPECT_EQ(encode(opened.tokenizer, text), ids);
    EXPECT_EQ(opened.tokenizer.decode(ids, {.strip_space_prefix = true}), text);
  }
}

// The definition: of all neighbours whose text is a token, merge those of the highest score, the
// leftmost of equals.
Tokens merged_by_definition(const TokenizerView& view, std::string_view text) {
  std::vector<std::string> symbols;
  for (const char letter : text) symbols.emplace_back(1, letter);
  for (;;) {
    std::size_t best = symbols.size();
    float best_score = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto id = view.find(symbols[i] + symbols[i + 1]);
      if (id && view.score(*id) > best_score) {
        best = i;
        best_score = view.score(*id);
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Tokens tokens;
  for (const auto& symbol : symbols) tokens.push_back(static_cast<Token>(*view.find(symbol)));
  return tokens;
}

TEST(SentencePiece, MergesByDefinition) {
  std::mt19937 random(1);
  for (int vocabulary = 0; vocabulary < 20; ++vocabulary) {
    std::vector<Piece> pieces;
    std::vector<std::string> words = {""};
    for (std::size_t i = 0; i < words.size() && words[i].size() < 4; ++i) {
      for (const char letter : {'a', 'b', 'c'}) words.push_back(words[i] + letter);
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].size() > 1 && random() % 3 == 0) continue;
      // Few scores, of both signs and both zeros: ties are many.
      const float scores[] = {-1.5f, -1, -0.0f, 0, 0.25f, 3};
      pieces.push_back({words[i], scores[random() % 6]});
    }
    const OpenedTokenizer opened(vocabulary_of(pieces));
    for (int i = 0; i < 100; ++i) {
      std::string text(random() % 40, '\0');
      for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
      EXPECT_EQ(encode(opened.tokenizer, text), merged_by_definition(opened.view, text)) << text;
    }
  }
}

TEST(SentencePiece, ASpaceBeforeTheText) {
  const std::vector<Piece> pieces = {{"a", -5},   // 256
                                     {" ", -5},   // 257
                                     {" a", -1},  // 258
                                     {"<s>", 0, TokenType::control},
                                     {"<u>", 0, TokenType::user_defined},
                                     {"  ", 0, TokenType::user_defined}};
  const OpenedTokenizer with(vocabulary_of(pieces, true)), without(vocabulary_of(pieces));
  EXPECT_EQ(encode(without.tokenizer, "a a"), (Tokens{256, 258}));
  const auto plain = [&](std::string_view text) { return encode(with.tokenizer, text); };
  EXPECT_EQ(plain(""), Tokens{});
  EXPECT_EQ(plain("a a"), (Tokens{258, 258}));
  EXPECT_EQ(plain("\u2581"), Tokens{261});  // "  ", which is cut out, and a text is what it is in
  EXPECT_EQ(plain(" a"), (Tokens{261, 256}));
  EXPECT_EQ(plain("<u>a"), (Tokens{257, 260, 256}));
  EXPECT_EQ(plain("<s>a"), (Tokens{257, '<', 's', '>', 256}));
  EXPECT_EQ(plain("\xff"
                  "a"),
            (Tokens{257, 0xff, 256}));
  const auto parsed = [&](std::string_view text) {
    return encode(with.tokenizer, text, kParseSpecial);
  };
  EXPECT_EQ(parsed("<s>"), Tokens{259});
  EXPECT_EQ(parsed("<s>a<s><u>a"), (Tokens{259, 258, 259, 257, 260, 256}));
  EXPECT_EQ(parsed("a<s> a"), (Tokens{258, 259, 261, 256}));
  EXPECT_EQ(encode(without.tokenizer, "<s>a<s>a", kParseSpecial), (Tokens{259, 256, 259, 256}));

  const auto decode = [](const OpenedTokenizer& opened, const Tokens& tokens, bool strip) {
    return opened.tokenizer.decode(tokens, {.skip_control = true, .strip_space_prefix = strip});
  };
  EXPECT_EQ(decode(with, {259, 258, 258}, false), " a a");
  EXPECT_EQ(decode(with, {259, 258, 258}, true), "a a");
  EXPECT_EQ(decode(with, {256, 258}, true), "a a");
  EXPECT_EQ(decode(without, {258}, true), " a");
}

TEST(SentencePiece, WhatIsNoTokenBecomesBytes) {
  const OpenedTokenizer opened(vocabulary_of({{"a", -5}, {"ab", -1}, {"\u00e9", -2}}));
  EXPECT_EQ(encode(opened.tokenizer, "abb"), (Tokens{257, 'b'}));
  EXPECT_EQ(encode(opened.tokenizer, "\u00e9\u00e8"), (Tokens{258, 0xc3, 0xa8}));
  EXPECT_EQ(encode(opened.tokenizer, std::string_view("a\0b", 3)), (Tokens{256, 0, 'b'}));
  EXPECT_EQ(encode(opened.tokenizer,
                   "a\xff"
                   "b"),
            (Tokens{256, 0xff, 'b'}));
  EXPECT_EQ(encode(opened.tokenizer, "\xc3\xc3\xa9"), (Tokens{0xc3, 258}));
  EXPECT_EQ(opened.tokenizer.find("a"), 256);
  EXPECT_EQ(opened.tokenizer.find("b"), 'b');

  Vocabulary v = vocabulary_of({{"a", -5}});
  v.tokens['c'] = "no byte";
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "ac"), Tokens{256});
  v.unknown = 256;
  EXPECT_EQ(encode(OpenedTokenizer(v).tokenizer, "ac"), (Tokens{256, 256}));
}

// Text never turns into a token that is not a piece, by whatever merges.
TEST(SentencePiece, ControlAndUnknownTokensAreNotMade) {
  const OpenedTokenizer opened(vocabulary_of({{"</", -1},
                                              {"</s>", 0, TokenType::control},
                                              {"s>", -2},
                                              {"<unk>", 0, TokenType::unknown},
                                              {"<unk", -3},
                                              {"<u", -4},
                                              {"nk", -5}}));
  EXPECT_EQ(encode(opened.tokenizer, "</s>"), (Tokens{256, 258}));
  EXPECT_EQ(encode(opened.tokenizer, "<unk>"), (Tokens{260, '>'}));
  EXPECT_EQ(encode(opened.tokenizer, "<unk>", kParseSpecial), (Tokens{260, '>'}));
}

TEST(SentencePiece, AnyBytesComeBack) {
  std::mt19937 random(2);
  const OpenedTokenizer opened(sentencepiece_vocabulary(true));
  for (int i = 0; i < 500; ++i) {
    std::string text(random() % 100, '\0');
    for (char& byte : text) byte = static_cast<char>(random() % 256);
    const auto tokens = encode(opened.tokenizer, text);
    EXPECT_EQ(opened.tokenizer.decode(tokens, {.strip_space_prefix = true}), text);
  }
}

void encode_long_texts() {
  Vocabulary v = sentencepiece_vocabulary(true);
  const OpenedTokenizer opened(v);
  std::vector<Piece> pieces;  // a, aa, aaa ...: each merge makes one longer
  for (std::size_t n = 1; n <= 2000; ++n) pieces.push_back({std::string(n, 'a'), -float(n)});
  const OpenedTokenizer chain(vocabulary_of(pieces));
  Vocabulary unused = vocabulary_of(pieces);
  std::fill(unused.types.begin() + 258, unused.types.end(), TokenType::unused);
  const OpenedTokenizer falls_apart(unused);
  for (const std::string& text : long_texts()) {
    SCOPED_TRACE(std::to_string(text.size()) + " bytes, " + text.substr(0, 3));
    for (const OpenedTokenizer* tokenizer : {&opened, &chain, &falls_apart}) {
      const auto tokens = encode(tokenizer->tokenizer, text);
      ASSERT_EQ(tokenizer->tokenizer.decode(tokens, {.strip_space_prefix = true}), text);
      for (const Token token : tokens) {
        ASSERT_NE(tokenizer->view.type(static_cast<std::uint32_t>(token)), TokenType::unused);
      }
    }
  }
}

TEST(SentencePiece, LongRunsOnASmallStack) { run_on_a_small_stack(encode_long_texts); }

Vocabulary small_vocabulary() {
  Vocabulary v;
  v.model = format::TokenizerModel::sentencepiece_bpe;
  v.tokens = {"<unk>", "</s>", "a", "a"};
  v.types = {TokenType::unknown, TokenType::control, TokenType::byte, TokenType::normal};
  v.scores = {0, 0, 0, -1.5f};
  v.eos = 1;
  v.unknown = 0;
  v.space_prefix = true;
  return v;
}

TEST(SentencePiece, TheSectionLiesAsFormatMdSays) {
  const OpenedTokenizer opened(small_vocabulary());
  std::uint32_t header[16];
  std::memcpy(header, opened.section.data(), sizeof header);
  const std::uint32_t expected[] = {2, 0, 16, 4, 0, 1, 1, 8, 1, 11, format::kNoToken, 1, 0};
  EXPECT_TRUE(std::ranges::equal(expected, std::span(header).first(13)));
  const std::size_t scores_at = 64 + 4 * (5 + 8 + 1 + 1 + 1);
  float scores[4];
  std::memcpy(scores, opened.section.data() + scores_at, sizeof scores);
  EXPECT_TRUE(std::ranges::equal(scores, small_vocabulary().scores));
  ASSERT_EQ(opened.section.size(), scores_at + 16 + 4 + 11);
  EXPECT_EQ(opened.view.model(), format::TokenizerModel::sentencepiece_bpe);
  EXPECT_TRUE(opened.view.space_prefix());
  EXPECT_EQ(opened.view.score(3), -1.5f);
  EXPECT_EQ(opened.view.find("a"), 3u);  // not the byte

  // A score that is no number harms nothing but the order; verify says so.
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto section = opened.section;
    std::memcpy(section.data() + scores_at + 8, &bad, sizeof bad);
    const auto view = TokenizerView::parse(section, 4);
    ASSERT_TRUE(view);
    const auto checked = view->check();
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message().find("token 2 has the score"), std::string::npos);
  }
}

TEST(SentencePiece, OneWrongField) {
  struct Case {
    std::size_t offset;
    std::uint32_t value;
    const char* message;
  };
  const Case kCases[] = {
      {4, 1, "pre-tokenizer is 1 and there are 0 merges, SentencePiece BPE has 0 of both"},
      {16, 1, "pre-tokenizer is 0 and there are 1 merges"},
      {8, 4, "flags are 0x4, only those in 0x13 are"},
      {0, 1, "pre-tokenizer is 0, expected 1"},
  };
  for (const Case& wrong : kCases) {
    auto section = OpenedTokenizer(small_vocabulary()).section;
    std::memcpy(section.data() + wrong.offset, &wrong.value, 4);
    const auto view = TokenizerView::parse(section, 4);
    ASSERT_FALSE(view) << wrong.message;
    EXPECT_NE(view.error().message().find(wrong.message), std::string::npos)
        << view.error().message();
  }
  auto section = OpenedTokenizer(small_vocabulary()).section;
  for (std::size_t n = 0; n < section.size(); ++n) {
    const std::vector<std::byte> cut(section.begin(),
                                     section.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_FALSE(TokenizerView::parse(cut, 4)) << n;
  }
  Vocabulary v = small_vocabulary();
  v.scores.pop_back();
  const auto built = format::build_tokenizer_section(v);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().message().find("3 scores for 4 tokens"), std::string::npos);
}

}  // namespace
}  // namespace tsq
