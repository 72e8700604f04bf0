#include "tokenizer_files.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <ctime>
#include <fstream>
#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/make.h"
#include "tokenizer/sentencepiece.h"

namespace tsq {
namespace {

using format::TokenType;
using format::Vocabulary;

// Without it a test cannot go on: it ends with the message.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return *std::move(result);
}

}  // namespace

nlohmann::json read_json(const char* name) {
  return nlohmann::json::parse(std::ifstream(std::string(TSQ_TEST_DATA "/tokenizer/") + name));
}

Vocabulary trained_vocabulary(format::PreTokenizer pre) {
  const nlohmann::json file = read_json("vocabulary.json");
  const auto texts = file["tokens"].get<std::vector<std::string>>();
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = pre;
  vocabulary.whole_pieces = pre == format::PreTokenizer::llama_bpe;
  std::unordered_map<std::string, std::uint32_t> ids;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto type = static_cast<TokenType>(file["token_types"][i].get<int>());
    vocabulary.types.push_back(type);
    vocabulary.tokens.push_back(
        type == TokenType::normal ? bytes_from_gpt2_alphabet(texts[i]).value() : texts[i]);
    ids[texts[i]] = static_cast<std::uint32_t>(i);
  }
  for (const auto& line : file["merges"].get<std::vector<std::string>>()) {
    const std::size_t space = line.find(' ');
    const std::string left = line.substr(0, space), right = line.substr(space + 1);
    vocabulary.merges.push_back({ids.at(left), ids.at(right), ids.at(left + right)});
  }
  return vocabulary;
}

Vocabulary sentencepiece_vocabulary(bool space_prefix) {
  const nlohmann::json file = read_json("sentencepiece.json");
  Vocabulary vocabulary;
  vocabulary.model = format::TokenizerModel::sentencepiece_bpe;
  vocabulary.space_prefix = space_prefix;
  vocabulary.scores = file["scores"].get<std::vector<float>>();
  for (const int type : file["token_types"].get<std::vector<int>>()) {
    const auto text = file["tokens"][vocabulary.tokens.size()].get<std::string>();
    vocabulary.types.push_back(static_cast<TokenType>(type));
    if (vocabulary.types.back() == TokenType::byte) {  // <0x41>
      const int byte = std::stoi(text.substr(3, 2), nullptr, 16);
      vocabulary.tokens.push_back(std::string(1, static_cast<char>(byte)));
    } else {
      vocabulary.tokens.push_back(replace_space_marks(text));
    }
  }
  return vocabulary;
}

Vocabulary byte_vocabulary(const std::vector<std::pair<std::string, TokenType>>& more) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(std::string(1, static_cast<char>(byte)));
    vocabulary.types.push_back(TokenType::normal);
  }
  for (const auto& [text, type] : more) {
    vocabulary.tokens.push_back(text);
    vocabulary.types.push_back(type);
  }
  return vocabulary;
}

OpenedTokenizer::OpenedTokenizer(const Vocabulary& vocabulary)
    : section(value_of(format::build_tokenizer_section(vocabulary))),
      view(value_of(format::TokenizerView::parse(
          section, static_cast<std::uint32_t>(vocabulary.tokens.size())))),
      tokenizer(value_of(make_tokenizer(view))) {}

std::vector<Token> encode(const Tokenizer& tokenizer, std::string_view text,
                          const EncodeOptions& options) {
  auto tokens = tokenizer.encode(text, options);
  if (tokens) return *std::move(tokens);
  ADD_FAILURE() << tokens.error().message();
  return {};
}

std::vector<std::string> long_texts() {
  const auto repeat = [](std::string_view unit, std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += unit;
    return text;
  };
  return {repeat("a", 131072),
          repeat("ab", 500000),
          repeat("\xe6\x97\xa5", 100000),  // a letter of three bytes
          repeat(" ", 200000),
          repeat(" ", 200000) + "x",
          repeat("\n", 200000) + repeat(" ", 200000) + "x",
          repeat(" \n", 100000) + "x",
          repeat("7", 100000),
          repeat("!", 200000),
          repeat("'", 200000),
          repeat("\xff", 200000),
          repeat("a\xff", 100000),
          repeat("\u0301", 131072),
          repeat("\u0301\u0323", 131072),  // in the other order when normalised
          repeat("a\u0301", 100000),
          repeat("\U0001f468\u200d", 50000),
          repeat("\u1100\u1161\u11a7", 50000),
          repeat("<", 200000)};
}

void run_on_a_small_stack(void (*run)()) {
  constexpr double kNotQuadraticSeconds = 60;  // CPU time; one quadratic step takes more
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  const std::clock_t start = std::clock();
  pthread_t thread;
  const auto entry = [](void* argument) -> void* {
    (*static_cast<void (**)()>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, &run), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kNotQuadraticSeconds);
}

}  // namespace tsq
