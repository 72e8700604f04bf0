// The tokenizer section: what is built is read back, and whatever is wrong with its bytes is an
// error or a lookup that misses.
#include "format/tokenizer_section.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/hash.h"
#include "tokenizer/make.h"
#include "tokenizer_files.h"

namespace tsq {
namespace {

using format::build_tokenizer_section;
using format::kNoToken;
using format::TokenizerView;
using format::TokenType;
using format::Vocabulary;
using Ids = std::vector<std::uint32_t>;

// a b c ab abc </s> <think> (empty) [PAD]
Vocabulary small_vocabulary() {
  Vocabulary v;
  v.pre_tokenizer = format::PreTokenizer::smollm;
  v.tokens = {"a", "b", "c", "ab", "abc", "</s>", "<think>", "", "[PAD]"};
  v.types.assign(9, TokenType::normal);
  v.types[5] = TokenType::control;
  v.types[6] = TokenType::user_defined;
  v.types[7] = v.types[8] = TokenType::unused;
  v.merges = {{0, 1, 3}, {3, 2, 4}};
  v.bos = v.eos = 5;
  v.unknown = 0;
  v.padding = 8;
  v.end_tokens = {6};
  v.add_bos = true;
  return v;
}
constexpr std::uint32_t kTokens = 9;

// Where FORMAT.md puts things, for small_vocabulary(): 32 string slots, 8 merge slots.
constexpr std::size_t kOffsetsAt = 64, kMergesAt = 104, kStringSlotsAt = 128, kMergeSlotsAt = 256,
                      kSpecialAt = 288, kEndAt = 296, kTypesAt = 304, kSectionBytes = 337;
constexpr std::uint32_t kStringSlots = 32, kMergeSlots = 8;

std::vector<std::byte> small_section() {
  auto section = build_tokenizer_section(small_vocabulary());
  EXPECT_TRUE(section) << section.error().message();
  return *std::move(section);
}

std::uint32_t word(std::span<const std::byte> section, std::size_t offset) {
  std::uint32_t value;
  std::memcpy(&value, section.data() + offset, sizeof value);
  return value;
}

void set_word(std::span<std::byte> section, std::size_t offset, std::uint32_t value) {
  std::memcpy(section.data() + offset, &value, sizeof value);
}

Ids words(std::span<const std::byte> section, std::size_t offset, std::size_t n) {
  Ids values(n);
  std::memcpy(values.data(), section.data() + offset, 4 * n);
  return values;
}

TEST(TokenizerSection, GivesBackWhatWasBuilt) {
  const Vocabulary v = small_vocabulary();
  const auto section = small_section();
  const auto view = TokenizerView::parse(section, kTokens);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_TRUE(view->check());
  EXPECT_EQ(view->model(), v.model);
  EXPECT_EQ(view->pre_tokenizer(), v.pre_tokenizer);
  ASSERT_EQ(view->size(), kTokens);
  for (std::uint32_t id = 0; id < kTokens; ++id) {
    EXPECT_EQ(view->token(id), v.tokens[id]);
    EXPECT_EQ(view->type(id), v.types[id]);
    if (!v.tokens[id].empty()) {
      EXPECT_EQ(view->find(v.tokens[id]), id);
    }
  }
  for (const char* absent : {"", "d", "abcd", "bc", "</s", "</s> "}) {
    EXPECT_EQ(view->find(absent), std::nullopt) << absent;
  }
  ASSERT_EQ(view->merge_count(), 2u);
  for (std::uint32_t left = 0; left < kTokens; ++left) {
    for (std::uint32_t right = 0; right < kTokens; ++right) {
      const auto merge = view->merge(left, right);
      const auto expected = std::ranges::find_if(
          v.merges, [&](const auto& m) { return m.left == left && m.right == right; });
      ASSERT_EQ(merge.has_value(), expected != v.merges.end());
      if (!merge) continue;
      EXPECT_EQ(merge->rank, expected - v.merges.begin());
      EXPECT_EQ(merge->result, expected->result);
    }
  }
  EXPECT_TRUE(std::ranges::equal(view->special_tokens(), Ids{6, 5}));  // the longest first
  EXPECT_TRUE(std::ranges::equal(view->end_tokens(), Ids{5, 6}));      // with eos
  EXPECT_EQ(view->bos(), 5u);
  EXPECT_EQ(view->eos(), 5u);
  EXPECT_EQ(view->unknown(), 0u);
  EXPECT_EQ(view->padding(), 8u);
  EXPECT_TRUE(view->add_bos());
  EXPECT_FALSE(view->add_eos());
  EXPECT_FALSE(view->whole_pieces());
  EXPECT_FALSE(view->nfc());
}

TEST(TokenizerSection, AsAVocabularyAgain) {
  Vocabulary pieces;
  pieces.model = format::TokenizerModel::sentencepiece_bpe;
  pieces.tokens = {"a", "b", "ab", "</s>"};
  pieces.types = {TokenType::normal, TokenType::byte, TokenType::normal, TokenType::control};
  pieces.scores = {-1, 0.5f, -3, 0};
  pieces.eos = 3;
  pieces.add_eos = pieces.space_prefix = true;
  Vocabulary flags = small_vocabulary();
  flags.nfc = flags.whole_pieces = true;
  for (const Vocabulary& v : {small_vocabulary(), flags, pieces}) {
    const auto section = build_tokenizer_section(v);
    ASSERT_TRUE(section) << section.error().message();
    const auto view = TokenizerView::parse(*section, static_cast<std::uint32_t>(v.tokens.size()));
    ASSERT_TRUE(view) << view.error().message();
    const Vocabulary again = view->vocabulary();
    EXPECT_EQ(again.tokens, v.tokens);
    EXPECT_EQ(again.scores, v.scores);
    const auto rebuilt = build_tokenizer_section(again);
    ASSERT_TRUE(rebuilt) << rebuilt.error().message();
    EXPECT_EQ(*rebuilt, *section);
  }
}

TEST(TokenizerSection, Flags) {
  const auto flags_of = [](const Vocabulary& v) {
    const auto section = build_tokenizer_section(v);
    EXPECT_TRUE(section) << section.error().message();
    return word(*section, 8);
  };
  Vocabulary v = small_vocabulary();
  v.add_bos = false;
  EXPECT_EQ(flags_of(v), 0u);
  v.add_bos = true;
  EXPECT_EQ(flags_of(v), 1u);
  v.add_eos = true;
  EXPECT_EQ(flags_of(v), 3u);
  v.whole_pieces = true;
  EXPECT_EQ(flags_of(v), 7u);
  EXPECT_TRUE(OpenedTokenizer(v).view.whole_pieces());
  EXPECT_FALSE(OpenedTokenizer(v).view.nfc());
  v.nfc = true;
  EXPECT_EQ(flags_of(v), 15u);
  EXPECT_TRUE(OpenedTokenizer(v).view.nfc());
}

TEST(TokenizerSection, LiesAsFormatMdSays) {
  const auto section = small_section();
  ASSERT_EQ(section.size(), kSectionBytes);
  EXPECT_EQ(words(section, 0, 16),
            (Ids{1, 2, 1, kTokens, 2, 2, 2, kStringSlots, kMergeSlots, 24, 5, 5, 0, 8, 0, 0}));
  EXPECT_EQ(words(section, kOffsetsAt, 10), (Ids{0, 1, 2, 3, 5, 8, 12, 19, 19, 24}));
  EXPECT_EQ(words(section, kMergesAt, 6), (Ids{0, 1, 3, 3, 2, 4}));
  EXPECT_EQ(words(section, kSpecialAt, 2), (Ids{6, 5}));
  EXPECT_EQ(words(section, kEndAt, 2), (Ids{5, 6}));
  const std::string_view tail(reinterpret_cast<const char*>(section.data()) + kTypesAt,
                              kSectionBytes - kTypesAt);
  EXPECT_EQ(tail,
            "\1\1\1\1\1\3\4\5\5"
            "abcababc</s><think>[PAD]");

  // Each key sits in the first of the slots from its hash on that no other key has taken.
  const auto slots = words(section, kStringSlotsAt, kStringSlots);
  EXPECT_EQ(kStringSlots - std::ranges::count(slots, kNoToken), 8);
  for (const std::uint32_t id : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u}) {
    const std::string token = small_vocabulary().tokens[id];
    std::uint64_t at = xxh3(std::as_bytes(std::span(token)));
    while (slots[at % kStringSlots] != id) {
      ASSERT_NE(slots[at % kStringSlots], kNoToken) << token;
      ++at;
    }
  }
  const auto merge_slots = words(section, kMergeSlotsAt, kMergeSlots);
  EXPECT_EQ(kMergeSlots - std::ranges::count(merge_slots, kNoToken), 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto pair = std::span(section).subspan(kMergesAt + 12 * rank, 8);
    std::uint64_t at = xxh3(pair);
    while (merge_slots[at % kMergeSlots] != rank) {
      ASSERT_NE(merge_slots[at % kMergeSlots], kNoToken) << rank;
      ++at;
    }
  }
}

TEST(TokenizerSection, EveryTruncation) {
  const auto section = small_section();
  for (std::size_t n = 0; n < section.size(); ++n) {
    // Memory of just this size, so that a sanitizer sees a read behind it.
    const std::vector<std::byte> cut(section.begin(),
                                     section.begin() + static_cast<std::ptrdiff_t>(n));
    const auto view = TokenizerView::parse(cut, kTokens);
    ASSERT_FALSE(view) << n;
    EXPECT_EQ(view.error().code(), ErrorCode::damaged) << n;
    EXPECT_NE(view.error().message().find(std::to_string(n) + " bytes"), std::string::npos)
        << view.error().message();
  }
  auto longer = section;
  longer.push_back({});
  EXPECT_FALSE(TokenizerView::parse(longer, kTokens));
}

TEST(TokenizerSection, RefusesUnalignedMemory) {
  const auto section = small_section();
  std::vector<std::byte> shifted(section.size() + 1);
  std::ranges::copy(section, shifted.begin() + 1);
  const auto view = TokenizerView::parse(std::span(shifted).subspan(1), kTokens);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code(), ErrorCode::invalid_argument);
}

struct WrongField {
  std::size_t offset;
  std::uint32_t value;
  const char* message;
  ErrorCode code = ErrorCode::damaged;
};

TEST(TokenizerSection, OneWrongField) {
  constexpr char kSize[] = "the section has 337 bytes, its header promises";
  const WrongField kFields[] = {
      {0, 0, "model is 0, expected 1", ErrorCode::unsupported},
      {0, 2, "pre-tokenizer is 2 and there are 2 merges, SentencePiece BPE has 0 of both"},
      {0, 3, "model is 3, expected 1", ErrorCode::unsupported},
      {4, 0, "pre-tokenizer is 0, expected 1", ErrorCode::unsupported},
      {4, 7, "pre-tokenizer is 7, expected 1", ErrorCode::unsupported},
      {8, 16, "flags are 0x10, only those in 0xf are"},
      {8, 0x80000000, "flags are 0x80000000"},
      {12, 8, "8 tokens, the model has a vocabulary of 9"},
      {12, 0xffffffff, "4294967295 tokens, the model has"},
      {16, 1, kSize},
      {16, 0xffffffff, kSize},
      {20, 3, kSize},
      {20, 0xffffffff, kSize},
      {24, 1, kSize},
      {24, 0xffffffff, kSize},
      {28, 0, "string table has 0 slots, expected a power of two"},
      {28, 31, "string table has 31 slots"},
      {28, 0x80000000, kSize},
      {32, 0, "merge table has 0 slots"},
      {32, 12, "merge table has 12 slots"},
      {32, 16, kSize},
      {36, 23, kSize},
      {36, 0xffffffff, kSize},
      {40, 9, "bos is token 9, there are 9 tokens"},
      {40, kNoToken, "a bos token is to be added, but there is none"},
      {44, 9, "eos is token 9"},
      {44, 8, "eos is token 8, which is not one of the end tokens"},
      {48, 0xfffffffe, "unknown is token 4294967294"},
      {52, 9, "padding is token 9"},
      {56, 1, "reserved fields are 1 and 0, expected 0"},
      {60, 1, "reserved fields are 0 and 1, expected 0"},
      {kOffsetsAt, 1, "token 0 starts at byte 1 of the text, expected 0"},
      {kOffsetsAt + 4, 3, "token 1 ends at byte 2 of the text, before its start at 3"},
      {kOffsetsAt + 4, 0xffffffff, "token 1 ends at byte 2 of the text, before its start at 42949"},
      {kOffsetsAt + 32, 25, "token 8 ends at byte 24 of the text, before its start at 25"},
      {kOffsetsAt + 36, 23, "the last token ends at byte 23 of the text, expected 24"},
      {kOffsetsAt + 28, 12, "the special list has 2 tokens, 1 are special"},
      {kMergesAt, 9, "merge 0 holds token 9, there are 9 tokens"},
      {kMergesAt + 4, 0xffffffff, "merge 0 holds token 4294967295"},
      {kMergesAt + 20, 9, "merge 1 holds token 9"},
      {kStringSlotsAt, 9, "slot 0 of the string table holds token 9, there are 9 tokens"},
      {kStringSlotsAt + 124, 0xfffffffe, "slot 31 of the string table holds token 4294967294"},
      {kMergeSlotsAt, 2, "slot 0 of the merge table holds merge 2, there are 2 merges"},
      {kMergeSlotsAt + 28, 0xfffffffe, "slot 7 of the merge table holds merge 4294967294"},
      {kSpecialAt, 9, "the special list holds token 9, there are 9 tokens"},
      {kSpecialAt, 0, "the special list holds token 0, which is not special"},
      {kSpecialAt, 7, "the special list holds token 7, which is not special"},
      {kSpecialAt, 5, "token 5 follows token 5 in the special list"},
      {kEndAt + 4, 9, "end token is 9, there are 9 tokens"},
      {kEndAt + 4, 5, "end token 5 follows 5, expected ascending"},
      {kEndAt, 8, "end token 6 follows 8, expected ascending"},
      {kEndAt, 4, "eos is token 5, which is not one of the end tokens"},
      {kTypesAt, 0x01010107, "token 0 has type 7, expected 0 to 6"},
      {kTypesAt, 0x01010103, "the special list has 2 tokens, 3 are special by type"},
      {kTypesAt + 4, 0x05040101, "the special list has 2 tokens, 1 are special by type"},
  };
  for (const WrongField& wrong : kFields) {
    auto section = small_section();
    ASSERT_NE(word(section, wrong.offset), wrong.value) << wrong.offset;
    set_word(section, wrong.offset, wrong.value);
    const auto view = TokenizerView::parse(section, kTokens);
    ASSERT_FALSE(view) << wrong.message;
    EXPECT_EQ(view.error().code(), wrong.code) << wrong.message;
    EXPECT_NE(view.error().message().find(wrong.message), std::string::npos)
        << view.error().message() << "\nexpected: " << wrong.message;
  }
  auto section = small_section();
  set_word(section, kSpecialAt, 5);
  set_word(section, kSpecialAt + 4, 6);
  EXPECT_FALSE(TokenizerView::parse(section, kTokens));
  section = small_section();
  set_word(section, 8, 2);
  set_word(section, 44, kNoToken);
  const auto view = TokenizerView::parse(section, kTokens);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().message(), "tokenizer: an eos token is to be added, but there is none");
  EXPECT_FALSE(TokenizerView::parse(small_section(), kTokens + 1));
}

TEST(TokenizerSection, SpecialTokensHaveALargestLength) {
  Vocabulary v = small_vocabulary();
  v.tokens[6] = std::string(1024, 'x');
  EXPECT_TRUE(build_tokenizer_section(v));
  v.tokens[6] += 'x';
  const auto section = build_tokenizer_section(v);
  ASSERT_FALSE(section);
  EXPECT_NE(section.error().message().find("has 1025 bytes, expected at most 1024"),
            std::string::npos);
}

// Every token and merge there is, asked for through tables that parse() has let pass.
void look_up_everything(const TokenizerView& view) {
  for (std::uint32_t id = 0; id < view.size(); ++id) {
    const auto found = view.find(view.token(id));
    if (found) {
      EXPECT_EQ(view.token(*found), view.token(id));
    }
    for (std::uint32_t other = 0; other < view.size(); ++other) {
      const auto merge = view.merge(id, other);
      if (merge) {
        EXPECT_LT(merge->rank, view.merge_count());
        EXPECT_LT(merge->result, view.size());
      }
    }
  }
}

TEST(TokenizerSection, HostileTablesOnlyMiss) {
  const auto original = small_section();
  const std::size_t slots_end = kMergeSlotsAt + 4 * kMergeSlots;
  for (const std::uint32_t fill : {0u, 1u, kNoToken}) {  // full of one entry: no end; all empty
    auto section = original;
    for (std::size_t at = kStringSlotsAt; at < slots_end; at += 4) set_word(section, at, fill);
    const auto view = TokenizerView::parse(section, kTokens);
    ASSERT_TRUE(view) << view.error().message();
    look_up_everything(*view);
    EXPECT_EQ(view->find("abc"), std::nullopt);
    const auto checked = view->check();
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), ErrorCode::damaged);
    EXPECT_NE(checked.error().message().find("is not found by its bytes"), std::string::npos);

    // Encoding still ends: with the tokens it can find, or an error about a byte.
    const auto tokenizer = make_tokenizer(*view);
    ASSERT_TRUE(tokenizer);
    const auto tokens = tokenizer->encode("abcabc <think>", {.parse_special = true});
    if (tokens) {
      EXPECT_EQ(tokens->back(), 6);
    }
  }
  // Each slot moved to another place.
  for (std::size_t at = kStringSlotsAt; at < slots_end; at += 4) {
    if (word(original, at) == kNoToken) continue;
    auto section = original;
    set_word(section, at, kNoToken);
    const auto view = TokenizerView::parse(section, kTokens);
    ASSERT_TRUE(view);
    look_up_everything(*view);
    EXPECT_FALSE(view->check()) << at;
  }
}

// Lookups give up long before they have walked a large table that has no empty slot.
TEST(TokenizerSection, FullTablesCostLittle) {
  Vocabulary v = byte_vocabulary();
  for (int i = 0; i < 100000; ++i) v.tokens.push_back("token" + std::to_string(i));
  v.types.resize(v.tokens.size(), TokenType::normal);
  const auto n = static_cast<std::uint32_t>(v.tokens.size());
  auto section = build_tokenizer_section(v);
  ASSERT_TRUE(section) << section.error().message();
  const std::uint32_t slots = word(*section, 28);
  const std::size_t slots_at = 64 + 4 * (std::size_t{n} + 1);
  for (std::uint32_t i = 0; i < slots; ++i) set_word(*section, slots_at + 4 * i, 300);
  const auto view = TokenizerView::parse(*section, n);
  ASSERT_TRUE(view);
  for (std::uint32_t id = 0; id < n; ++id) {  // 2^18 probes each would be 26 billion
    ASSERT_EQ(view->find(view->token(id)).has_value(), id == 300);
  }
}

TEST(TokenizerSection, HostileMergesEnd) {
  // "a" and "a" make "a", "a" and "b" make "b": a result that invites the next merge.
  auto section = small_section();
  for (const std::uint32_t i : {0u, 1u}) set_word(section, kMergesAt + 12 + 4 * i, 0);
  set_word(section, kMergesAt + 8, 0);
  set_word(section, kMergesAt + 20, 0);
  for (std::size_t at = kMergeSlotsAt; at < kSpecialAt; at += 8) {
    set_word(section, at, 0);
    set_word(section, at + 4, 1);
  }
  const auto view = TokenizerView::parse(section, kTokens);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_FALSE(view->check());
  const auto tokenizer = make_tokenizer(*view);
  ASSERT_TRUE(tokenizer);
  std::string text(10000, 'a');
  text += 'b';
  const auto tokens = tokenizer->encode(text, {.add_special = false});
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, std::vector<Token>{0});
}

TEST(TokenizerSection, CheckNamesTheMerge) {
  auto section = small_section();
  set_word(section, kMergesAt + 8, 4);
  auto view = TokenizerView::parse(section, kTokens);
  ASSERT_TRUE(view);
  auto checked = view->check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(),
            "tokenizer: merge 0: tokens 0 'a' and 1 'b' do not make 4 'abc'");

  section = small_section();
  for (std::size_t at = kMergeSlotsAt; at < kSpecialAt; at += 4) {
    if (word(section, at) == 1) set_word(section, at, kNoToken);
  }
  view = TokenizerView::parse(section, kTokens);
  ASSERT_TRUE(view);
  checked = view->check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(), "tokenizer: merge 1 is not found by its pair");
}

TEST(TokenizerSection, BuildRefusesABadVocabulary) {
  struct Case {
    std::function<void(Vocabulary&)> spoil;
    const char* message;
  };
  const Case kCases[] = {
      {[](Vocabulary& v) { v = {}; }, "0 tokens"},
      {[](Vocabulary& v) { v.types.pop_back(); }, "8 token types for 9 tokens"},
      {[](Vocabulary& v) { v.types[2] = static_cast<TokenType>(7); }, "token 2 has type 7"},
      {[](Vocabulary& v) { v.model = static_cast<format::TokenizerModel>(3); }, "model is 3"},
      {[](Vocabulary& v) { v.scores.resize(9); }, "9 scores for 9 tokens, expected"},
      {[](Vocabulary& v) { v.space_prefix = true; }, "flags are 0x11, only those in 0xf are"},
      {[](Vocabulary& v) { v.pre_tokenizer = static_cast<format::PreTokenizer>(9); },
       "pre-tokenizer is 9"},
      {[](Vocabulary& v) { v.tokens[2] = v.tokens[1]; },
       "token 2 'b' is not found by its bytes, token 1 has them too"},
      {[](Vocabulary& v) { v.tokens[5] = v.tokens[6]; },
       "token 6 '<think>' is not found by its bytes, token 5 has them too"},
      {[](Vocabulary& v) { v.merges[1].left = 9; }, "merge 1 holds token 9"},
      {[](Vocabulary& v) { v.merges[1].result = kNoToken; }, "merge 1 holds token 4294967295"},
      {[](Vocabulary& v) { v.merges[1].result = 3; },
       "merge 1: tokens 3 'ab' and 2 'c' do not make 3 'ab'"},
      {[](Vocabulary& v) {
         v.merges[0] = {7, 0, 0};
       },
       "merge 0: tokens 7 '' and 0 'a' do not"},
      {[](Vocabulary& v) {
         v.merges.push_back({0, 1, 3});
       },
       "merge 2 is not found by its pair, merge 0 has it too"},
      {[](Vocabulary& v) { v.bos = 9; }, "bos is token 9"},
      {[](Vocabulary& v) { v.bos = kNoToken; }, "a bos token is to be added"},
      {[](Vocabulary& v) { v.end_tokens.push_back(12); }, "end token is 12"},
  };
  for (const Case& bad : kCases) {
    Vocabulary v = small_vocabulary();
    bad.spoil(v);
    const auto section = build_tokenizer_section(v);
    ASSERT_FALSE(section) << bad.message;
    EXPECT_EQ(section.error().code(), ErrorCode::invalid_argument) << bad.message;
    EXPECT_NE(section.error().message().find(bad.message), std::string::npos)
        << section.error().message() << "\nexpected: " << bad.message;
  }
}

TEST(TokenizerSection, TokensThatMayShareTheirBytes) {
  Vocabulary v = small_vocabulary();
  v.tokens[6] = "ab";  // user-defined, as token 3 is plain: some models list white space twice
  v.tokens[8] = "c";   // unused
  v.tokens.push_back("</s>");
  v.types.push_back(TokenType::unused);
  const OpenedTokenizer opened(v);
  EXPECT_EQ(opened.view.find("ab"), 3u);
  EXPECT_EQ(opened.view.find("c"), 2u);
  EXPECT_EQ(opened.view.find("</s>"), 5u);
  EXPECT_TRUE(std::ranges::equal(opened.view.special_tokens(), Ids{5, 6}));
  // In a text the special one comes first.
  EXPECT_EQ(encode(opened.tokenizer, "abc", {.add_special = false}), (std::vector<Token>{6, 2}));
}

TEST(TokenizerSection, WithoutMergesAndSpecialTokens) {
  Vocabulary v;
  v.tokens = {"a"};
  v.types = {TokenType::normal};
  const OpenedTokenizer opened(v);
  EXPECT_TRUE(opened.view.special_tokens().empty());
  EXPECT_TRUE(opened.view.end_tokens().empty());
  EXPECT_EQ(opened.view.merge(0, 0), std::nullopt);
  EXPECT_EQ(encode(opened.tokenizer, "aa"), (std::vector<Token>{0, 0}));
}

// 250,000 tokens and as many merges, less the bytes: opening copies nothing of them.
TEST(TokenizerSection, ALargeVocabularyOpensInPlace) {
  Vocabulary v = byte_vocabulary();
  for (std::uint32_t i = 0; v.tokens.size() < 250000; ++i) {
    const std::uint32_t right = i % 256;
    v.merges.push_back({i / 256, right, static_cast<std::uint32_t>(v.tokens.size())});
    v.tokens.push_back(v.tokens[i / 256] + v.tokens[right]);
  }
  v.types.resize(v.tokens.size(), TokenType::normal);
  const auto section = build_tokenizer_section(v);
  ASSERT_TRUE(section) << section.error().message();
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = allocated();
  const auto view = TokenizerView::parse(*section, 250000);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_LE(allocated(), before);
  EXPECT_TRUE(view->check());
  const auto tokenizer = make_tokenizer(*view);
  ASSERT_TRUE(tokenizer);
  EXPECT_LE(allocated(), before + 64 * 1024);  // the compiled split pattern and a few tables
}

}  // namespace
}  // namespace tsq
