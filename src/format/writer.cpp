#include "format/writer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "base/byte_writer.h"
#include "base/checked.h"
#include "base/errorf.h"
#include "base/utf8.h"
#include "format/reader.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

// The name cut at a character so that it fits the header.
void cut_model_name(std::string& name) {
  if (name.size() <= kModelNameBytes) return;
  name.resize(kModelNameBytes);
  name.resize(name.size() - utf8_incomplete_tail(name));
}

// Fills what follows from the other fields and returns the bytes of the data section. Fields that
// make no sense are left for the check of the finished front.
Result<std::uint64_t> place_tensors(std::span<TensorRecord> tensors) {
  std::uint64_t end = 0;
  for (TensorRecord& tensor : tensors) {
    tensor.group_size = group_size(tensor.shape());
    tensor.body_bytes = body_bytes(tensor.shape()).value_or(0);
    tensor.scale_bytes = scale_bytes(tensor.shape()).value_or(0);
    tensor.residual_offset = tensor.residual_bytes = 0;
    tensor.digest = tensor.zero_count = 0;
    const auto start = checked_round_up(end, kAlignment);
    auto next = start ? checked_add(*start, tensor.body_bytes) : std::nullopt;
    tensor.scale_offset = 0;
    if (next && tensor.scale_bytes != 0) {
      const auto scales = checked_round_up(*next, kAlignment);
      tensor.scale_offset = scales.value_or(0);
      next = scales ? checked_add(*scales, tensor.scale_bytes) : std::nullopt;
    }
    if (!next || !checked_round_up(*next, kDataAlignment))
      return errorf(ErrorCode::invalid_argument, "tensor '%s': the data section exceeds 2^64 bytes",
                    printable(tensor.name).c_str());
    tensor.body_offset = *start;
    end = *next;
  }
  return round_up(end, kAlignment);
}

// What is damage in a file is a caller's wrong value here.
Error as_argument(const Error& error) {
  if (error.code() != ErrorCode::damaged) return error;
  return {ErrorCode::invalid_argument, error.message()};
}

}  // namespace

Result<Writer> Writer::create(const std::filesystem::path& target, FileContents contents) {
  cut_model_name(contents.header.model_name);
  for (std::size_t i = 0; i < contents.rotations.size(); ++i) {
    const Rotation& rotation = contents.rotations[i];
    const std::size_t words = (std::size_t{rotation.width} + 31) / 32;
    if (!rotation.signs.empty() && rotation.signs.size() != words)
      return errorf(ErrorCode::invalid_argument,
                    "rotation %zu: %zu words of signs were given, expected %zu for a width of %u",
                    i, rotation.signs.size(), words, rotation.width);
  }
  const auto data_bytes = place_tensors(contents.tensors);
  if (!data_bytes) return data_bytes.error();
  const DerivedFields fields = derive_fields(contents.tensors, contents.rotations);
  contents.header.quant_type = fields.quant_type;
  contents.header.hadamard_order = fields.hadamard_order;
  contents.header.critical_features = fields.critical_features;

  Writer writer(target, std::move(contents), *data_bytes);
  const auto front = writer.checked_front({});
  if (!front) return front.error();
  writer.data_offset_ = front->size();
  auto out = OutputFile::create(target);
  if (!out) return out.error().at(target.string());
  writer.out_ = std::move(*out);
  return writer;
}

Result<std::vector<std::byte>> Writer::checked_front(const TokenProbe& probe) const {
  HeaderBlock block;
  block.header = contents_.header;
  ByteWriter out;
  out.reserve(contents_.metadata.size() + contents_.tokenizer.size() + 2 * kDataAlignment +
              2 * kTensorRecordBytes * contents_.tensors.size());
  out.write_bytes(std::vector<std::byte>(kHeaderBytes));  // filled last
  const auto add_section = [&](Section section, std::uint64_t count, auto write) {
    out.pad_to(kAlignment);
    SectionEntry& entry = block.sections[section];
    entry.offset = out.size();
    write();
    entry.bytes = out.size() - entry.offset;
    entry.count = count;
    entry.digest = sha256(out.bytes().subspan(entry.offset));
  };
  add_section(kRunLengthIndex, 0, [] {});
  add_section(kMetadata, contents_.n_metadata, [&] { out.write_bytes(contents_.metadata); });
  add_section(kRotations, contents_.rotations.size(),
              [&] { write_rotations(out, contents_.rotations); });
  add_section(kTensors, contents_.tensors.size(), [&] { write_tensors(out, contents_.tensors); });
  add_section(kTokenizer, 0, [&] { out.write_bytes(contents_.tokenizer); });
  add_section(kProbes, contents_.rotation_probes.size(),
              [&] { write_probes(out, probe, contents_.rotation_probes); });
  out.pad_to(kDataAlignment);
  block.sections[kData].offset = out.size();
  block.sections[kData].bytes = data_bytes_;
  block.file_bytes = out.size() + data_bytes_;

  auto front = out.take();
  const auto header = write_header(block);
  std::copy(header.begin(), header.end(), front.begin());
  const auto parsed = File::parse_front(front, block.file_bytes, {.check_digests = false});
  if (!parsed) return as_argument(parsed.error());
  return front;
}

Result<void> Writer::append(std::span<const std::byte> body) {
  if (next_tensor_ == contents_.tensors.size())
    return errorf(ErrorCode::invalid_argument, "a tensor was added behind the last one");
  const TensorRecord& tensor = contents_.tensors[next_tensor_];
  if (body.size() > tensor.body_bytes - written_)
    return errorf(ErrorCode::invalid_argument,
                  "tensor '%s': more than its %" PRIu64 " body bytes were added",
                  printable(tensor.name).c_str(), tensor.body_bytes);
  const std::uint64_t offset = data_offset_ + tensor.body_offset + written_;
  if (auto done = out_->write_at(offset, body); !done) return done.error().at(target_.string());
  digest_.update(body);
  written_ += body.size();
  return {};
}

Result<void> Writer::end_tensor(std::span<const float> scales, std::uint64_t zero_count) {
  if (next_tensor_ == contents_.tensors.size())
    return errorf(ErrorCode::invalid_argument, "a tensor was ended behind the last one");
  TensorRecord& tensor = contents_.tensors[next_tensor_];
  if (written_ != tensor.body_bytes || scales.size_bytes() != tensor.scale_bytes)
    return errorf(ErrorCode::invalid_argument,
                  "tensor '%s': %" PRIu64 " body and %zu scale bytes were added, expected %" PRIu64
                  " and %" PRIu64,
                  printable(tensor.name).c_str(), written_, scales.size_bytes(), tensor.body_bytes,
                  tensor.scale_bytes);
  if (!scales.empty()) {
    const auto bytes = std::as_bytes(scales);
    const std::uint64_t offset = data_offset_ + tensor.scale_offset;
    if (auto done = out_->write_at(offset, bytes); !done) return done.error().at(target_.string());
    digest_.update(bytes);
  }
  tensor.zero_count = zero_count;
  tensor.digest = digest_.digest();
  digest_.reset();
  written_ = 0;
  ++next_tensor_;
  return {};
}

void Writer::set_rotation_probes(std::vector<RotationProbe> probes) {
  assert(probes.size() == contents_.rotation_probes.size());
  contents_.rotation_probes = std::move(probes);
}

Result<void> Writer::seal(const TokenProbe& probe) {
  if (next_tensor_ != contents_.tensors.size())
    return errorf(ErrorCode::invalid_argument, "tensor '%s' was not written",
                  printable(contents_.tensors[next_tensor_].name).c_str());
  const auto front = checked_front(probe);
  if (!front) return front.error();
  if (auto done = out_->write_at(0, *front); !done) return done.error().at(target_.string());
  // The data section ends at a multiple of 64; its last tensor may not.
  const std::array<std::byte, kAlignment> zeros{};
  const auto tail = std::span(zeros).first(static_cast<std::size_t>(file_bytes() - out_->size()));
  if (auto done = out_->write(tail); !done) return done.error().at(target_.string());
  return {};
}

Result<void> Writer::commit() {
  if (auto done = out_->commit(); !done) return done.error().at(target_.string());
  return {};
}

}  // namespace tsq::format
