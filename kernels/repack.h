// Forms of ternary bodies that suit one CPU level better than the file's, made in memory: row
// blocks in the file's order, each group with its scale lines as there.
//
// t1_escape: t1 with another code of the five digits in a byte. Of t = 9 d0 + 3 d1 + d2 and
// u = 3 d3 + d4 it is 8 t + u, or 216 + t where u is 8.
// s34_lut: 16 vectors of nibbles and 4 of signs, a byte a row. Byte r of vector i has the nibbles
// of row r's quads 2 i (low) and 2 i + 1 (high); bit 7 - k of byte r of sign vector v is the sign
// of its quad 8 v + k.
#pragma once

#include "kernels/kernels.h"

namespace tsq::kernels {

// Bytes of a row block of 32 rows and `cols` columns.
std::size_t packed_row_block_bytes(PackedForm form, std::size_t cols, ScaleKind kind) noexcept;

// Writes the blocks of `rows`, as in TernaryGemmFn, to their places behind `packed`, where block 0
// begins. w is of the encoding that the form is made of.
void repack(PackedForm form, const TernaryMatrix& w, RowRange rows, std::byte* packed) noexcept;

}  // namespace tsq::kernels
