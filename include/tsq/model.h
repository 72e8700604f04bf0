// An opened model: what the file holds, shared by any number of sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tsq/export.h"
#include "tsq/tokenizer.h"

namespace tsq {

// Weights that were repacked (Loader::with_repack): how many, their bytes in memory, and what they
// weigh in the file.
struct RepackTotals {
  std::uint64_t tensors = 0, bytes = 0, file_bytes = 0;
};

// Read-only after load; move-only. It frees the mapping at the end of its scope: sessions and the
// views it hands out must be gone by then. May be used by many threads.
class TSQ_API Model {
 public:
  std::string_view name() const;          // general.name, or the header's
  std::string_view architecture() const;  // "llama", "qwen3"
  std::int32_t vocab_size() const;
  std::int32_t n_layers() const;
  std::int32_t hidden_size() const;
  std::int32_t context_length() const;  // tokens the model was trained for
  std::uint64_t file_bytes() const;
  RepackTotals repacked() const;
  // Bytes that a session's key/value cache takes for each token of its context.
  std::uint64_t kv_bytes_per_token(bool f32) const;

  // The template, in Jinja, that makes a prompt of a conversation: tokenizer.chat_template. Nothing
  // where the file has none. A view of the model.
  std::optional<std::string_view> chat_template() const;

  // Null where the file has no tokenizer.
  const Tokenizer* tokenizer() const;

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  struct State;  // opaque: the library's own
  explicit Model(std::unique_ptr<State> state);
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tsq
