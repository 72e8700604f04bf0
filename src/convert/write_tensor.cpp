#include "convert/write_tensor.h"

#include <algorithm>
#include <cinttypes>
#include <vector>

#include "base/buffer.h"
#include "base/errorf.h"
#include "convert/dense_row.h"
#include "convert/ternary_values.h"
#include "import/blocks.h"

namespace tsq::convert {
namespace {

constexpr std::uint64_t kChunkBytes = 4u << 20;  // packed at a time

Error not_finite(const importer::Tensor& tensor, std::uint64_t row) {
  return errorf(ErrorCode::damaged,
                "tensor '%s': row %" PRIu64 " holds a value that is infinite or not a number",
                printable(tensor.name).c_str(), row);
}

// ---- dense ----

Error beyond_f16(const importer::Tensor& tensor, std::uint64_t row, format::Encoding encoding) {
  return errorf(ErrorCode::unsupported,
                "tensor '%s': row %" PRIu64
                " holds a value too large for %s, whose fp16 numbers end at 65504; --dense q8 and "
                "q4 reach farther than f16",
                printable(tensor.name).c_str(), row, format::encoding_name(encoding));
}

Result<void> write_dense(format::Writer& writer, const importer::Tensor& tensor,
                         const format::TensorRecord& record,
                         FunctionRef<Result<void>(std::uint64_t)> advance) {
  const std::uint64_t out_bytes =
      format::dense_row_bytes(record.encoding, record.flags, tensor.cols());
  const std::uint64_t rows_at_once =
      std::clamp<std::uint64_t>(kChunkBytes / out_bytes, 1, tensor.rows());
  std::vector<std::byte> chunk(static_cast<std::size_t>(rows_at_once * out_bytes));
  for (std::uint64_t first = 0; first < tensor.rows(); first += rows_at_once) {
    const std::uint64_t n = std::min(rows_at_once, tensor.rows() - first);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t row = first + i;
      if (!importer::row_is_finite(tensor, row)) return not_finite(tensor, row);
      const auto out = std::span(chunk).subspan(static_cast<std::size_t>(i * out_bytes),
                                                static_cast<std::size_t>(out_bytes));
      if (!pack_dense_row(tensor, row, record, out)) {
        return beyond_f16(tensor, row, record.encoding);
      }
    }
    const auto done = std::span(chunk).first(static_cast<std::size_t>(n * out_bytes));
    if (const auto appended = writer.append(done); !appended) return appended;
    if (const auto go_on = advance(n * importer::row_bytes(tensor.type, tensor.cols())); !go_on)
      return go_on;
  }
  return writer.end_tensor({}, 0);
}

// ---- ternary ----

enum class Fault { none, not_finite, not_ternary, half_groups, not_lossless };

struct Outcome {
  Fault fault = Fault::none;
  std::uint64_t row = 0;  // where the fault is
  std::uint64_t zeros = 0;
};

// Packs row blocks of one tensor on one thread; allocates only when it is made.
class BlockPacker {
 public:
  BlockPacker(const importer::Tensor& tensor, const format::TensorRecord& record)
      : tensor_(tensor),
        shape_(record.shape()),
        cols_(static_cast<std::size_t>(tensor.cols())),
        padded_(static_cast<std::size_t>(format::padded_cols(shape_.encoding, cols_))),
        scales_of_row_(padded_ / format::kGroup * format::scale_lines(shape_)),
        codes_(format::kRowBlock * padded_),
        unpacked_codes_(codes_.size()),
        row_scales_(importer::scales_a_row(tensor)),
        scales_(format::kRowBlock * scales_of_row_),
        unpacked_scales_(scales_.size()) {}

  // Rows 32 block .. 32 block + 31 into body.
  Outcome pack(std::uint64_t block, std::byte* body) {
    const std::uint64_t first = block * format::kRowBlock;
    const std::uint64_t n = std::min<std::uint64_t>(format::kRowBlock, tensor_.rows() - first);
    Outcome outcome;
    for (std::uint64_t i = 0; i < n; ++i) {
      std::uint8_t* codes = codes_.data() + i * padded_;
      outcome.row = first + i;
      outcome.fault = decode(outcome.row, codes, scales_.data() + i * scales_of_row_);
      if (outcome.fault != Fault::none) return outcome;
      outcome.zeros += static_cast<std::uint64_t>(std::count(codes, codes + cols_, 1));
      std::fill(codes + cols_, codes + padded_, 1);
    }
    std::ranges::fill(codes_.span().subspan(n * padded_), 1);
    std::ranges::fill(scales_.span().subspan(n * scales_of_row_), 0);
    format::pack_row_block(shape_, codes_.data(), scales_.data(), body);
    const bool sound =
        format::unpack_row_block(shape_, body, unpacked_codes_.data(), unpacked_scales_.data());
    if (!sound || !same_codes(n) || !std::ranges::equal(scales_.span(), unpacked_scales_.span())) {
      outcome.fault = Fault::not_lossless;
    }
    return outcome;
  }

 private:
  // Of the n rows that the tensor has; padding is not a matter of its values.
  bool same_codes(std::uint64_t n) const {
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint8_t* const codes = codes_.data() + i * padded_;
      if (!std::equal(codes, codes + cols_, unpacked_codes_.data() + i * padded_)) return false;
    }
    return true;
  }

  Fault decode(std::uint64_t row, std::uint8_t* codes, std::uint16_t* scales) {
    if (!importer::row_is_finite(tensor_, row)) return Fault::not_finite;
    if (!read_codes(tensor_, row, codes, row_scales_.data())) {
      return Fault::not_ternary;
    }
    if (scales_of_row_ == 0) return Fault::none;  // they are in an array of their own
    // Scales of 64 weights, but one for each 128: each pair has to be one.
    const std::size_t merged = format::group_size(shape_) / importer::scale_group(tensor_);
    for (std::size_t i = 0; i < row_scales_.size(); ++i) {
      scales[i / merged] = row_scales_[i];
      if (i % merged != 0 && row_scales_[i] != row_scales_[i - 1]) return Fault::half_groups;
    }
    return Fault::none;
  }

  const importer::Tensor& tensor_;
  format::Shape shape_;
  std::size_t cols_, padded_;
  std::size_t scales_of_row_;  // in lines of the body
  // Of a block. They take memory where they are written: a row that is refused costs no more.
  Buffer<std::uint8_t> codes_, unpacked_codes_;
  std::vector<std::uint16_t> row_scales_;
  Buffer<std::uint16_t> scales_, unpacked_scales_;
};

constexpr const char* kOrQ4 = "; --dense q4 keeps its values, at 4.5 bits a weight";

Error fault_error(const importer::Tensor& tensor, const Outcome& outcome) {
  const bool plus_2 = importer::can_hold_plus_2(tensor.type);
  switch (outcome.fault) {
    case Fault::not_finite:
      return not_finite(tensor, outcome.row);
    case Fault::not_ternary:
      return errorf(ErrorCode::unsupported,
                    "tensor '%s': row %" PRIu64
                    " holds the code 3%s, expected 0 1 2 (-1 0 +1): it is not ternary%s",
                    printable(tensor.name).c_str(), outcome.row, plus_2 ? " (+2)" : "",
                    plus_2 ? kOrQ4 : "");
    case Fault::half_groups:
      return errorf(ErrorCode::unsupported,
                    "tensor '%s': row %" PRIu64
                    " has two scales in a group of 128 weights, t1 has one; --encoding auto and t2 "
                    "keep both%s",
                    printable(tensor.name).c_str(), outcome.row, kOrQ4);
    case Fault::not_lossless:
    case Fault::none:
      break;
  }
  return errorf(ErrorCode::damaged,
                "tensor '%s': the packed rows from %" PRIu64
                " do not unpack to their source: this is a defect of tsq or of the machine",
                printable(tensor.name).c_str(),
                outcome.row / format::kRowBlock * format::kRowBlock);
}

// The scales beside the body, one or one for each row; padding rows have 0.
std::vector<float> scale_array(const importer::Tensor& tensor, const format::TensorRecord& record) {
  std::vector<float> scales(static_cast<std::size_t>(record.scale_bytes / sizeof(float)));
  const std::size_t n = std::min(scales.size(), static_cast<std::size_t>(tensor.rows()));
  for (std::size_t row = 0; row < n; ++row) {
    scales[row] = importer::row_scale(tensor, row).value_or(0);
  }
  return scales;
}

Result<void> write_ternary(format::Writer& writer, const importer::Tensor& tensor,
                           const format::TensorRecord& record, ThreadPool& pool,
                           FunctionRef<Result<void>(std::uint64_t)> advance) {
  const std::uint64_t n_blocks = (tensor.rows() + format::kRowBlock - 1) / format::kRowBlock;
  const std::uint64_t block_bytes = format::row_block_bytes(record.shape());
  const auto threads = static_cast<std::size_t>(pool.threads());
  const std::uint64_t blocks_at_once =
      std::min(n_blocks, std::max<std::uint64_t>(kChunkBytes / block_bytes, threads));

  std::vector<BlockPacker> packers;
  for (std::size_t t = 0; t < std::min<std::uint64_t>(threads, blocks_at_once); ++t)
    packers.emplace_back(tensor, record);
  std::vector<std::byte> chunk(static_cast<std::size_t>(blocks_at_once * block_bytes));
  std::vector<Outcome> outcomes(static_cast<std::size_t>(blocks_at_once));
  std::uint64_t zeros = 0;
  for (std::uint64_t first = 0; first < n_blocks; first += blocks_at_once) {
    const auto n = static_cast<std::size_t>(std::min(blocks_at_once, n_blocks - first));
    pool.run([&](int thread) {
      for (auto i = static_cast<std::size_t>(thread); i < n; i += threads) {
        outcomes[i] = packers[static_cast<std::size_t>(thread)].pack(
            first + i, chunk.data() + i * block_bytes);
      }
    });
    for (std::size_t i = 0; i < n; ++i) {
      if (outcomes[i].fault != Fault::none) return fault_error(tensor, outcomes[i]);
      zeros += outcomes[i].zeros;
    }
    const auto done = std::span(chunk).first(static_cast<std::size_t>(n * block_bytes));
    if (const auto appended = writer.append(done); !appended) return appended;
    const std::uint64_t rows =
        std::min<std::uint64_t>(n * format::kRowBlock, tensor.rows() - first * format::kRowBlock);
    const auto go_on = advance(rows * importer::row_bytes(tensor.type, tensor.cols()));
    if (!go_on) return go_on;
  }
  return writer.end_tensor(scale_array(tensor, record), zeros);
}

}  // namespace

Result<void> write_tensor(format::Writer& writer, const importer::Tensor& tensor,
                          const format::TensorRecord& record, ThreadPool& pool,
                          FunctionRef<Result<void>(std::uint64_t)> advance) {
  if (format::is_ternary(record.encoding)) {
    return write_ternary(writer, tensor, record, pool, advance);
  }
  return write_dense(writer, tensor, record, advance);
}

}  // namespace tsq::convert
