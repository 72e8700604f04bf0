// Values to blocks of 32 of q8 and q4 (FORMAT.md, section 8): the codes nearest to the values under
// a scale that is an fp16 number.
#pragma once

#include <cstddef>
#include <span>

namespace tsq::convert {

// values: a multiple of 32 of them, finite. out: 34 (q8), 18 (q4) bytes for each 32. False where a
// scale would be infinite in fp16; out is undefined then.
bool quantize_q8(std::span<const float> values, std::byte* out);
bool quantize_q4(std::span<const float> values, std::byte* out);

}  // namespace tsq::convert
