#include "convert/plan.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>

#include "base/errorf.h"
#include "base/utf8.h"
#include "convert/choose.h"

namespace tsq::convert {
namespace {

using format::TensorRecord;

constexpr std::size_t kMaxMetadataBytes = 8u << 20;  // a chat template has some thousands

// Gated DeltaNets whose value heads the importer does not put back into their order.
bool has_tiled_heads(std::string_view architecture) {
  return architecture == "qwen35moe" || architecture == "qwen3next";
}

// BitNet was trained with activations quantised per token; of all others that is not known.
format::ActivationQuant activation_quant(const importer::Checkpoint& checkpoint) {
  const Value* const value = checkpoint.metadata.find("general.architecture");
  const std::string_view architecture = value ? value->as_string().value_or("") : "";
  const bool bitnet =
      architecture == "bitnet" || architecture == "bitnet-25" || architecture == "bitnet-b1.58";
  return bitnet ? format::ActivationQuant::per_token : format::ActivationQuant::per_group;
}

TensorRecord make_record(const importer::Tensor& tensor, const Choice& choice,
                         format::ActivationQuant quant) {
  TensorRecord record;
  record.name = std::string(tensor.name);
  record.encoding = choice.encoding;
  record.flags = choice.flags;
  record.n_dims = tensor.n_dims;
  record.dims = tensor.dims;
  record.input_rotation = tensor.rotation;
  if (format::is_ternary(record.encoding)) {
    record.scale_kind = choice.scale_kind;
    record.activation_quant = tensor.activation_quant.value_or(quant);
  }
  return record;
}

// The text without control characters and broken UTF-8.
std::string model_name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length != 0 && first >= 0x20 && first != 0x7f) name += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return name;
}

Result<std::uint32_t> positive_u32(const Metadata& metadata, const std::string& key) {
  const auto value = metadata.require_u64(key);
  if (!value) return value.error();
  if (*value == 0 || *value > UINT32_MAX) {
    return errorf(ErrorCode::damaged, "key '%s' is %" PRIu64 ", expected 1 to 2^32 - 1",
                  printable(key).c_str(), *value);
  }
  return static_cast<std::uint32_t>(*value);
}

Result<std::uint32_t> vocabulary_size(const importer::Checkpoint& checkpoint) {
  const auto embedding = std::find_if(
      checkpoint.tensors.begin(), checkpoint.tensors.end(),
      [](const importer::Tensor& tensor) { return tensor.name == "token_embd.weight"; });
  if (embedding == checkpoint.tensors.end()) {
    return errorf(ErrorCode::damaged, "tensor 'token_embd.weight' is missing, a model has one");
  }
  const std::uint64_t rows = embedding->rows();
  if (rows > UINT32_MAX) {
    return errorf(ErrorCode::damaged,
                  "tensor 'token_embd.weight' has %" PRIu64 " rows, expected one a token", rows);
  }
  if (checkpoint.vocabulary && checkpoint.vocabulary->tokens.size() != rows) {
    return errorf(ErrorCode::damaged,
                  "tensor 'token_embd.weight' has %" PRIu64
                  " rows, the tokenizer has %zu tokens, expected as many",
                  rows, checkpoint.vocabulary->tokens.size());
  }
  return static_cast<std::uint32_t>(rows);
}

Result<format::Header> make_header(const importer::Checkpoint& checkpoint) {
  if (checkpoint.header) return *checkpoint.header;
  const auto architecture = checkpoint.metadata.require_string("general.architecture");
  if (!architecture) return architecture.error();
  if (has_tiled_heads(*architecture)) {
    return errorf(ErrorCode::unsupported,
                  "architecture '%s' (gated DeltaNet with experts) is not supported: its value "
                  "heads have to be put back into their natural order, as tsq does for qwen35",
                  printable(*architecture).c_str());
  }
  const std::string prefix(*architecture);
  const auto hidden = positive_u32(checkpoint.metadata, prefix + ".embedding_length");
  if (!hidden) return hidden.error();
  const auto layers = positive_u32(checkpoint.metadata, prefix + ".block_count");
  if (!layers) return layers.error();
  const auto vocabulary = vocabulary_size(checkpoint);
  if (!vocabulary) return vocabulary.error();

  format::Header header;
  header.hidden_size = *hidden;
  header.num_layers = *layers;
  header.vocab_size = *vocabulary;
  const Value* name = checkpoint.metadata.find("general.name");
  if (name) header.model_name = model_name(name->as_string().value_or(""));
  return header;
}

// Keys whose content has its own section, or describes the files it came in.
bool is_left_out(std::string_view key) {
  static constexpr std::string_view kOwnSections[] = {
      "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type",
      "tokenizer.ggml.merges"};
  return key.starts_with("prism.hadamard") || key.starts_with("split.") ||
         std::find(std::begin(kOwnSections), std::end(kOwnSections), key) != std::end(kOwnSections);
}

}  // namespace

Result<Plan> plan(const importer::Checkpoint& checkpoint, TernaryEncoding ternary,
                  DenseEncoding dense) {
  Plan plan;
  format::FileContents& contents = plan.contents;
  contents.rotations = checkpoint.rotations;
  auto header = make_header(checkpoint);
  if (!header) return header.error();
  contents.header = std::move(*header);
  const format::ActivationQuant quant = activation_quant(checkpoint);
  for (const importer::Tensor& tensor : checkpoint.tensors) {
    const Choice choice = choose(tensor, ternary, dense);
    contents.tensors.push_back(make_record(tensor, choice, quant));
    plan.fates.push_back(choice.fate);
    if (choice.beyond_f16) plan.beyond_f16.emplace_back(tensor.name);
  }

  ByteWriter metadata;
  for (const Entry& entry : checkpoint.metadata.entries()) {
    if (is_left_out(entry.key)) continue;
    if (metadata.size() + entry.key.size() + entry.value.bytes().size() > kMaxMetadataBytes) {
      return errorf(ErrorCode::unsupported,
                    "key '%s' makes the metadata larger than %zu bytes, more are not supported",
                    printable(entry.key).c_str(), kMaxMetadataBytes);
    }
    write_entry(metadata, entry.key, entry.value);
    ++contents.n_metadata;
  }
  contents.metadata = metadata.take();
  if (checkpoint.vocabulary) {
    auto section = format::build_tokenizer_section(*checkpoint.vocabulary);
    if (!section) return Error(ErrorCode::unsupported, section.error().message());
    contents.tokenizer = std::move(*section);
  }
  return plan;
}

}  // namespace tsq::convert
