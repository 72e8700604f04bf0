// tokenizer.json and its neighbours as the keys `tokenizer.*` of a GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/json.h"
#include "import/metadata_builder.h"

namespace tsq::importer {

// Of config.json and the like.
inline constexpr JsonLimits kSettingsLimits = {.values = 1u << 18, .copied_bytes = 4u << 20};

// The texts of the files; nothing where there is no such file.
struct HfTokenizerFiles {
  std::optional<std::string_view> tokenizer;         // tokenizer.json
  std::optional<std::string_view> tokenizer_config;  // tokenizer_config.json
  std::optional<std::string_view> generation_config;
  std::optional<std::string_view> chat_template;  // chat_template.jinja
  FunctionRef<void()> release_tokenizer;  // gives back the memory that reading it took so far
};

// What the keys cannot say.
struct HfTokenizer {
  bool nfc = false, whole_pieces = false;
  std::vector<std::uint32_t> end_tokens;
  std::string unsupported;  // why there is no tokenizer; then the keys hold its template alone
};

// n_tokens: of the embedding; ids that the tokenizer leaves out become unused tokens. damaged: a
// file that is no JSON, a vocabulary or a merge that cannot be.
Result<HfTokenizer> read_hf_tokenizer(const HfTokenizerFiles& files, const Json& config,
                                      std::uint64_t n_tokens, MetadataBuilder& keys);

}  // namespace tsq::importer
