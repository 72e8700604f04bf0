#include "import/hf_folder.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <system_error>

#include "base/errorf.h"
#include "import/hf_config.h"
#include "import/hf_tensors.h"
#include "import/hf_tokenizer.h"
#include "import/safetensors.h"
#include "import/shard_index.h"
#include "import/vocabulary.h"

namespace tsq::importer {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json";
constexpr char kWeights[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::optional<std::string_view> as_text(const std::optional<Bytes>& bytes) {
  return bytes ? std::optional(as_text(*bytes)) : std::nullopt;
}

// The index and the files say the same: each tensor in the file that the index names, and no other.
Result<void> check_index(const HfFiles& files, const std::vector<Safetensors>& parsed) {
  if (!files.index) return {};
  const auto index = parse_shard_index(as_text(*files.index));
  if (!index) return index.error().at(kIndex);
  struct Place {
    std::string_view tensor, file;
    bool operator<(const Place& other) const {
      return tensor != other.tensor ? tensor < other.tensor : file < other.file;
    }
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> promised, found;
  for (const auto& place : index->places) {
    promised.push_back({place.tensor, index->files[place.file]});
  }
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    for (const SafeTensor& tensor : parsed[i].tensors) {
      found.push_back({tensor.name, files.weights[i].name});
    }
  }
  std::sort(promised.begin(), promised.end());
  std::sort(found.begin(), found.end());
  const auto [missing, extra] = std::ranges::mismatch(promised, found);
  if (missing == promised.end() && extra == found.end()) return {};
  const bool is_missing = extra == found.end() || (missing != promised.end() && *missing < *extra);
  const Place& place = is_missing ? *missing : *extra;
  return errorf(ErrorCode::damaged, "tensor '%s' is %s '%s' %s %s", printable(place.tensor).c_str(),
                is_missing ? "not in" : "in", printable(place.file).c_str(),
                is_missing ? "as promised by" : "but not promised by", kIndex);
}

Result<void> add_tokenizer(const HfFiles& files, const Json& config, MetadataBuilder keys,
                           Checkpoint& checkpoint) {
  const auto embedding = std::ranges::find(checkpoint.tensors, "token_embd.weight", &Tensor::name);
  if (embedding == checkpoint.tensors.end()) {
    return errorf(ErrorCode::damaged, "tensor 'model.embed_tokens.weight' is missing");
  }
  const HfTokenizerFiles texts = {as_text(files.tokenizer), as_text(files.tokenizer_config),
                                  as_text(files.generation_config), as_text(files.chat_template),
                                  files.release_tokenizer};
  auto tokenizer = read_hf_tokenizer(texts, text_config(config), embedding->rows(), keys);
  if (!tokenizer) return tokenizer.error();
  files.release_tokenizer();
  if (const auto finished = keys.finish(checkpoint); !finished) return finished;
  if (!tokenizer->unsupported.empty()) {
    checkpoint.no_vocabulary = (files.tokenizer ? "tokenizer.json: " : "") + tokenizer->unsupported;
    return {};
  }
  if (const auto read = read_vocabulary(checkpoint); !read) {
    return read.error().at("tokenizer.json");
  }
  if (!checkpoint.vocabulary) return {};
  checkpoint.vocabulary->nfc = tokenizer->nfc;
  checkpoint.vocabulary->whole_pieces = tokenizer->whole_pieces;
  auto& ends = checkpoint.vocabulary->end_tokens;
  ends.insert(ends.end(), tokenizer->end_tokens.begin(), tokenizer->end_tokens.end());
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return {};
}

// The files of a folder, mapped.
class Folder {
 public:
  explicit Folder(fs::path path) : path_(std::move(path)) {}

  bool has(const std::string& name) const {
    std::error_code ignored;
    return fs::exists(path_ / name, ignored);
  }
  fs::path at(const std::string& name) const { return path_ / name; }

  Result<Bytes> map(const std::string& name) {
    auto map = MappedFile::open(path_ / name);
    if (!map) return map.error().at(at(name).string());
    opened.paths.push_back(path_ / name);
    opened.maps.push_back(std::move(*map));
    return opened.maps.back().bytes();
  }
  // Nothing where there is no such file.
  Result<void> map_if_there(const std::string& name, std::optional<Bytes>& bytes) {
    if (!has(name)) return {};
    const auto mapped = map(name);
    if (!mapped) return mapped.error();
    bytes = *mapped;
    return {};
  }

  OpenedCheckpoint opened;

 private:
  fs::path path_;
};

Error no_weights(const Folder& folder) {
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin"}) {
    if (!folder.has(other)) continue;
    return errorf(ErrorCode::unsupported,
                  "PyTorch's pickles are not read: they can run code; expected %s (transformers "
                  "writes it with save_pretrained)",
                  kWeights)
        .at(folder.at(other).string());
  }
  return errorf(ErrorCode::not_found, "there is neither %s nor %s", kWeights, kIndex)
      .at(folder.at("").parent_path().string());
}

// The names of the folder's weight files; weights: one that was asked for, or empty.
Result<std::vector<std::string>> choose_weights(Folder& folder, const std::string& weights,
                                                HfFiles& files) {
  const bool alone = weights.empty() ? folder.has(kWeights) : weights == kWeights;
  if (!alone && folder.has(kIndex)) {
    const auto mapped = folder.map_if_there(kIndex, files.index);
    if (!mapped) return mapped.error();
    auto index = parse_shard_index(as_text(*files.index));
    if (!index) return index.error().at(folder.at(kIndex).string());
    if (weights.empty() || std::ranges::find(index->files, weights) != index->files.end()) {
      return std::move(index->files);
    }
    files.index.reset();
  }
  if (!weights.empty()) return std::vector<std::string>{weights};
  if (alone) return std::vector<std::string>{kWeights};
  return no_weights(folder);
}

Result<OpenedCheckpoint> open_folder(const fs::path& path, const std::string& weights) try {
  Folder folder(path);
  HfFiles files;
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(path, ignored);
  files.model_name = whole.filename().string();
  if (!folder.has(kConfig)) {
    return errorf(ErrorCode::not_found,
                  "is missing: the folder of a Hugging Face model has one beside the weights")
        .at(folder.at(kConfig).string());
  }
  const auto config = folder.map(kConfig);
  if (!config) return config.error();
  files.config = *config;
  const auto names = choose_weights(folder, weights, files);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const auto mapped = folder.map(name);
    if (!mapped) return mapped.error();
    files.weights.push_back({name, *mapped});
  }
  for (const auto& [name, bytes] : {std::pair("tokenizer.json", &files.tokenizer),
                                    std::pair("tokenizer_config.json", &files.tokenizer_config),
                                    std::pair("generation_config.json", &files.generation_config),
                                    std::pair("chat_template.jinja", &files.chat_template)}) {
    if (const auto mapped = folder.map_if_there(name, *bytes); !mapped) return mapped.error();
  }
  files.release_tokenizer = [&] {
    for (const MappedFile& map : folder.opened.maps) {
      if (files.tokenizer && map.bytes().data() == files.tokenizer->data()) map.release();
    }
  };
  auto checkpoint = parse_hf(files);
  if (!checkpoint) return checkpoint.error().at(path.string());
  folder.opened.checkpoint = std::move(*checkpoint);
  for (const MappedFile& map : folder.opened.maps) map.release();
  return std::move(folder.opened);
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory while reading the checkpoint");
} catch (const std::system_error& e) {
  return errorf(ErrorCode::io, "%s", e.what());
}

}  // namespace

Result<Checkpoint> parse_hf(const HfFiles& files) try {
  const auto config = JsonDocument::parse(as_text(files.config), kSettingsLimits);
  if (!config) return config.error().at(kConfig);
  Checkpoint checkpoint;
  MetadataBuilder keys;
  const auto model = read_hf_config(config->root(), keys);
  if (!model) return model.error().at(kConfig);
  if (!files.model_name.empty()) keys.add("general.name", std::string_view(files.model_name));

  std::vector<Safetensors> parsed;
  for (const HfFiles::Weights& file : files.weights) {
    auto tensors = parse_safetensors(file.bytes);
    if (!tensors) return tensors.error().at(file.name);
    parsed.push_back(std::move(*tensors));
  }
  if (const auto agreed = check_index(files, parsed); !agreed) return agreed.error();
  if (const auto added = add_hf_tensors(parsed, *model, checkpoint); !added) return added.error();
  const auto read = add_tokenizer(files, config->root(), std::move(keys), checkpoint);
  if (!read) return read.error();
  return checkpoint;
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory");
}

Result<OpenedCheckpoint> open_hf_folder(const fs::path& folder) { return open_folder(folder, ""); }

Result<OpenedCheckpoint> open_safetensors(const fs::path& file) {
  const fs::path parent = file.parent_path();
  return open_folder(parent.empty() ? "." : parent, file.filename().string());
}

}  // namespace tsq::importer
