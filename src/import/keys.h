// Errors about keys of the metadata, in one wording.
#pragma once

#include <cinttypes>
#include <string>

#include "base/errorf.h"
#include "base/metadata.h"

namespace tsq::importer {

// "key 'K' is array of string, expected an array of integers".
inline Error wrong_type(const char* key, const Value& value, const char* expected) {
  const std::string found = value.type() == ValueType::array
                                ? std::string("array of ") + value_type_name(value.element_type())
                                : std::string(value_type_name(value.type()));
  return errorf(ErrorCode::damaged, "key '%s' is %s, expected %s", key, found.c_str(), expected);
}

// Before an array becomes a list in memory: `most` is far above what models have.
inline Result<void> check_count(const char* key, const Value& value, std::uint64_t most) {
  if (value.count() <= most) return {};
  return errorf(ErrorCode::unsupported,
                "key '%s' holds %" PRIu64 " values, at most %" PRIu64 " are supported", key,
                value.count(), most);
}

}  // namespace tsq::importer
