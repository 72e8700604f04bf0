// The settings of a graph, read from the metadata.
#pragma once

#include <cinttypes>
#include <optional>
#include <string>

#include "base/errorf.h"
#include "base/metadata.h"
#include "tsq/error.h"

namespace tsq {

// Reads "<architecture>.<key>"; the first failure sticks.
class KeyReader {
 public:
  KeyReader(const Metadata& metadata, std::string prefix)
      : metadata_(metadata), prefix_(std::move(prefix)) {}

  bool has(const char* key) const { return metadata_.find(prefix_ + key) != nullptr; }

  std::size_t size(const char* key, std::uint64_t low, std::uint64_t high) {
    const auto value = metadata_.require_u64(prefix_ + key);
    if (!value) return fail(value.error()), low;
    if (*value < low || *value > high) {
      fail(errorf(ErrorCode::damaged,
                  "metadata '%s%s' is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64,
                  prefix_.c_str(), key, *value, low, high));
      return low;
    }
    return static_cast<std::size_t>(*value);
  }
  std::size_t size_or(const char* key, std::uint64_t low, std::uint64_t high, std::size_t missing) {
    return has(key) ? size(key, low, high) : missing;
  }

  double number(const char* key, double low, double high) {
    const auto value = metadata_.require_f64(prefix_ + key);
    if (!value) return fail(value.error()), low;
    if (!(*value >= low && *value <= high)) {
      fail(errorf(ErrorCode::damaged, "metadata '%s%s' is %g, expected %g to %g", prefix_.c_str(),
                  key, *value, low, high));
      return low;
    }
    return *value;
  }
  double number_or(const char* key, double low, double high, double missing) {
    return has(key) ? number(key, low, high) : missing;
  }

  std::string text_or(const char* key, const char* missing) {
    if (!has(key)) return missing;
    const auto value = metadata_.require_string(prefix_ + key);
    if (!value) return fail(value.error()), missing;
    return std::string(*value);
  }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }
  const std::string& prefix() const { return prefix_; }

 private:
  const Metadata& metadata_;
  std::string prefix_;
  std::optional<Error> error_;
};

}  // namespace tsq
