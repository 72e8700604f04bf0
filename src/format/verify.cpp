#include "format/verify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cstring>

#include "base/errorf.h"
#include "base/hash.h"
#include "base/zeros.h"
#include "format/probes.h"
#include "format/tokenizer_section.h"

namespace tsq::format {
namespace {

constexpr std::uint64_t kProgressBytes = 16 << 20;

// What a byte of t1 holds if its first n digits are weights: bits 0-2 how many of them are 0, bit 7
// set if no five codes give it or if a later digit is not 1.
constexpr std::uint8_t kT1Unsound = 0x80;
constexpr auto kT1Bytes = [] {
  std::array<std::array<std::uint8_t, 256>, kT1Groups + 1> table{};
  for (std::size_t n = 1; n <= kT1Groups; ++n) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto digits = t1_digits(static_cast<std::uint8_t>(byte));
      std::uint8_t zeros = 0;
      bool sound = t1_byte_exists(static_cast<std::uint8_t>(byte));
      for (std::size_t d = 0; d < kT1Groups; ++d) {
        if (d < n && digits[d] == 1) ++zeros;
        if (d >= n && digits[d] != 1) sound = false;
      }
      table[n][byte] = sound ? zeros : zeros | kT1Unsound;
    }
  }
  return table;
}();

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool is_finite_f16(std::uint16_t bits) { return (bits & 0x7c00u) != 0x7c00u; }
bool is_finite_bf16(std::uint16_t bits) { return (bits & 0x7f80u) != 0x7f80u; }
bool is_finite_f32(std::uint32_t bits) { return (bits & 0x7f800000u) != 0x7f800000u; }

// How often a check failed, and where first.
class Tally {
 public:
  template <class Place>
  void add(const Place& place) {
    if (count_++ == 0) first_ = place();
  }
  std::uint64_t count() const { return count_; }
  const std::string& first() const { return first_; }

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

class TensorCheck {
 public:
  TensorCheck(const File& file, const TensorRecord& tensor)
      : tensor_(tensor), body_(file.body(tensor)), scales_(file.scales(tensor)) {}

  // The tensor is checked in steps of some rows, so that progress can be shown and every byte
  // comes from memory once. False after the last step.
  bool step() {
    const bool ternary = is_ternary(tensor_.encoding);
    const std::uint64_t rows = ternary ? kRowBlock : 1;
    const std::uint64_t bytes =
        tensor_.body_bytes / (padded_rows(tensor_.encoding, tensor_.rows()) / rows);
    const auto part = body_.subspan(done_, bytes);
    digest_.update(part);
    if (ternary) {
      check_row_block(part.data());
    } else {
      check_dense_row(part.data());
    }
    done_ += bytes;
    row_ += rows;
    if (done_ < body_.size()) return true;
    check_scale_array();
    return false;
  }
  std::uint64_t done() const { return done_; }

  void report(std::vector<Finding>& findings) const {
    const std::string where = stringf("tensor '%s'", printable(tensor_.name).c_str());
    if (const std::uint64_t digest = digest_.digest(); digest != tensor_.digest)
      findings.push_back({where + ": XXH3-64 of its bytes", stringf("%016" PRIx64, digest),
                          stringf("%016" PRIx64, tensor_.digest)});
    const auto report_tally = [&](const Tally& tally, const char* what, const char* expected) {
      if (tally.count() == 0) return;
      findings.push_back(
          {where + ": " + what,
           stringf("%" PRIu64 ", the first at %s", tally.count(), tally.first().c_str()),
           expected});
    };
    report_tally(unused_codes_, "bytes with a code that stands for no weight", "none");
    report_tally(infinite_, "scales or values that are infinite or not a number", "none");
    report_tally(padding_weights_, "padding weights that are not 0", "none");
    report_tally(padding_quads_, "padding quads that are not nibble 0, sign 0", "none");
    report_tally(padding_scales_, "scales of padding rows that are not +0", "none");
    if (is_ternary(tensor_.encoding) && zeros_ != tensor_.zero_count)
      findings.push_back({where + ": weights that are 0", stringf("%" PRIu64, zeros_),
                          stringf("%" PRIu64, tensor_.zero_count)});
  }

 private:
  std::string place(std::uint64_t row, std::uint64_t col) const {
    return stringf("row %" PRIu64 ", input %" PRIu64, row, col);
  }

  // The scale lines of a group, each of 32 rows; where its codes are.
  const std::byte* check_scales(const std::byte* group, std::uint64_t g) {
    const std::size_t lines = scale_lines(tensor_.shape());
    for (std::size_t l = 0; l < lines; ++l, group += kScaleLineBytes) {
      for (std::uint64_t i = 0; i < kRowBlock; ++i) {
        const auto bits = load<std::uint16_t>(group + 2 * i);
        const auto at = [&] { return place(row_ + i, g * kGroup + l * (kGroup / lines)); };
        if (!is_finite_f16(bits)) infinite_.add(at);
        if (row_ + i >= tensor_.rows() && bits != 0) padding_scales_.add(at);
      }
    }
    return group;
  }

  // The scales of rows, or the one of the tensor.
  void check_scale_array() {
    digest_.update(std::as_bytes(scales_));
    for (std::size_t row = 0; row < scales_.size(); ++row) {
      const auto bits = std::bit_cast<std::uint32_t>(scales_[row]);
      const auto at = [&] { return stringf("scale %zu of its array", row); };
      if (!is_finite_f32(bits)) infinite_.add(at);
      if (row >= tensor_.rows() && bits != 0) padding_scales_.add(at);
    }
  }

  // The zeros of a group, code 01: found in 32 codes at a time, summed in the bytes of a word.
  std::uint64_t t2_group_zeros(const std::byte* codes) {
    constexpr std::uint64_t kLow = 0x5555555555555555, kPairs = 0x3333333333333333,
                            kBytes = 0x0f0f0f0f0f0f0f0f, kEvenBytes = 0x00ff00ff00ff00ff;
    constexpr std::size_t kWords = 32;  // at most 4 zeros a byte: 128 fit a byte of `sums`
    std::uint64_t zeros = 0, unused = 0;
    for (std::size_t part = 0; part < 8 * kGroup; part += 8 * kWords) {
      std::uint64_t sums = 0;
      for (std::size_t i = 0; i < kWords; ++i) {
        const auto word = load<std::uint64_t>(codes + part + 8 * i);
        const std::uint64_t zero = word & ~(word >> 1) & kLow;
        const std::uint64_t pairs = (zero & kPairs) + (zero >> 2 & kPairs);
        sums += (pairs & kBytes) + (pairs >> 4 & kBytes);
        unused |= word & word >> 1 & kLow;
      }
      sums = (sums & kEvenBytes) + (sums >> 8 & kEvenBytes);
      zeros += sums * 0x0001000100010001 >> 48;
    }
    for (std::size_t i = 0; i < 8 * kGroup && unused != 0; ++i) {
      const auto byte = std::to_integer<unsigned>(codes[i]);
      if ((byte & byte >> 1 & 0x55) != 0) unused_codes_.add([&] { return byte_place(codes + i); });
    }
    return zeros;
  }

  // n bytes whose first `used` digits are weights.
  std::uint64_t t1_zeros(const std::byte* bytes, std::size_t n, std::size_t used) {
    const auto& table = kT1Bytes[used];
    std::uint64_t zeros = 0;
    unsigned all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned entry = table[std::to_integer<std::uint8_t>(bytes[i])];
      zeros += entry & 7;
      all |= entry;
    }
    for (std::size_t i = 0; i < n && (all & kT1Unsound) != 0; ++i) {
      if ((table[std::to_integer<std::uint8_t>(bytes[i])] & kT1Unsound) != 0)
        unused_codes_.add([&] { return byte_place(bytes + i); });
    }
    return zeros;
  }

  std::string byte_place(const std::byte* byte) const {
    return stringf("byte %zu of its body", static_cast<std::size_t>(byte - body_.data()));
  }

  // Every quad holds one 0, so only padding can be wrong.
  void check_s34_group(const std::byte* codes, std::uint64_t g) {
    const std::uint64_t rows = std::min<std::uint64_t>(kRowBlock, tensor_.rows() - row_);
    const std::uint64_t cols = std::min<std::uint64_t>(kGroup, tensor_.cols() - g * kGroup);
    zeros_ += rows * (cols / 4);
    if (rows == kRowBlock && cols == kGroup) return;
    for (std::uint64_t i = 0; i < kRowBlock; ++i) {
      for (std::size_t q = 0; q < kS34Quads; ++q) {
        const std::uint64_t col = s34_input(tensor_.flags, q, 0);
        if ((i >= rows || col >= cols) && s34_quad_at(codes, i, q) != 0)
          padding_quads_.add([&] { return place(row_ + i, g * kGroup + col); });
      }
    }
  }

  void check_row_block(const std::byte* block) {
    const std::uint64_t groups = padded_cols(tensor_.encoding, tensor_.cols()) / kGroup;
    const std::byte* at = block;
    switch (tensor_.encoding) {
      case Encoding::s34:
        for (std::uint64_t g = 0; g < groups; ++g) {
          at = check_scales(at, g);
          check_s34_group(at, g);
          at += kS34CodeBytes;
        }
        return;
      case Encoding::t2:
        for (std::uint64_t g = 0; g < groups; ++g) {
          at = check_scales(at, g);
          zeros_ += t2_group_zeros(at);
          at += kT2CodeBytes;
        }
        break;
      default:  // t1
        for (std::uint64_t first = 0; first < groups; first += kT1Groups) {
          const std::uint64_t r = std::min<std::uint64_t>(kT1Groups, groups - first);
          for (std::uint64_t g = 0; g < r; ++g) at = check_scales(at, first + g);
          zeros_ += t1_zeros(at, kT1TailBytes, r);
          at += kT1TailBytes;
          zeros_ += t1_zeros(at, kT1CodeBytes * r, kT1Groups);
          at += kT1CodeBytes * r;
        }
    }
    check_padding(block, groups * kGroup);
  }

  void check_padding(const std::byte* block, std::uint64_t stored_cols) {
    for (std::uint64_t i = 0; i < kRowBlock; ++i) {
      const bool padding_row = row_ + i >= tensor_.rows();
      for (std::uint64_t col = padding_row ? 0 : tensor_.cols(); col < stored_cols; ++col) {
        if (ternary_code(tensor_.shape(), block, i, col) == 1) {
          --zeros_;  // counted with the block, but not a weight of the tensor
        } else {
          padding_weights_.add([&] { return place(row_ + i, col); });
        }
      }
    }
  }

  void check_dense_row(const std::byte* row) {
    const std::uint64_t cols = tensor_.cols(), stored = padded_cols(tensor_.encoding, cols);
    const auto check_values = [&]<class Bits>(bool (*finite)(Bits)) {
      for (std::uint64_t col = 0; col < stored; ++col) {
        const auto bits = load<Bits>(row + sizeof(Bits) * col);
        if (col < cols && !finite(bits)) infinite_.add([&] { return place(row_, col); });
        if (col >= cols && bits != 0) padding_weights_.add([&] { return place(row_, col); });
      }
    };
    switch (tensor_.encoding) {
      case Encoding::f32:
        return check_values(is_finite_f32);
      case Encoding::f16:
        return check_values(is_finite_f16);
      case Encoding::bf16:
        return check_values(is_finite_bf16);
      default:
        return check_blocks(row, stored);
    }
  }

  // q8 and q4.
  void check_blocks(const std::byte* row, std::uint64_t stored) {
    const bool q8 = tensor_.encoding == Encoding::q8;
    const bool minimum = (tensor_.flags & kFlagMinimum) != 0;
    const std::uint64_t block_bytes = dense_row_bytes(tensor_.encoding, tensor_.flags, kDenseBlock);
    for (std::uint64_t b = 0; b < stored / kDenseBlock; ++b) {
      const std::byte* const block = row + b * block_bytes;
      const bool finite = is_finite_f16(load<std::uint16_t>(block)) &&
                          (!minimum || is_finite_f16(load<std::uint16_t>(block + 2)));
      if (!finite) infinite_.add([&] { return place(row_, b * kDenseBlock); });
    }
    const std::byte* const codes =
        row + (stored / kDenseBlock - 1) * block_bytes + (minimum ? 4 : 2);
    for (std::uint64_t col = tensor_.cols(); col < stored; ++col) {
      const std::size_t i = col % kDenseBlock;
      const unsigned code = q8 ? std::to_integer<unsigned>(codes[i]) : q4_code(codes, i);
      if (code != (q8 || minimum ? 0u : 8u)) padding_weights_.add([&] { return place(row_, col); });
    }
  }

  const TensorRecord& tensor_;
  std::span<const std::byte> body_;
  std::span<const float> scales_;
  std::uint64_t done_ = 0;  // bytes
  std::uint64_t row_ = 0;
  std::uint64_t zeros_ = 0;
  Xxh3Stream digest_;
  Tally unused_codes_, infinite_, padding_weights_, padding_quads_, padding_scales_;
};

// gap: bytes that start at `at` of `what`.
void check_gap(std::span<const std::byte> gap, std::uint64_t at, const char* what,
               const std::string& where, std::vector<Finding>& findings) {
  const auto bad = first_nonzero(gap);
  if (!bad) return;
  findings.push_back({where,
                      stringf("%u at byte %" PRIu64 " of the %s",
                              std::to_integer<unsigned>(gap[*bad]), at + *bad, what),
                      "0"});
}

void check_optional_section(const OptionalSection& section, std::vector<Finding>& findings) {
  const std::string name = stringf("optional section of kind %u", section.kind);
  check_gap(section.padding, section.padding_at, "file", "the bytes before the " + name, findings);
  if (const Sha256 found = sha256(section.bytes); found != section.digest)
    findings.push_back({name + ": SHA-256 of its bytes", hex(found), hex(section.digest)});
}

void check_tokenizer(const File& file, std::vector<Finding>& findings) {
  if (file.tokenizer_section().empty()) return;
  const auto view = TokenizerView::parse(file.tokenizer_section(), file.header().vocab_size);
  const auto checked = view ? view->check() : view.error();
  if (!checked)
    findings.push_back({"tokenizer section", checked.error().message(), "none of that"});
}

void check_probes(const File& file, std::vector<Finding>& findings) {
  for (const RotationProbe& probe : file.rotation_probes()) {
    const auto mismatch = find_mismatch(file, probe);
    if (!mismatch) continue;
    findings.push_back(
        {stringf("rotation %u, tensor '%s', un-rotated weight of row %" PRIu64 ", input %" PRIu64,
                 probe.rotation, printable(file.tensors()[probe.tensor].name).c_str(), probe.row,
                 probe.col),
         stringf("%.9g", *mismatch), stringf("%.9g", probe.value)});
  }
  const TokenProbeState state = file.token_probe().state;
  const bool has_tokenizer = !file.tokenizer_section().empty();
  if (state == TokenProbeState::empty)
    findings.push_back({"token probe", "an empty slot: the file was never finished",
                        "tokens, or the reason why there are none"});
  if (state == TokenProbeState::present && !has_tokenizer)
    findings.push_back({"token probe", "tokens, but no tokenizer section", "none without one"});
  if (state == TokenProbeState::no_tokenizer && has_tokenizer)
    findings.push_back(
        {"token probe", "that there is no tokenizer, and a tokenizer section", "one of the two"});
}

}  // namespace

Result<VerifyReport> verify(const File& file, const VerifyProgress& progress) {
  VerifyReport report;
  const std::uint64_t data_bytes = file.data().size();
  std::uint64_t total = data_bytes;
  for (const OptionalSection& section : file.optional_sections()) total += section.bytes.size();
  std::uint64_t shown = 0;
  const auto go_on = [&](std::uint64_t done) {
    report.checked_bytes = done;
    if (!progress || (done < total && done - shown < kProgressBytes)) return true;
    shown = done;
    return progress(done, total);
  };

  const auto tensors = file.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorRecord& tensor = tensors[i];
    TensorCheck check(file, tensor);
    while (check.step()) {
      if (!go_on(tensor.body_offset + check.done()))
        return errorf(ErrorCode::cancelled, "cancelled while checking tensor '%s'",
                      printable(tensor.name).c_str());
    }
    check.report(report.findings);
    const std::uint64_t next = i + 1 < tensors.size() ? tensors[i + 1].body_offset : data_bytes;
    const std::string name = stringf("tensor '%s'", printable(tensor.name).c_str());
    std::uint64_t end = tensor.body_offset + tensor.body_bytes;
    if (tensor.scale_bytes != 0) end = tensor.scale_offset + tensor.scale_bytes;  // no gap before
    check_gap(file.data().subspan(end, next - end), end, "data section", "the bytes behind " + name,
              report.findings);
    if (!go_on(next)) return errorf(ErrorCode::cancelled, "cancelled while checking");
  }
  std::uint64_t done = data_bytes;
  for (const OptionalSection& section : file.optional_sections()) {
    check_optional_section(section, report.findings);
    done += section.bytes.size();
    if (!go_on(done)) return errorf(ErrorCode::cancelled, "cancelled while checking");
  }
  check_tokenizer(file, report.findings);
  check_probes(file, report.findings);
  return report;
}

}  // namespace tsq::format
