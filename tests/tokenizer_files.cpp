#include "tokenizer_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/make.h"

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

}  // namespace tsq
