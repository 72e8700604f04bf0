#include "import/gguf.h"

#include <algorithm>
#include <cinttypes>
#include <new>
#include <optional>
#include <string>

#include "base/errorf.h"
#include "format/sections.h"
#include "import/gguf_part.h"
#include "import/gguf_types.h"
#include "import/rotation.h"
#include "import/value_heads.h"
#include "import/vocabulary.h"

namespace tsq::importer {
namespace {

// The parts in their order: numbers 0 to n - 1, once each.
Result<void> order_parts(std::vector<GgufPart>& parts) {
  const std::uint32_t n_parts = parts.front().n_parts;
  std::sort(parts.begin(), parts.end(),
            [](const GgufPart& a, const GgufPart& b) { return a.number < b.number; });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].n_parts != n_parts) {
      return errorf(ErrorCode::damaged, "key 'split.count' is %u in one part and %u in another",
                    n_parts, parts[i].n_parts);
    }
    if (i > 0 && parts[i].number == parts[i - 1].number) {
      return errorf(ErrorCode::damaged, "key 'split.no' is %u in two parts", parts[i].number);
    }
  }
  for (std::uint32_t i = 0; i < n_parts; ++i) {
    if (i >= parts.size() || parts[i].number != i) {
      return errorf(ErrorCode::not_found, "part %u of %u is missing: %zu of the parts were given",
                    i + 1, n_parts, parts.size());
    }
  }
  return {};
}

// A key of a later part that the first part does not have would be ignored: a rotation among them.
Result<void> check_keys(const std::vector<GgufPart>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (const Entry& entry : parts[i].metadata.entries()) {
      if (entry.key.starts_with("split.") || entry.key.starts_with("general.")) continue;
      const Value* first = parts[0].metadata.find(entry.key);
      if (first && first->type() == entry.value.type() &&
          std::ranges::equal(first->bytes(), entry.value.bytes())) {
        continue;
      }
      return errorf(ErrorCode::damaged,
                    "key '%s' of part %zu %s, expected the keys of the model in the first part",
                    printable(entry.key).c_str(), i + 1,
                    first ? "has another value in part 1" : "is not in part 1");
    }
  }
  return {};
}

Result<void> check_unread(const std::vector<GgufPart>& parts) {
  UnreadTensors all;
  for (const GgufPart& part : parts) {
    if (all.count == 0)
      all = part.unread;
    else
      all.count += part.unread.count;
  }
  if (all.count == 0) return {};
  return errorf(ErrorCode::unsupported,
                "%zu tensors have types that tsq does not read, the first is '%s' (%s); "
                "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K PQ2_0 PTQ1_0 TQ1_0 TQ2_0 "
                "Q1_0 Q2_0 STQ1_0 I2_S IQ1_BN IQ2_BN are read; the file is otherwise intact",
                all.count, printable(all.first_name).c_str(),
                describe_type(all.first_type).c_str());
}

Result<void> check_tensors(const Checkpoint& checkpoint, std::optional<std::uint64_t> promised) {
  const std::size_t n_tensors = checkpoint.tensors.size();
  if (n_tensors > format::kMaxTensors) {
    return errorf(ErrorCode::unsupported,
                  "%zu tensors in all parts, at most %" PRIu64 " are supported", n_tensors,
                  format::kMaxTensors);
  }
  if (promised && *promised != n_tensors) {
    return errorf(ErrorCode::damaged,
                  "key 'split.tensors.count' is %" PRIu64 ", the parts hold %zu tensors", *promised,
                  n_tensors);
  }
  std::vector<std::string_view> names;
  for (const Tensor& tensor : checkpoint.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return errorf(ErrorCode::damaged, "tensor '%s' is in two parts, names are unique",
                printable(*twice).c_str());
}

// Quads of both layouts are sound whatever the bytes: only what the file says of itself, or the
// text that the model makes, tells which is right.
void warn_of_stq_layout(Checkpoint& checkpoint) {
  const auto n = std::ranges::count(checkpoint.tensors, SourceType::stq1_0, &Tensor::type);
  const Value* finetune = checkpoint.metadata.find("general.finetune");
  const bool says_so =
      finetune && finetune->as_string().value_or("").find("stride16") != std::string_view::npos;
  if (n == 0 || says_so) return;
  checkpoint.warnings.push_back(
      stringf("%td tensors are STQ1_0, read as quads of stride 16; where an older program wrote "
              "them, --assume-layout stq-consecutive is right",
              n));
}

Result<Checkpoint> join(std::vector<GgufPart> parts) {
  if (const auto ordered = order_parts(parts); !ordered) return ordered.error();
  if (const auto keys = check_keys(parts); !keys) return keys.error();
  if (const auto read = check_unread(parts); !read) return read.error();

  Checkpoint checkpoint;
  for (const GgufPart& part : parts) {
    checkpoint.tensors.insert(checkpoint.tensors.end(), part.tensors.begin(), part.tensors.end());
  }
  if (const auto tensors = check_tensors(checkpoint, parts.front().n_tensors); !tensors) {
    return tensors.error();
  }
  checkpoint.metadata = std::move(parts.front().metadata);
  warn_of_stq_layout(checkpoint);
  if (const auto rotation = read_rotation_contract(checkpoint); !rotation) return rotation.error();
  if (const auto dropped = drop_nextn_layers(checkpoint); !dropped) return dropped.error();
  if (const auto grouped = group_value_heads(checkpoint); !grouped) return grouped.error();
  if (const auto vocabulary = read_vocabulary(checkpoint); !vocabulary) return vocabulary.error();
  return checkpoint;
}

// NAME-00002-of-00003.gguf, taken apart.
struct SplitName {
  std::string prefix;
  std::uint32_t number, count;
};

std::optional<SplitName> parse_split_name(const std::string& name) {
  constexpr std::size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (name.size() <= kTail || !name.ends_with(".gguf")) return std::nullopt;
  const std::string tail = name.substr(name.size() - kTail);
  const auto five_digits = [&](std::size_t at) -> std::optional<std::uint32_t> {
    std::uint32_t number = 0;
    for (std::size_t i = at; i < at + 5; ++i) {
      if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
      number = number * 10 + static_cast<std::uint32_t>(tail[i] - '0');
    }
    return number;
  };
  const auto number = five_digits(1);
  const auto count = five_digits(10);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !number || !count) return std::nullopt;
  return SplitName{name.substr(0, name.size() - kTail), *number, *count};
}

Result<GgufPart> open_part(OpenedCheckpoint& opened, const std::filesystem::path& path,
                           const AssumedLayouts& assumed) {
  auto map = MappedFile::open(path);
  if (!map) return map.error().at(path.string());
  auto part = parse_gguf_part(map->bytes(), assumed);
  if (!part) return part.error().at(path.string());
  opened.paths.push_back(path);
  opened.maps.push_back(std::move(*map));
  return part;
}

// The other parts of the split file that `part`, opened from path, belongs to.
Result<void> open_siblings(OpenedCheckpoint& opened, const std::filesystem::path& path,
                           const AssumedLayouts& assumed, std::vector<GgufPart>& parts) {
  const std::uint32_t number = parts.front().number + 1;
  const std::uint32_t count = parts.front().n_parts;
  const auto name = parse_split_name(path.filename().string());
  if (!name || name->number != number || name->count != count) {
    return errorf(ErrorCode::invalid_argument,
                  "part %u of %u of a split file has not its usual name "
                  "(NAME-%05u-of-%05u.gguf): rename it, or give every part",
                  number, count, number, count)
        .at(path.string());
  }
  for (std::uint32_t i = 1; i <= count; ++i) {
    if (i == number) continue;
    const auto sibling =
        path.parent_path() / stringf("%s-%05u-of-%05u.gguf", name->prefix.c_str(), i, count);
    auto part = open_part(opened, sibling, assumed);
    if (!part && part.error().code() == ErrorCode::not_found) {
      return errorf(ErrorCode::not_found, "part %u of %u is missing", i, count)
          .at(sibling.string());
    }
    if (!part) return part.error();
    if (part->number + 1 != i || part->n_parts != count) {
      return errorf(ErrorCode::damaged,
                    "keys 'split.no' and 'split.count' say part %u of %u, its name %u of %u",
                    part->number + 1, part->n_parts, i, count)
          .at(sibling.string());
    }
    parts.push_back(std::move(*part));
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_gguf(std::span<const Bytes> files, const AssumedLayouts& assumed) try {
  std::vector<GgufPart> parts;
  for (const Bytes bytes : files) {
    auto part = parse_gguf_part(bytes, assumed);
    if (!part) return part.error();
    parts.push_back(std::move(*part));
  }
  if (parts.empty()) return errorf(ErrorCode::invalid_argument, "no file was given");
  return join(std::move(parts));
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory");
}

Result<OpenedCheckpoint> open_gguf(std::span<const std::filesystem::path> paths,
                                   const AssumedLayouts& assumed) try {
  if (paths.empty()) return errorf(ErrorCode::invalid_argument, "no file was given");
  OpenedCheckpoint opened;
  std::vector<GgufPart> parts;
  for (const auto& path : paths) {
    auto part = open_part(opened, path, assumed);
    if (!part) return part.error();
    parts.push_back(std::move(*part));
  }
  if (paths.size() == 1 && parts.front().n_parts > 1) {
    if (const auto all = open_siblings(opened, paths.front(), assumed, parts); !all) {
      return all.error();
    }
  }
  auto checkpoint = join(std::move(parts));
  if (!checkpoint) return checkpoint.error().at(paths.front().string());
  opened.checkpoint = std::move(*checkpoint);
  for (const MappedFile& map : opened.maps) map.release();
  return opened;
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory while reading the checkpoint");
}

}  // namespace tsq::importer
