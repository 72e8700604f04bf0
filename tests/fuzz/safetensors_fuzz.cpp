// Whatever stands in a file of a Hugging Face folder, the importer answers, and every byte that it
// then promises is readable. hf_parts.h says what an input is.
#include <string_view>

#include "checkpoint_checks.h"
#include "hf_parts.h"
#include "import/hf_folder.h"
#include "safetensors_builder.h"

namespace {

using namespace tsq;

importer::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

const std::vector<std::byte>& sound_weights() {
  static const std::vector<std::byte> file =
      safetensors::Builder()
          .add("model.embed_tokens.weight", "F16", {6, 1}, std::vector<std::byte>(12))
          .build();
  return file;
}

const std::vector<std::byte>& sound_hybrid_weights() {
  static const std::vector<std::byte> file = fuzz::hybrid_weights();
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  importer::HfFiles files;
  files.config = bytes_of(fuzz::kSoundConfig);
  files.tokenizer = bytes_of(fuzz::kSoundTokenizer);
  files.weights.push_back({"a.safetensors", sound_weights()});
  switch (static_cast<char>(data[0])) {
    case fuzz::kWeights:
      files.weights[0].bytes = rest;
      break;
    case fuzz::kIndex:
      files.index = rest;
      break;
    case fuzz::kConfig:
      files.config = rest;
      break;
    case fuzz::kHybridWeights:
      files.config = bytes_of(fuzz::kHybridSoundConfig);
      files.weights[0].bytes = rest;
      break;
    case fuzz::kHybridConfig:
      files.config = rest;
      files.weights[0].bytes = sound_hybrid_weights();
      break;
    case fuzz::kTokenizer:
      files.tokenizer = rest;
      break;
    default:
      files.tokenizer_config = files.generation_config = rest;
      break;
  }
  const auto checkpoint = importer::parse_hf(files);
  if (checkpoint) fuzz::check_checkpoint(*checkpoint);
  return 0;
}
