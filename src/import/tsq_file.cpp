#include "import/tsq_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <new>

#include "base/errorf.h"
#include "format/reader.h"
#include "format/sections.h"
#include "format/tokenizer_section.h"
#include "format/verify.h"

namespace tsq::importer {
namespace {

// A feature more, and tensor_of has to carry it over.
static_assert(format::kImplementedFeatures == 0x1f);

SourceType type_of(const format::TensorRecord& record) {
  switch (record.encoding) {
    case format::Encoding::f32:
      return SourceType::f32;
    case format::Encoding::f16:
      return SourceType::f16;
    case format::Encoding::bf16:
      return SourceType::bf16;
    case format::Encoding::q8:
      return SourceType::q8_0;
    case format::Encoding::q4:
      return (record.flags & format::kFlagMinimum) != 0 ? SourceType::q4_1 : SourceType::q4_0;
    case format::Encoding::t2:
      return SourceType::t2;
    case format::Encoding::t1:
      return SourceType::t1;
    case format::Encoding::s34:
      break;
  }
  return SourceType::s34;
}

Tensor tensor_of(const format::File& file, const format::TensorRecord& record) {
  Tensor tensor;
  tensor.name = record.name;
  tensor.type = type_of(record);
  tensor.n_dims = record.n_dims;
  tensor.dims = record.dims;
  tensor.data = file.body(record);
  tensor.rotation = record.input_rotation;
  if (format::is_ternary(record.encoding)) {
    tensor.flags = record.flags;
    tensor.scales = file.scales(record);
    tensor.activation_quant = record.activation_quant;
  } else {
    tensor.row_stride = format::dense_row_bytes(record.encoding, record.flags, record.cols());
  }
  return tensor;
}

Result<void> check_contents(const format::File& file) {
  const auto report = format::verify(file);
  if (!report) return report.error();
  if (report->findings.empty()) return {};
  const format::Finding& first = report->findings[0];
  return errorf(ErrorCode::damaged, "%s: found %s, expected %s ('tsq verify' lists every failure)",
                first.where.c_str(), first.found.c_str(), first.expected.c_str());
}

}  // namespace

bool is_tsq(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "TSQ", 4) == 0;
}

bool is_tsq(const std::filesystem::path& path) {
  const auto map = MappedFile::open(path);
  return map && is_tsq(map->bytes());
}

Result<Checkpoint> parse_tsq(std::span<const std::byte> bytes) try {
  auto parsed = format::File::parse(bytes);
  if (!parsed) return parsed.error();
  const auto file = std::make_shared<const format::File>(std::move(*parsed));
  if (const auto sound = check_contents(*file); !sound) return sound.error();

  Checkpoint checkpoint;
  checkpoint.owned.push_back(file);
  for (const format::TensorRecord& record : file->tensors()) {
    checkpoint.tensors.push_back(tensor_of(*file, record));
  }
  checkpoint.metadata = file->metadata();
  checkpoint.rotations.assign(file->rotations().begin(), file->rotations().end());
  if (file->tokenizer_section().empty()) {
    checkpoint.no_vocabulary = "the .tsq file has none";
  } else {
    const auto view =
        format::TokenizerView::parse(file->tokenizer_section(), file->header().vocab_size);
    if (!view) return view.error();
    checkpoint.vocabulary = view->vocabulary();
  }
  checkpoint.header = file->header();
  if (file->header().optional_features != 0) {
    checkpoint.warnings.push_back(stringf("optional features 0x%" PRIx64
                                          " of the .tsq file are not known and left out",
                                          file->header().optional_features));
    checkpoint.header->optional_features = 0;
  }
  checkpoint.token_probe = file->token_probe();
  return checkpoint;
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory");
}

Result<OpenedCheckpoint> open_tsq(const std::filesystem::path& path) {
  auto map = MappedFile::open(path);
  if (!map) return map.error().at(path.string());
  auto checkpoint = parse_tsq(map->bytes());
  if (!checkpoint) return checkpoint.error().at(path.string());
  OpenedCheckpoint opened;
  opened.paths.push_back(path);
  opened.maps.push_back(std::move(*map));
  opened.checkpoint = std::move(*checkpoint);
  return opened;
}

}  // namespace tsq::importer
