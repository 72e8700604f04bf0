// A folder as the Hugging Face hub has it: config.json, safetensors, tokenizer.json.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "import/checkpoint.h"

namespace tsq::importer {

// The bytes of the folder's files.
struct HfFiles {
  struct Weights {
    std::string name;
    Bytes bytes;
  };
  std::string model_name;  // that of the folder
  Bytes config;
  std::vector<Weights> weights;  // model.safetensors, or the files of the index
  std::optional<Bytes> index;    // model.safetensors.index.json
  std::optional<Bytes> tokenizer, tokenizer_config, generation_config, chat_template;
  // Gives back the memory that reading the tokenizer took so far; it can be read again.
  std::function<void()> release_tokenizer = [] {};
};

// The tensors under GGUF's names, the metadata under GGUF's keys. Rows of q and k are reordered
// where GGUF has them so; Llama 3's frequencies become rope_freqs.weight; a tied head is left out.
// BitNet's weight_scale becomes Tensor::scale, the reciprocal (rounded to f32) where the product is
// divided by it. Of Qwen 3.5 the vision tower and the layers of multi-token prediction are left
// out, with a warning. Whatever the bytes, the answer is a checkpoint whose every span is readable,
// or an Error that names the file.
Result<Checkpoint> parse_hf(const HfFiles& files);

Result<OpenedCheckpoint> open_hf_folder(const std::filesystem::path& folder);

// One .safetensors file, with config.json and the others beside it. A shard stands for its model.
Result<OpenedCheckpoint> open_safetensors(const std::filesystem::path& file);

}  // namespace tsq::importer
