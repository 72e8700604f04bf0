#include "arch/binder.h"

#include <cinttypes>

#include "base/errorf.h"

namespace tsq {
namespace {

using format::Encoding;

// What the backends have no operation for, though the file may be sound; null: nothing. The reader
// asks whether a record is understood, this asks whether it can be multiplied by.
const char* beyond_backends(const format::TensorRecord& t) {
  if (t.storage != format::StorageEncoding::plain) return "a storage encoding";
  if (t.output_rotation != format::kNoRotation) return "a rotation of its output side";
  if (t.residual_bytes != 0) return "a residual";
  std::uint32_t flags = 0;
  switch (t.encoding) {
    case Encoding::f32:
    case Encoding::f16:
    case Encoding::bf16:
    case Encoding::q8:
    case Encoding::t1:
      break;
    case Encoding::t2:
      flags = format::kFlagHalfGroups;
      break;
    case Encoding::q4:
      flags = format::kFlagMinimum;
      break;
    case Encoding::s34:
      flags = format::kFlagStride16;
      break;
  }
  return (t.flags & ~flags) != 0 ? "a variant of its encoding" : nullptr;
}

}  // namespace

const format::TensorRecord* Binder::find(const std::string& name, std::uint64_t rows,
                                         std::uint64_t cols) {
  if (error_) return nullptr;
  const format::TensorRecord* const tensor = file_.find(name);
  if (tensor == nullptr) {
    error_ =
        errorf(ErrorCode::damaged, "tensor '%s' is missing, expected [%" PRIu64 ", %" PRIu64 "]",
               name.c_str(), cols, rows);
  } else if (tensor->cols() != cols || tensor->rows() != rows) {
    error_ =
        errorf(ErrorCode::damaged,
               "tensor '%s' is [%" PRIu64 ", %" PRIu64 "], expected [%" PRIu64 ", %" PRIu64 "]",
               name.c_str(), tensor->cols(), tensor->rows(), cols, rows);
  } else if (const char* const what = beyond_backends(*tensor)) {
    error_ = errorf(ErrorCode::unsupported,
                    "tensor '%s' has %s, which this build cannot multiply by", name.c_str(), what);
  }
  if (error_) return nullptr;
  bound_.insert(name);
  return tensor;
}

Weight Binder::matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
  Weight weight = table(name, rows, cols);
  if (hook_ && !error_) hook_(weight);
  return weight;
}

Weight Binder::table(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
  const format::TensorRecord* const tensor = find(name, rows, cols);
  if (tensor == nullptr) return {};
  Weight weight{.name = name,
                .shape = tensor->shape(),
                .body = file_.body(*tensor).data(),
                .scales = file_.scales(*tensor),
                .activation_quant = tensor->activation_quant};
  if (tensor->input_rotation != format::kNoRotation) {
    weight.rotation = &file_.rotations()[tensor->input_rotation];
  }
  return weight;
}

VectorWeight Binder::vector(const std::string& name, std::uint64_t size) {
  const format::TensorRecord* const tensor = find(name, 1, size);
  if (tensor == nullptr) return {};
  if (tensor->encoding != format::Encoding::f32 || tensor->input_rotation != format::kNoRotation) {
    error_ = errorf(ErrorCode::unsupported, "tensor '%s' is %s%s, expected plain f32", name.c_str(),
                    format::encoding_name(tensor->encoding),
                    tensor->input_rotation == format::kNoRotation ? "" : " and rotated");
    return {};
  }
  const auto* const values = reinterpret_cast<const float*>(file_.body(*tensor).data());
  return {name, {values, static_cast<std::size_t>(size)}};
}

Result<void> Binder::finish() const {
  if (error_) return *error_;
  for (const format::TensorRecord& tensor : file_.tensors()) {
    if (!bound_.contains(tensor.name)) {
      return errorf(
          ErrorCode::unsupported,
          "tensor '%s' has no place in the architecture's graph (%zu of %zu tensors have)",
          printable(tensor.name).c_str(), bound_.size(), file_.tensors().size());
    }
  }
  return {};
}

}  // namespace tsq
