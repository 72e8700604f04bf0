// Packed forms: the product of one column is that of the body that they were made of.
#include "kernels/repack.h"

#include "tests/kernels/s34_weights.h"

namespace tsq::kernels::test {
namespace {

constexpr Encoding kT1{encode_t1, &Kernels::t1_gemm, &Kernels::t1_gemm_f32, &Kernels::t1_row};

struct Form {
  PackedForm form;
  Encoding of;
  TernaryGemmFn* Kernels::*gemm;
};
constexpr Form kForms[] = {
    {PackedForm::t2, kT1, &Kernels::t2_gemm},
    {PackedForm::t1_escape, kT1, &Kernels::t1_escape_gemv},
    {PackedForm::s34_lut, kS34<false>, &Kernels::s34_lut_gemv},
    {PackedForm::s34_lut, kS34<true>, &Kernels::s34_lut_gemv},
};

Body packed(const Form& form, const TernaryMatrix& w) {
  const std::size_t blocks = (w.rows + kRowBlock - 1) / kRowBlock;
  Body body(blocks * packed_row_block_bytes(form.form, w.cols, w.scale_kind));
  // In two parts, as threads would.
  const std::size_t middle = blocks / 2 * kRowBlock;
  repack(form.form, w, {middle, w.rows}, body.data());
  repack(form.form, w, {0, middle}, body.data());
  return body;
}

// The products of a level by the form and of scalar by the file's body.
void compare(const Form& form, const Kernels& k, const TernaryMatrix& w, const Q8& x, RowRange rows,
             const std::string& what) {
  if (k.*form.gemm == nullptr) return;
  const Body body = packed(form, w);
  TernaryMatrix as_packed = w;
  as_packed.body = body.data();
  Guarded<std::int8_t> tables(8 * w.cols);
  Q8Matrix columns = x.view();
  if (form.form == PackedForm::s34_lut) {
    k.s34_tables(x.q.data(), w.cols, w.stride16, tables.data());
    columns.tables = tables.data();
  }
  Guarded<float> expected = blank_outputs(w.rows);
  Guarded<float> actual = blank_outputs(w.rows);
  (table(Isa::scalar)->*form.of.gemm)(w, rows, x.view(), {expected.data(), w.rows});
  (k.*form.gemm)(as_packed, rows, columns, {actual.data(), w.rows});
  expect_same_bits(actual, expected, what);
}

std::string name(const Form& form) {
  constexpr const char* kNames[] = {"none", "t2", "t1_escape", "s34_lut"};
  return std::string(kNames[static_cast<int>(form.form)]) +
         (form.of.stride16 ? ", stride 16: " : ": ");
}

class Repack : public EveryIsa {};

TEST_P(Repack, GivesTheSameProducts) {
  for (const Form& form : kForms) {
    for (const Scaling& scaling : scalings(form.of)) {
      for (const std::size_t rows : {1, 3, 17, 31, 32, 33, 64, 96, 131}) {
        for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 7, 9, 10, 13}) {
          const Ternary t = with_scales(form.of.make(rows, groups * kGroup, 11 * rows + groups),
                                        scaling.kind, groups);
          const Body body = form.of.encode(t);
          compare(form, *k_, view(form.of, t, body), make_q8(1, t.cols, 5, 0, scaling.per_token),
                  {0, rows}, name(form) + test::name(scaling) + shape(rows, groups, 1));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// What overflows first: all weights + or -, activations at the limit of the contract.
TEST_P(Repack, GivesTheSameProductsAtTheLimits) {
  for (const Form& form : kForms) {
    const bool quads = form.form == PackedForm::s34_lut;
    for (const Scaling& scaling : scalings(form.of)) {
      for (const int weight : {-1, 1}) {
        for (const int zero : {0, 1, 2, 3}) {  // of a quad's lanes
          if (!quads && zero != 0) continue;
          for (const int value : {127, -127}) {
            const std::size_t groups = 6;
            Ternary t = quads ? make_s34(form.of.stride16, 64, groups * kGroup, 5, zero, weight)
                              : make_ternary(64, groups * kGroup, 5, weight);
            t = with_scales(t, scaling.kind, 9);
            const Body body = form.of.encode(t);
            compare(form, *k_, view(form.of, t, body),
                    make_q8(1, t.cols, 6, value, scaling.per_token), {0, 64},
                    name(form) + test::name(scaling) + "weights " + std::to_string(weight));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(Repack, WritesItsRangeOnly) {
  for (const Form& form : kForms) {
    const Ternary t = form.of.make(140, 7 * kGroup, 21);
    const Body body = form.of.encode(t);
    for (const RowRange range :
         {RowRange{0, 32}, {32, 64}, {32, 128}, {64, 140}, {128, 140}, {96, 96}}) {
      compare(form, *k_, view(form.of, t, body), make_q8(1, t.cols, 22), range,
              name(form) + "from row " + std::to_string(range.first));
      if (HasFatalFailure()) return;
    }
  }
}

// Activations for which each quad's sum is another one: all 16 signs of four lanes at every size.
TEST_P(Repack, SplitsEverySumOfAQuad) {
  const Form& form = kForms[2];
  if (k_->*form.gemm == nullptr) return;
  const Ternary t = form.of.make(128, kGroup, 3);
  const Body body = form.of.encode(t);
  for (int size = 0; size <= 127; ++size) {
    Q8 x = make_q8(1, kGroup, 4);
    x.sum[0] = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const bool minus = (i / 4 >> i % 4 & 1) != 0;
      x.q[i] =
          static_cast<std::int8_t>(minus ? -size : size - static_cast<int>(i / 64) * (size / 2));
      x.sum[0] += x.q[i];
    }
    compare(form, *k_, view(form.of, t, body), x, {0, 128}, "size " + std::to_string(size));
    if (HasFatalFailure()) return;
  }
}
TSQ_FOR_EVERY_ISA(Repack);

// Every digit of every t1 byte comes back from the escape code, by its definition.
TEST(RepackT1, EscapesEveryByte) {
  for (unsigned q = 0; q < 243; ++q) {
    Body body(64 + 256 + 768);
    const auto fixed_point = static_cast<std::byte>((256 * q + 242) / 243);
    body[320] = fixed_point;
    body[64] = fixed_point;
    const TernaryMatrix w{body.data(), 32, kGroup};
    Body to(packed_row_block_bytes(PackedForm::t1_escape, kGroup, ScaleKind::per_group));
    repack(PackedForm::t1_escape, w, {0, 32}, to.data());
    const unsigned t = q / 9, u = q % 9;
    EXPECT_EQ(to[320], static_cast<std::byte>(u < 8 ? 8 * t + u : 216 + t)) << q;
    EXPECT_EQ(to[64], to[320]);
    EXPECT_EQ(to[0], body[0]);
  }
}

// t2 from t1 is what the t2 encoder makes of the same weights.
TEST(RepackT1, MakesTheBytesOfT2) {
  for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 11}) {
    const Ternary t = random_ternary(35, groups * kGroup, groups);
    const Body t1 = encode_t1(t), t2 = encode_t2(t);
    const Body made = packed(kForms[0], view(kT1, t, t1));
    ASSERT_EQ(made.size(), t2.size());
    EXPECT_EQ(std::memcmp(made.data(), t2.data(), t2.size()), 0) << groups;
  }
}

}  // namespace
}  // namespace tsq::kernels::test
