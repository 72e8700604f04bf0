// Weights as a graph holds them: borrowed bytes of the model file, each with its rotation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/encodings.h"
#include "format/file.h"

namespace tsq {

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
