#include "import/rotation.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>

#include "base/errorf.h"
#include "format/sections.h"
#include "import/keys.h"

namespace tsq::importer {
namespace {

constexpr std::string_view kPrefix = "prism.hadamard";
constexpr char kVersion[] = "prism.hadamard.version";
constexpr char kBlockSize[] = "prism.hadamard.block_size";
constexpr char kTransform[] = "prism.hadamard.transform";
constexpr char kAxis[] = "prism.hadamard.axis";
constexpr char kSignMode[] = "prism.hadamard.sign_mode";
constexpr char kSignWidths[] = "prism.hadamard.sign_widths";
constexpr char kSignValues[] = "prism.hadamard.sign_values";
constexpr char kForward[] = "prism.hadamard.weight_names";
constexpr char kInverse[] = "prism.hadamard.inverse_weight_names";
constexpr char kGrouped[] = "prism.hadamard.gdn_v_grouped";
constexpr const char* kKeys[] = {kVersion,    kBlockSize,  kTransform, kAxis,    kSignMode,
                                 kSignWidths, kSignValues, kForward,   kInverse, kGrouped};

constexpr char kEmbedding[] = "token_embd.weight";
constexpr std::uint64_t kMaxIntegers = 1u << 20;  // some 30,000 signs are usual

struct Contract {
  std::uint32_t block = 0;
  bool explicit_signs = false;
  std::vector<format::Rotation> by_width;  // explicit signs: one a width
  std::vector<std::string_view> forward, inverse;
  bool gdn_v_grouped = false;
};

bool starts_contract(const Metadata& metadata) {
  return std::any_of(metadata.entries().begin(), metadata.entries().end(),
                     [](const Entry& entry) { return entry.key.starts_with(kPrefix); });
}

void warn_of_unknown_keys(Checkpoint& checkpoint) {
  for (const Entry& entry : checkpoint.metadata.entries()) {
    if (!entry.key.starts_with(kPrefix)) continue;
    if (std::find(std::begin(kKeys), std::end(kKeys), entry.key) != std::end(kKeys)) continue;
    checkpoint.warnings.push_back(
        stringf("key '%s' is not part of the rotation contract and is ignored",
                printable(entry.key).c_str()));
  }
}

Error missing(const char* key) {
  return errorf(ErrorCode::damaged, "key '%s' is missing, the rotation contract needs it", key);
}

Result<std::vector<std::int64_t>> read_integers(const Metadata& metadata, const char* key) {
  const Value* value = metadata.find(key);
  if (!value) return missing(key);
  if (const auto few = check_count(key, *value, kMaxIntegers); !few) return few.error();
  auto numbers = value->as_i64s();
  if (!numbers) return wrong_type(key, *value, "an array of integers");
  return std::move(*numbers);
}

// The names of an array, each once.
Result<std::vector<std::string_view>> read_names(const Metadata& metadata, const char* key) {
  const Value* value = metadata.find(key);
  if (!value) return missing(key);
  if (const auto few = check_count(key, *value, format::kMaxTensors); !few) return few.error();
  // An empty array says nothing of its element type in some writers.
  auto names = value->type() == ValueType::array && value->count() == 0
                   ? std::vector<std::string_view>()
                   : value->as_strings();
  if (!names) return wrong_type(key, *value, "an array of strings");
  auto sorted = *names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return errorf(ErrorCode::damaged, "key '%s' holds '%s' twice, expected each name once", key,
                  printable(*twice).c_str());
  }
  return std::move(*names);
}

// A string of which one value, or one of two, is known.
Result<std::string_view> read_choice(const Metadata& metadata, const char* key,
                                     std::initializer_list<const char*> choices) {
  if (!metadata.find(key)) return missing(key);
  const auto text = metadata.require_string(key);
  if (!text) return text.error();
  std::string expected;
  for (const char* choice : choices) {
    if (*text == choice) return *text;
    expected += (expected.empty() ? "'" : " or '") + std::string(choice) + "'";
  }
  return errorf(ErrorCode::unsupported, "key '%s' is '%s', expected %s", key,
                printable(*text).c_str(), expected.c_str());
}

Result<void> check_version(const Metadata& metadata) {
  if (!metadata.find(kVersion)) return missing(kVersion);
  const auto version = metadata.require_u64(kVersion);
  if (!version) return version.error();
  if (*version == 1) return {};
  return errorf(ErrorCode::unsupported, "key '%s' is %" PRIu64 ", expected 1", kVersion, *version);
}

Result<std::uint32_t> read_block_size(const Metadata& metadata) {
  if (!metadata.find(kBlockSize)) return missing(kBlockSize);
  const auto block = metadata.require_u64(kBlockSize);
  if (!block) return block.error();
  if (*block == 0 || *block > format::kMaxRotationBlock || (*block & (*block - 1)) != 0) {
    return errorf(ErrorCode::damaged, "key '%s' is %" PRIu64 ", expected a power of two up to %u",
                  kBlockSize, *block, format::kMaxRotationBlock);
  }
  return static_cast<std::uint32_t>(*block);
}

// The widths, each once and a whole number of blocks, and in all as many as there are values.
Result<void> check_widths(const std::vector<std::int64_t>& widths, std::size_t n_values,
                          std::uint32_t block) {
  if (widths.empty()) {
    return errorf(ErrorCode::damaged, "key '%s' is empty, explicit signs need their widths",
                  kSignWidths);
  }
  std::uint64_t sum = 0;
  for (const std::int64_t width : widths) {
    if (width <= 0 || width > UINT32_MAX || width % block != 0) {
      return errorf(ErrorCode::damaged,
                    "key '%s' holds %" PRId64
                    ", expected a positive multiple of the block size, %u",
                    kSignWidths, width, block);
    }
    sum += static_cast<std::uint64_t>(width);  // fewer than 2^32 widths below 2^32
  }
  auto sorted = widths;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return errorf(ErrorCode::damaged, "key '%s' holds %" PRId64 " twice, expected each width once",
                  kSignWidths, *twice);
  }
  if (sum != n_values) {
    return errorf(ErrorCode::damaged,
                  "key '%s' holds %zu values, the widths of '%s' add up to %" PRIu64, kSignValues,
                  n_values, kSignWidths, sum);
  }
  return {};
}

Result<void> check_values(const std::vector<std::int64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 1 || values[i] == -1) continue;
    return errorf(ErrorCode::damaged, "key '%s' holds %" PRId64 " at %zu, expected +1 or -1",
                  kSignValues, values[i], i);
  }
  return {};
}

// The sign bits of a width; none where every sign is +1.
std::vector<std::uint32_t> sign_bits(std::span<const std::int64_t> values) {
  if (std::find(values.begin(), values.end(), -1) == values.end()) return {};
  std::vector<std::uint32_t> bits((values.size() + 31) / 32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) bits[i / 32] |= 1u << (i % 32);
  }
  return bits;
}

Result<void> read_signs(const Metadata& metadata, Contract& contract) {
  const auto mode = read_choice(metadata, kSignMode, {"explicit", "identity"});
  if (!mode) return mode.error();
  contract.explicit_signs = *mode == "explicit";
  // With identity the widths and values say nothing and may be left out; a -1 contradicts it.
  if (!contract.explicit_signs && !metadata.find(kSignValues)) return {};
  const auto values = read_integers(metadata, kSignValues);
  if (!values) return values.error();
  if (const auto legal = check_values(*values); !legal) return legal;
  if (!contract.explicit_signs) {
    if (std::find(values->begin(), values->end(), -1) == values->end()) return {};
    return errorf(ErrorCode::damaged, "key '%s' is 'identity', but '%s' holds -1", kSignMode,
                  kSignValues);
  }
  const auto widths = read_integers(metadata, kSignWidths);
  if (!widths) return widths.error();
  if (const auto legal = check_widths(*widths, values->size(), contract.block); !legal) {
    return legal;
  }
  std::span<const std::int64_t> rest = *values;
  for (const std::int64_t width : *widths) {
    const auto n = static_cast<std::size_t>(width);
    contract.by_width.push_back(
        {contract.block, static_cast<std::uint32_t>(width), sign_bits(rest.first(n))});
    rest = rest.subspan(n);
  }
  return {};
}

// output.weight, or blk.N.KIND.weight with a kind whose input the contract's engine rotates.
bool is_allowed(std::string_view name) {
  if (name == "output.weight") return true;
  if (!name.starts_with("blk.") || !name.ends_with(".weight")) return false;
  name.remove_prefix(4);
  name.remove_suffix(std::string_view(".weight").size());
  const std::size_t dot = name.find('.');
  if (dot == 0 || dot == std::string_view::npos) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(dot), is_digit)) {
    return false;
  }
  static constexpr std::string_view kKinds[] = {
      "attn_q",           "attn_k",        "attn_v",         "attn_qkv",     "attn_gate",
      "attn_output",      "ffn_gate",      "ffn_up",         "ffn_down",     "ffn_gate_exps",
      "ffn_up_exps",      "ffn_down_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp",
      "ffn_gate_up_exps", "ssm_out"};
  return std::find(std::begin(kKinds), std::end(kKinds), name.substr(dot + 1)) != std::end(kKinds);
}

Result<void> read_weight_names(const Metadata& metadata, Contract& contract) {
  auto forward = read_names(metadata, kForward);
  if (!forward) return forward.error();
  if (forward->empty()) {
    return errorf(ErrorCode::damaged,
                  "key '%s' is empty, expected the names of the rotated weights", kForward);
  }
  for (const std::string_view name : *forward) {
    if (is_allowed(name)) continue;
    return errorf(ErrorCode::unsupported,
                  "key '%s' holds '%s', expected output.weight or a matrix of attention, "
                  "feed-forward or ssm_out",
                  kForward, printable(name).c_str());
  }
  auto inverse = read_names(metadata, kInverse);
  if (!inverse) return inverse.error();
  for (const std::string_view name : *inverse) {
    if (name == kEmbedding) continue;
    return errorf(ErrorCode::unsupported, "key '%s' holds '%s', expected '%s' alone", kInverse,
                  printable(name).c_str(), kEmbedding);
  }
  contract.forward = std::move(*forward);
  contract.inverse = std::move(*inverse);
  return {};
}

Result<void> read_grouped(const Metadata& metadata, Contract& contract) {
  const Value* value = metadata.find(kGrouped);
  if (!value) return {};
  const auto flag = value->as_bool();
  if (!flag) return wrong_type(kGrouped, *value, "a boolean");
  contract.gdn_v_grouped = *flag;
  return {};
}

Result<void> check_architecture(const Metadata& metadata) {
  const auto architecture = metadata.require_string("general.architecture");
  if (!architecture) return architecture.error();
  static constexpr std::string_view kKnown[] = {"llama",     "qwen3",     "qwen3moe", "qwen35",
                                                "qwen35moe", "qwen3next", "dspark"};
  if (std::find(std::begin(kKnown), std::end(kKnown), *architecture) != std::end(kKnown)) return {};
  return errorf(ErrorCode::unsupported,
                "rotated weights in a model of architecture '%s', the contract covers llama qwen3 "
                "qwen3moe qwen35 qwen35moe qwen3next dspark",
                printable(*architecture).c_str());
}

Result<Contract> read_contract(const Metadata& metadata) {
  Contract contract;
  if (const auto version = check_version(metadata); !version) return version.error();
  const auto block = read_block_size(metadata);
  if (!block) return block.error();
  contract.block = *block;
  const auto transform = read_choice(metadata, kTransform, {"normalized-sylvester-walsh-hadamard"});
  if (!transform) return transform.error();
  const auto axis = read_choice(metadata, kAxis, {"input-last-dimension"});
  if (!axis) return axis.error();
  if (const auto signs = read_signs(metadata, contract); !signs) return signs.error();
  if (const auto names = read_weight_names(metadata, contract); !names) return names.error();
  if (const auto grouped = read_grouped(metadata, contract); !grouped) return grouped.error();
  if (const auto known = check_architecture(metadata); !known) return known.error();
  return contract;
}

// The contract's tensors by name, and the rotations they use.
class Binder {
 public:
  Binder(Checkpoint& checkpoint, const Contract& contract)
      : checkpoint_(checkpoint), contract_(contract) {
    for (Tensor& tensor : checkpoint.tensors) by_name_.push_back(&tensor);
    std::sort(by_name_.begin(), by_name_.end(),
              [](const Tensor* a, const Tensor* b) { return a->name < b->name; });
  }

  Result<void> bind(const char* key, std::string_view name) {
    const auto found =
        std::lower_bound(by_name_.begin(), by_name_.end(), name,
                         [](const Tensor* tensor, std::string_view n) { return tensor->name < n; });
    const std::string shown = printable(name);
    if (found == by_name_.end() || (*found)->name != name) {
      return errorf(ErrorCode::damaged, "key '%s' holds '%s', but there is no such tensor%s", key,
                    shown.c_str(),
                    name == "output.weight" ? " (a tied head goes with token_embd.weight)" : "");
    }
    Tensor& tensor = **found;
    if (tensor.n_dims < 2) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s' is named by '%s' but is no matrix: it has 1 dim", shown.c_str(),
                    key);
    }
    auto rotation = rotation_of(tensor.cols(), shown);
    if (!rotation) return rotation.error();
    tensor.rotation = *rotation;
    return {};
  }

 private:
  // The index of the rotation for this input width, which becomes part of the checkpoint.
  Result<std::uint32_t> rotation_of(std::uint64_t width, const std::string& tensor) {
    auto& used = checkpoint_.rotations;
    for (std::uint32_t i = 0; i < used.size(); ++i) {
      if (used[i].width == width) return i;
    }
    const auto rotation = make_rotation(width, tensor);
    if (!rotation) return rotation.error();
    used.push_back(*rotation);
    return static_cast<std::uint32_t>(used.size() - 1);
  }

  Result<format::Rotation> make_rotation(std::uint64_t width, const std::string& tensor) const {
    if (contract_.explicit_signs) {
      for (const format::Rotation& rotation : contract_.by_width) {
        if (rotation.width == width) return rotation;
      }
      return errorf(ErrorCode::damaged,
                    "tensor '%s' has %" PRIu64 " inputs, but '%s' holds no such width",
                    tensor.c_str(), width, kSignWidths);
    }
    if (width % contract_.block != 0 || width > UINT32_MAX) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s' has %" PRIu64 " inputs, expected a multiple of '%s', %u",
                    tensor.c_str(), width, kBlockSize, contract_.block);
    }
    return format::Rotation{contract_.block, static_cast<std::uint32_t>(width), {}};
  }

  Checkpoint& checkpoint_;
  const Contract& contract_;
  std::vector<Tensor*> by_name_;  // sorted
};

}  // namespace

Result<void> read_rotation_contract(Checkpoint& checkpoint) {
  if (!starts_contract(checkpoint.metadata)) return {};
  warn_of_unknown_keys(checkpoint);
  const auto contract = read_contract(checkpoint.metadata);
  if (!contract) return contract.error();
  Binder binder(checkpoint, *contract);
  for (const std::string_view name : contract->inverse) {
    if (const auto bound = binder.bind(kInverse, name); !bound) return bound;
  }
  for (const std::string_view name : contract->forward) {
    if (const auto bound = binder.bind(kForward, name); !bound) return bound;
    if (name.ends_with(".ssm_out.weight") && !contract->gdn_v_grouped) {
      return errorf(ErrorCode::unsupported,
                    "tensor '%s' is rotated without '%s' = true: its value heads were permuted "
                    "before the rotation, which cannot be undone",
                    printable(name).c_str(), kGrouped);
    }
  }
  checkpoint.gdn_v_grouped = contract->gdn_v_grouped;
  return {};
}

}  // namespace tsq::importer
