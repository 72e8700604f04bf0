// printf-style construction of an Error (GCC 12 has no std::format).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tsq/error.h"

namespace tsq {

[[gnu::format(printf, 1, 2)]] std::string stringf(const char* format, ...);
[[gnu::format(printf, 2, 3)]] Error errorf(ErrorCode code, const char* format, ...);

// The text made fit for one line of a message: control characters and invalid UTF-8 escaped as
// \xNN, cut at a character after max_bytes with "...".
std::string printable(std::string_view text, std::size_t max_bytes = 64);

}  // namespace tsq
