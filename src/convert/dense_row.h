// One row of a tensor as a dense encoding stores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/file.h"
#include "import/checkpoint.h"

namespace tsq::convert {

// Writes the row without its padding: the source's blocks where the encoding has the same, else its
// values, narrowed if the encoding is too narrow for them. A ternary row becomes q4 without loss.
// The source's row is finite. False where a value or a scale is beyond the range of fp16.
bool pack_dense_row(const importer::Tensor& tensor, std::uint64_t row,
                    const format::TensorRecord& record, std::span<std::byte> out);

}  // namespace tsq::convert
