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
  const format::Rotation* rotation = nullptr;  // of the input side; null: none
  bool quantise_input = false;                 // int8 per group of 128 (the f32 path never does)
};

// A vector of f32, such as a norm's weights.
struct VectorWeight {
  std::string name;
  std::span<const float> values;
};

// The weights that read one activation: it is rotated and quantised once for all of them.
using ProjectionGroup = std::vector<Weight>;

}  // namespace tsq
