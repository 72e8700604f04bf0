// The tokenizer section of a .tsq file: flat arrays and lookup tables that are used as they lie in
// the map. FORMAT.md draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tsq/error.h"

namespace tsq::format {

// The numbers stand in files.
enum class TokenType : std::uint8_t {  // GGUF's numbering
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};
// Found in a text before it is split: user-defined ones always, control ones where that is asked.
constexpr bool is_special(TokenType type) {
  return type == TokenType::control || type == TokenType::user_defined;
}
enum class TokenizerModel : std::uint32_t { byte_bpe = 1, sentencepiece_bpe = 2 };
// Of byte_bpe.

enum class PreTokenizer : std::uint32_t {
  gpt2 = 1,
  smollm = 2,
  qwen2 = 3,
  llama_bpe = 4,
  qwen35 = 5,
  deepseek_v3 = 6
};

inline constexpr std::uint32_t kNoToken = 0xffffffff;

// Room for the largest vocabularies (Gemma: 262,144 tokens, up to 580,604 merges), and a bound to
// the memory that reading one takes.
inline constexpr std::uint32_t kMaxTokens = 9u << 15;     // 294,912
inline constexpr std::uint32_t kMaxMerges = 9u << 16;     // 589,824
inline constexpr std::uint32_t kMaxTextBytes = 3u << 20;  // of all tokens

// A vocabulary as a converter has it.
struct Vocabulary {
  TokenizerModel model = TokenizerModel::byte_bpe;
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
  std::vector<std::string> tokens;  // the bytes each token stands for
  std::vector<TokenType> types;     // one a token
  struct Merge {
    std::uint32_t left, right, result;
  };
  std::vector<Merge> merges;  // byte_bpe: in the order of their rank
  std::vector<float> scores;  // sentencepiece_bpe: one a token
  std::uint32_t bos = kNoToken, eos = kNoToken, unknown = kNoToken, padding = kNoToken;
  std::vector<std::uint32_t> end_tokens;  // every token that ends a turn: eos, eot ...
  bool add_bos = false;
  bool add_eos = false;
  bool nfc = false;           // text is brought into Unicode's form C first
  bool whole_pieces = false;  // a piece that is a token is not made by merges
  bool space_prefix = false;  // sentencepiece_bpe: a space is put before a text
};

// Errors (invalid_argument) name the token or merge: an id or a type that does not exist, two
// tokens of the same bytes where neither is special or unused, a merge whose sides do not make its
// result, a score that is not finite. end_tokens gain eos.
Result<std::vector<std::byte>> build_tokenizer_section(const Vocabulary& vocabulary);

// A view of the section. parse() checks every offset and id, so that no later call can leave it;
// it allocates nothing that grows with the vocabulary.
class TokenizerView {
 public:
  // The section starts at a multiple of 4 bytes in memory, outlives the view and has exactly
  // vocab_size tokens. Errors: damaged; unsupported for a model or a pre-tokenizer that this build
  // does not know.
  static Result<TokenizerView> parse(std::span<const std::byte> section, std::uint32_t vocab_size);

  // What parse() leaves out because opening does not need it: every token and every merge is found
  // by its lookup, and the two sides of a merge make its result. For verify.
  Result<void> check() const;

  // What the section was built from.
  Vocabulary vocabulary() const;

  TokenizerModel model() const { return model_; }
  PreTokenizer pre_tokenizer() const { return pre_tokenizer_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(types_.size()); }
  std::string_view token(std::uint32_t id) const {  // requires id < size()
    return text_.substr(text_offsets_[id], text_offsets_[id + 1] - text_offsets_[id]);
  }
  TokenType type(std::uint32_t id) const { return static_cast<TokenType>(types_[id]); }
  // Of two tokens with the same bytes, the one that is neither special nor of type byte or unused.
  std::optional<std::uint32_t> find(std::string_view bytes) const;
  std::uint32_t merge_count() const { return static_cast<std::uint32_t>(merges_.size() / 3); }
  struct Merged {
    std::uint32_t rank, result;
  };
  std::optional<Merged> merge(std::uint32_t left, std::uint32_t right) const;
  // Requires sentencepiece_bpe. Not a number, or infinite, where the file is damaged.
  float score(std::uint32_t id) const { return scores_[id]; }
  // Control and user-defined tokens with text, longest first.
  std::span<const std::uint32_t> special_tokens() const { return special_; }
  std::span<const std::uint32_t> end_tokens() const { return end_; }  // ascending
  // kNoToken: none.
  std::uint32_t bos() const { return bos_; }
  std::uint32_t eos() const { return eos_; }
  std::uint32_t unknown() const { return unknown_; }
  std::uint32_t padding() const { return padding_; }
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }
  bool nfc() const { return nfc_; }
  bool whole_pieces() const { return whole_pieces_; }
  bool space_prefix() const { return space_prefix_; }

 private:
  Result<void> check_special() const;

  TokenizerModel model_ = TokenizerModel::byte_bpe;
  PreTokenizer pre_tokenizer_ = PreTokenizer::gpt2;
  std::uint32_t bos_ = kNoToken, eos_ = kNoToken, unknown_ = kNoToken, padding_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false, whole_pieces_ = false, nfc_ = false,
       space_prefix_ = false;
  std::span<const std::uint32_t> text_offsets_, merges_, string_slots_, merge_slots_, special_,
      end_;
  std::span<const float> scores_;
  std::span<const std::uint8_t> types_;
  std::string_view text_;
};

}  // namespace tsq::format
