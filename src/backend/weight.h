// Weights as a graph holds them: borrowed bytes of the model file, each with its rotation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/encodings.h"
#include "format/file.h"
#include "kernels/kernels.h"

namespace tsq {

// A body in another form, made in memory. Its data is there before anything multiplies by it.
struct PackedBody {
  kernels::PackedForm form = kernels::PackedForm::none;
  const std::byte* data = nullptr;
};

// A matrix [rows, cols] of any encoding. The rotation belongs to it: whatever multiplies by it or
// fetches one of its rows applies it. Valid as long as the file it was bound from.
struct Weight {
  std::string name;
  format::Shape shape;
  const std::byte* body = nullptr;
  std::span<const float> scales = {};          // beside the body: one a padded row, or one
  const format::Rotation* rotation = nullptr;  // of the input side; null: none
  // How the int8 path quantises its input (the f32 path never does).
  format::ActivationQuant activation_quant = format::ActivationQuant::none;
  const PackedBody* packed = nullptr;  // what multiplies uses it where it can, else the body

  kernels::PackedForm form() const { return packed ? packed->form : kernels::PackedForm::none; }
};

// A vector of f32, such as a norm's weights.
struct VectorWeight {
  std::string name;
  std::span<const float> values;
};

// The weights that read one activation: it is rotated and quantised once for all of them, or for
// each run of them that wants it in the same form.
using ProjectionGroup = std::vector<Weight>;

}  // namespace tsq
