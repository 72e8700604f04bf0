// Unicode's canonical composition, normalization form C.
#pragma once

#include <string>
#include <string_view>

namespace tsq {

// Whether to_nfc() may change the text. False means that it does not.
bool may_need_nfc(std::string_view text);

// Requires valid UTF-8 of less than 4 GiB. Time n log n, stack independent of n.
std::string to_nfc(std::string_view text);

}  // namespace tsq
