// Errors about keys of the metadata, in one wording.
#pragma once

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

}  // namespace tsq::importer
