// Finds a graph's weights in a file by name and shape.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "backend/weight.h"
#include "format/reader.h"
#include "tsq/error.h"

namespace tsq {

// Sees every matrix that a graph will multiply by, when it is bound.
using WeightHook = std::function<void(Weight&)>;

// The first failure sticks and later calls return empty weights: bind all, then ask finish().
class Binder {
 public:
  Binder(const format::File& file, const WeightHook& hook)
      : file_(file), hook_(hook) {}

  Weight matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols);
  // A matrix of which rows are looked up and nothing else is done.
  Weight table(const std::string& name, std::uint64_t rows, std::uint64_t cols);
  VectorWeight vector(const std::string& name, std::uint64_t size);
  // For what a graph finds wrong with a weight's values.
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }

  // An error if a weight was missing or misshapen (damaged), or if the file holds a tensor that
  // nobody asked for (unsupported): a graph that ignores weights computes something else.
  Result<void> finish() const;

 private:
  const format::TensorRecord* find(const std::string& name, std::uint64_t rows, std::uint64_t cols);

  const format::File& file_;
  const WeightHook& hook_;
  std::set<std::string> bound_;
  std::optional<Error> error_;
};

}  // namespace tsq
