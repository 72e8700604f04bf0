// One wrong field at a time, every digest made right again: the field's own check has to fire, and
// its message says where, what was found and what would be right.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/hash.h"
#include "format/reader.h"
#include "format_files.h"

namespace tsq::format {
namespace {

struct Case {
  const char* name;
  std::function<void(Bytes&)> change;
  std::string message;
  ErrorCode code = ErrorCode::damaged;
};

class WrongField : public testing::TestWithParam<Case> {};

TEST_P(WrongField, IsRefusedByItsOwnCheck) {
  Bytes bytes = copy_of(sample_file().span());
  GetParam().change(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), GetParam().code);
  EXPECT_EQ(file.error().message(), GetParam().message);
}

// A change at a fixed byte of the file.
template <class T>
std::function<void(Bytes&)> at(std::size_t offset, T value) {
  return [=](Bytes& bytes) {
    put(bytes, offset, value);
    sign(bytes);
  };
}

// The file's size is signed too, so it needs its own.
std::function<void(Bytes&)> file_bytes(std::uint64_t value) {
  return [=](Bytes& bytes) {
    sign(bytes);
    put(bytes, 64, value);
    Bytes header = copy_of(bytes.span());
    const auto digest = sha256(header.span().first(992));
    put(bytes, 992, digest);
  };
}

template <class T>
std::function<void(Bytes&)> in_section(std::size_t k, std::size_t offset, T value) {
  return [=](Bytes& bytes) {
    put(bytes, section_at(bytes, k) + offset, value);
    sign(bytes);
  };
}

template <class T>
std::function<void(Bytes&)> in_record(std::size_t tensor, std::size_t field, T value) {
  return [=](Bytes& bytes) {
    put(bytes, record_at(bytes, tensor, field), value);
    sign(bytes);
  };
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Header, WrongField,
    testing::Values(
        Case{"magic", at(0, 'G'), "not a .tsq file: it starts with 47535100, expected 54535100"},
        Case{"version", at(4, 3u), "header: version is 3, this build reads version 2",
             ErrorCode::unsupported},
        Case{"hidden_size_zero", at(8, 0u), "header: hidden_size is 0, expected at least 1"},
        Case{"hidden_size", at(8, 161u),
             "header: hidden_size is 161, metadata key 'test.embedding_length' says otherwise"},
        Case{"num_layers_zero", at(12, 0u), "header: num_layers is 0, expected at least 1"},
        Case{"num_layers", at(12, 2u),
             "header: num_layers is 2, metadata key 'test.block_count' says otherwise"},
        Case{"vocab_size_zero", at(16, 0u), "header: vocab_size is 0, expected at least 1"},
        Case{"vocab_size", at(16, 5u),
             "token probe: tokens[2] is 5, expected less than vocab_size 5"},
        Case{"quant_type", at(20, 1u), "header: quant_type is 1, expected 4 from the tensors"},
        Case{"quant_type_unknown", at(20, 5u),
             "header: quant_type is 5, expected 4 from the tensors"},
        Case{"hadamard_order", at(24, 6u),
             "header: hadamard_order is 6, expected 5 from the rotations"},
        Case{"zero_point_offset", at(28, 1088u),
             "header: zero_point_offset is 1088, expected 1024"},
        Case{"model_name_utf8", at(33, std::uint8_t{0xff}),
             "header: model_name 'S\\xffmple' is not UTF-8 without control characters"},
        Case{"model_name_control", at(33, '\n'),
             "header: model_name 'S\\x0ample' is not UTF-8 without control characters"},
        Case{"model_name_padding", at(63, 'x'),
             "header: model_name goes on after its NUL, expected NULs up to byte 63"},
        Case{"file_bytes", file_bytes(1), "header: file_bytes is 1, the file has 78400"},
        Case{"critical_unknown", at(72, std::uint64_t{1} << 11 | std::uint64_t{1} << 63),
             "header: critical feature bit 11, 63 is not known, this build knows 0 to 10: a newer "
             "tsq is needed",
             ErrorCode::unsupported},
        Case{"critical_not_needed", at(72, std::uint64_t{1}),
             "header: critical_features are 0x1, the tensors need 0x0"},
        Case{"too_few_sections", at(88, 6u), "header: n_sections is 6, expected 7 to 14"},
        Case{"too_many_sections", at(88, 15u), "header: n_sections is 15, expected 7 to 14"},
        Case{"reserved", at(92, 1u), "header: the reserved field at byte 92 is 1, expected 0"}),
    name_of);

// Entry k of the directory is at 96 + 64 k: kind, reserved, offset, bytes, count, digest.
INSTANTIATE_TEST_SUITE_P(
    Directory, WrongField,
    testing::Values(
        Case{"kind", at(96 + 64, 3u),
             "section directory: entry 1 has kind 3, expected 2 (metadata)"},
        Case{"reserved", at(96 + 128 + 4, 9u),
             "section directory: entry 2: reserved field is 9, expected 0"},
        Case{"first_offset", at(96 + 8, std::uint64_t{1088}),
             "section directory: entry 0 (run-length index) starts at byte 1088, expected 1024"},
        Case{"offset", at(96 + 192 + 8, kMost - 63),
             "section directory: entry 3 (tensor directory) starts at byte 18446744073709551552, "
             "expected 1280"},
        Case{"data_offset", at(96 + 384 + 8, std::uint64_t{4096}),
             "section directory: entry 6 (data) starts at byte 4096, expected 65536"},
        Case{"bytes", at(96 + 64 + 16, kMost),
             "section directory: entry 1 (metadata) has 18446744073709551615 bytes at byte 1024, "
             "the file has 78400"},
        Case{"run_length_index", at(96 + 16, std::uint64_t{64}),
             "section directory: entry 0 (run-length index) has 64 bytes, expected 0 without rle "
             "storage"},
        Case{"data_bytes", at(96 + 384 + 16, std::uint64_t{12863}),
             "section directory: the last section ends at byte 78399, the file has 78400"},
        Case{"run_length_count", at(96 + 24, std::uint64_t{1}),
             "section directory: entry 0 (run-length index) has count 1, expected 0"},
        Case{"tokenizer_count", at(96 + 256 + 24, std::uint64_t{1}),
             "section directory: entry 4 (tokenizer) has count 1, expected 0"},
        Case{"data_count", at(96 + 384 + 24, std::uint64_t{1}),
             "section directory: entry 6 (data) has count 1, expected 0"},
        Case{"data_digest", at(96 + 384 + 32, std::uint8_t{1}),
             "section directory: entry 6 (data) has a digest, expected zeros"},
        Case{"unused_entry", at(991, std::uint8_t{1}),
             "section directory: an entry from 7 on is not 0"},
        Case{"missing_entry", at(88, 8u),
             "section directory: entry 7 has kind 0, expected more than 7"},
        Case{"padding",
             [](Bytes& bytes) {
               put(bytes, section_at(bytes, 2) - 1, std::uint8_t{1});
               sign(bytes);
             },
             "padding before section 'rotations': a byte from 1186 on is not 0"}),
    name_of);

// The first entry: key length 20, "general.architecture", type 8, length 4, "test".
INSTANTIATE_TEST_SUITE_P(
    Metadata, WrongField,
    testing::Values(
        Case{"count_too_large", at(96 + 64 + 24, kMost),
             "metadata section: 18446744073709551615 metadata entries are promised at byte 0, 162 "
             "bytes are left"},
        Case{"count_one_more", at(96 + 64 + 24, std::uint64_t{6}),
             "metadata section: metadata key at byte 162 is cut off: it needs 8 bytes, 0 are left"},
        Case{"count_one_less", at(96 + 64 + 24, std::uint64_t{4}),
             "metadata section: 23 bytes follow the last entry, expected 0"},
        Case{"key_bytes", in_section(1, 0, std::uint64_t{0}),
             "metadata section: metadata key at byte 0 is empty"},
        Case{"value_type", in_section(1, 28, 13u),
             "metadata section: metadata key 'general.architecture': value type 13 at byte 28 is "
             "unknown, expected 0 to 12"},
        Case{"boolean", in_section(1, 161, std::uint8_t{2}),
             "metadata section: metadata key 'test.onoff': boolean at byte 161 is 2, expected 0 or "
             "1"},
        Case{"twice",
             [](Bytes& bytes) {
               std::memcpy(bytes.data() + section_at(bytes, 1) + 147, "test.scale", 10);
               sign(bytes);
             },
             "metadata section: metadata key 'test.scale' stands twice, expected once"}),
    name_of);

// Rotation 0: block 32, width 160, flags 1, reserved, five words; rotation 1 at byte 36: block 16,
// width 48, no signs.
INSTANTIATE_TEST_SUITE_P(
    Rotations, WrongField,
    testing::Values(
        Case{"count_too_large", at(96 + 128 + 24, std::uint64_t{4}),
             "rotations: 4 records are promised, the section has 52 bytes"},
        Case{"count_wraps", at(96 + 128 + 24, kMost / 16 + 1),
             "rotations: 1152921504606846976 records are promised, the section has 52 bytes"},
        Case{"count_one_more", at(96 + 128 + 24, std::uint64_t{3}),
             "rotation 2 is cut off at byte 52 of its section"},
        Case{"count_one_less", at(96 + 128 + 24, std::uint64_t{1}),
             "rotations: 16 bytes follow the last record, expected 0"},
        Case{"block_zero", in_section(2, 0, 0u),
             "rotation 0: block is 0, expected a power of two up to 16384"},
        Case{"block_no_power", in_section(2, 0, 20u),
             "rotation 0: block is 20, expected a power of two up to 16384"},
        Case{"block_too_large", in_section(2, 0, 32768u),
             "rotation 0: block is 32768, expected a power of two up to 16384"},
        Case{"block_does_not_divide", in_section(2, 0, 64u),
             "rotation 0: width is 160, expected a multiple of the block of 64"},
        Case{"width_zero", in_section(2, 4, 0u),
             "rotation 0: width is 0, expected a multiple of the block of 32"},
        Case{"width_of_no_tensor", in_section(2, 36 + 4, 64u),
             "tensor 'blk.0.ffn_down.weight': input_rotation 1 has width 64, expected the tensor's "
             "48 inputs"},
        Case{"width_beyond_the_section", in_section(2, 4, 0xffffffe0u),
             "rotation 0: 4294967264 signs need 536870908 bytes, 36 are left"},
        Case{"flags", in_section(2, 8, 3u), "rotation 0: flags are 0x3, only bit 0 is defined"},
        Case{"flags_without_signs", in_section(2, 36 + 8, 1u),
             "rotation 1: 48 signs need 8 bytes, 0 are left"},
        Case{"reserved", in_section(2, 12, 5u), "rotation 0: reserved field is 5, expected 0"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Tensors, WrongField,
    testing::Values(
        Case{"count_too_large", at(96 + 192 + 24, std::uint64_t{9}),
             "tensor directory: 9 records are promised, the section has 1648 bytes"},
        Case{"count_wraps", at(96 + 192 + 24, kMost / 192 + 1),
             "tensor directory: 96076792050570582 records are promised, the section has 1648 bytes"},
        Case{"name_bytes_zero", in_record(kQ, 0, 0u),
             "tensor record 2: name_bytes is 0, expected 1 to 1024"},
        Case{"name_bytes_too_large", in_record(kQ, 0, 1025u),
             "tensor record 2: name_bytes is 1025, expected 1 to 1024"},
        Case{"name_bytes_beyond_the_section", in_record(kQ8, 0, 6u),
             "tensor record 7: its name needs 6 bytes, 5 are left"},
        Case{"name_bytes_short", in_record(kQ8, 0, 4u),
             "tensor directory: 1 bytes follow the last name, expected 0"},
        Case{"name_utf8", in_section(3, 8 * 192, std::uint8_t{0x80}),
             "tensor record 0: name '\\x80oken_embd.weight' is not UTF-8 without control "
             "characters"},
        Case{"name_control", in_section(3, 8 * 192 + 1, std::uint8_t{0x1b}),
             "tensor record 0: name 't\\x1bken_embd.weight' is not UTF-8 without control "
             "characters"},
        Case{"name_twice", [](Bytes& bytes) {
               std::byte* const end = bytes.data() + section_at(bytes, 3) + section_bytes(bytes, 3);
               std::memcpy(end - 5, end - 10, 5);  // "eight" becomes "brain"
               sign(bytes);
             },
             "tensor 'brain' stands twice, expected once"},
        Case{"encoding", in_record(kNorm, 4, 5u),
             "tensor 'blk.0.attn_norm.weight': encoding is 5, expected 0 to 4 or 16 to 18"},
        Case{"storage", in_record(kQ, 8, 4u),
             "tensor 'blk.0.attn_q.weight': storage is 4, expected 0 to 3"},
        Case{"flags_unknown", in_record(kQ, 12, 16u),
             "tensor 'blk.0.attn_q.weight': flags are 0x10, 0x10 is not allowed for t2"},
        Case{"flags_minimum", in_record(kQ8, 12, 1u),
             "tensor 'eight': flags are 0x1, 0x1 is not allowed for q8"},
        Case{"flags_half_groups", in_record(kUp, 12, 2u),
             "tensor 'blk.0.ffn_up.weight': flags are 0x2, 0x2 is not allowed for t1"},
        Case{"flags_stride", in_record(kQ, 12, 4u),
             "tensor 'blk.0.attn_q.weight': flags are 0x4, 0x4 is not allowed for t2"},
        Case{"flags_fused", in_record(kQ, 12, 8u),
             "tensor 'blk.0.attn_q.weight': flags are 0x8, 0x8 is not allowed for t2"},
        Case{"n_dims_zero", in_record(kQ, 16, 0u),
             "tensor 'blk.0.attn_q.weight': n_dims is 0, expected 1 to 4"},
        Case{"n_dims_five", in_record(kQ, 16, 5u),
             "tensor 'blk.0.attn_q.weight': n_dims is 5, expected 1 to 4"},
        Case{"n_dims_one", in_record(kQ, 16, 1u),
             "tensor 'blk.0.attn_q.weight': dims[1] is 33, expected 1 with n_dims 1"},
        Case{"group_size", in_record(kQ, 20, 64u),
             "tensor 'blk.0.attn_q.weight': group_size is 64, expected 128 for t2"},
        Case{"group_size_dense", in_record(kNorm, 20, 128u),
             "tensor 'blk.0.attn_norm.weight': group_size is 128, expected 0 for f32"},
        Case{"dims_zero", in_record(kUp, 24, std::uint64_t{0}),
             "tensor 'blk.0.ffn_up.weight': dims[0] is 0, expected at least 1"},
        Case{"dims_unused_zero", in_record(kUp, 48, std::uint64_t{0}),
             "tensor 'blk.0.ffn_up.weight': dims[3] is 0, expected at least 1"},
        Case{"dims_wrap", in_record(kUp, 32, std::uint64_t{1} << 62),
             "tensor 'blk.0.ffn_up.weight': the product of dims 700 x 4611686018427387904 x 1 x 1 "
             "is not below 2^63"},
        Case{"dims_wrap_bytes", in_record(kNorm, 24, std::uint64_t{1} << 62),
             "tensor 'blk.0.attn_norm.weight': dims of 1 rows x 4611686018427387904 inputs in f32 "
             "exceed 2^64 bytes"},
        Case{"dims_of_other_size", in_record(kUp, 24, std::uint64_t{900}),
             "tensor 'blk.0.ffn_up.weight': body_bytes is 5504, expected 7168 for t1 of 2 rows x "
             "900 inputs"},
        Case{"scale_kind_none", in_record(kQ, 56, 0u),
             "tensor 'blk.0.attn_q.weight': scale_kind is 0, expected 1 to 3 for t2"},
        Case{"scale_kind_unknown", in_record(kQ, 56, 4u),
             "tensor 'blk.0.attn_q.weight': scale_kind is 4, expected 1 to 3 for t2"},
        Case{"scale_kind_dense", in_record(kQ8, 56, 1u),
             "tensor 'eight': scale_kind is 1, expected 0 for q8"},
        Case{"activation_quant_none", in_record(kQ, 60, 0u),
             "tensor 'blk.0.attn_q.weight': activation_quant is 0, expected 1 or 2 for t2"},
        Case{"activation_quant_unknown", in_record(kQ, 60, 3u),
             "tensor 'blk.0.attn_q.weight': activation_quant is 3, expected 1 or 2 for t2"},
        Case{"activation_quant_dense", in_record(kQ8, 60, 1u),
             "tensor 'eight': activation_quant is 1, expected 0 for q8"},
        Case{"input_rotation", in_record(kUp, 64, 2u),
             "tensor 'blk.0.ffn_up.weight': input_rotation is 2, the file has 2 rotations"},
        Case{"input_rotation_of_other_width", in_record(kUp, 64, 0u),
             "tensor 'blk.0.ffn_up.weight': input_rotation 0 has width 160, expected the tensor's "
             "700 inputs"},
        Case{"input_rotation_lost", in_record(kQ, 64, 0xffffffffu),
             "rotation probe 0: tensor 'blk.0.attn_q.weight' does not have input rotation 0"},
        Case{"zero_count", in_record(kDown, 72, std::uint64_t{145}),
             "tensor 'blk.0.ffn_down.weight': zero_count is 145, at most 144 is possible"},
        Case{"zero_count_dense", in_record(kNorm, 72, std::uint64_t{1}),
             "tensor 'blk.0.attn_norm.weight': zero_count is 1, at most 0 is possible"},
        Case{"body_offset_overlaps", in_record(kQ, 80, std::uint64_t{640}),
             "tensor 'blk.0.attn_q.weight': body_offset is 640, expected 1280: tensors lie one "
             "behind the other at multiples of 64"},
        Case{"body_offset_unaligned", in_record(kQ, 80, std::uint64_t{1281}),
             "tensor 'blk.0.attn_q.weight': body_offset is 1281, expected 1280: tensors lie one "
             "behind the other at multiples of 64"},
        Case{"body_offset_wraps", in_record(kQ, 80, kMost),
             "tensor 'blk.0.attn_q.weight': body_offset is 18446744073709551615, expected 1280: "
             "tensors lie one behind the other at multiples of 64"},
        Case{"body_bytes", in_record(kQ, 88, std::uint64_t{4351}),
             "tensor 'blk.0.attn_q.weight': body_bytes is 4351, expected 4352 for t2 of 33 rows x "
             "160 inputs"},
        Case{"body_beyond_the_data", [](Bytes& bytes) {
               put(bytes, record_at(bytes, kQ8, 32), std::uint64_t{1} << 40);
               put(bytes, record_at(bytes, kQ8, 88), std::uint64_t{68} << 40);
               sign(bytes);
             },
             "tensor 'eight': 74766790688768 bytes at 12672 of the data section, which has 12864"},
        Case{"scale_offset", in_record(kQ, 96, std::uint64_t{64}),
             "tensor 'blk.0.attn_q.weight': scale_offset is 64, expected 0"},
        Case{"scale_bytes", in_record(kQ, 104, std::uint64_t{4}),
             "tensor 'blk.0.attn_q.weight': scale_bytes is 4, expected 0 for scale_kind 1 and 33 rows"},
        Case{"residual_offset", in_record(kQ, 120, std::uint64_t{64}),
             "tensor 'blk.0.attn_q.weight': residual_offset is 64, expected 0"},
        Case{"reserved_first", in_record(kQ, 136, std::uint8_t{1}),
             "tensor 'blk.0.attn_q.weight': a reserved byte is not 0"},
        Case{"reserved_last", in_record(kQ, 191, std::uint8_t{1}),
             "tensor 'blk.0.attn_q.weight': a reserved byte is not 0"}),
    name_of);

// What the format has and this build has not, each by its name.
Case unsupported(const char* name, std::function<void(Bytes&)> change, const char* feature,
                 unsigned bit) {
  return {name, std::move(change),
          "tensor 'blk.0.attn_q.weight': needs '" + std::string(feature) + "' (feature bit " +
              std::to_string(bit) + "), which this build lacks",
          ErrorCode::unsupported};
}

INSTANTIATE_TEST_SUITE_P(
    Unsupported, WrongField,
    testing::Values(unsupported("output_rotation", in_record(kQ, 68, 0u), "output rotation", 5),
                    unsupported("residual", in_record(kQ, 128, std::uint64_t{64}), "residual", 6),
                    unsupported("rle", in_record(kQ, 8, 1u), "rle storage", 7),
                    unsupported("mask", in_record(kQ, 8, 2u), "mask storage", 8),
                    unsupported("zstd", in_record(kQ, 8, 3u), "zstd storage", 9)),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    TokenProbe, WrongField,
    testing::Values(
        Case{"state", in_section(5, 0, 5u), "token probe: state is 5, expected 0 to 4"},
        Case{"n_tokens_one", in_section(5, 4, 1u),
             "token probe: n_tokens is 1, expected 2 to 32 in state 1"},
        Case{"n_tokens_too_large", in_section(5, 4, 33u),
             "token probe: n_tokens is 33, expected 2 to 32 in state 1"},
        Case{"n_tokens_not_present", in_section(5, 0, 2u),
             "token probe: n_tokens is 3, expected 0 in state 2"},
        Case{"n_greedy_too_large", in_section(5, 8, 17u),
             "token probe: n_greedy is 17, expected 0 to 16 in state 1"},
        Case{"n_greedy_not_present",
             [](Bytes& bytes) {
               put(bytes, section_at(bytes, 5), 3u);
               put(bytes, section_at(bytes, 5) + 4, 0u);
               sign(bytes);
             },
             "token probe: n_greedy is 1, expected 0 in state 3"},
        Case{"reserved", in_section(5, 12, 1u), "token probe: reserved field is 1, expected 0"},
        Case{"mean_nll_infinite", in_section(5, 16, std::numeric_limits<double>::infinity()),
             "token probe: mean_nll is inf, expected a finite number of at least 0"},
        Case{"mean_nll_negative", in_section(5, 16, -1.0),
             "token probe: mean_nll is -1, expected a finite number of at least 0"},
        Case{"mean_nll_not_present",
             [](Bytes& bytes) {
               put(bytes, section_at(bytes, 5), 4u);
               put(bytes, section_at(bytes, 5) + 4, std::uint64_t{0});
               sign(bytes);
             },
             "token probe: mean_nll is 1.25, expected 0"},
        Case{"token", in_section(5, 24, 6u),
             "token probe: tokens[0] is 6, expected less than vocab_size 6"},
        Case{"token_unused", in_section(5, 24 + 4 * 31, 1u),
             "token probe: tokens[31] is 1, expected 0 from 3 on"},
        Case{"greedy", in_section(5, 152, 6u),
             "token probe: greedy[0] is 6, expected less than vocab_size 6"},
        Case{"greedy_unused", in_section(5, 152 + 4 * 15, 1u),
             "token probe: greedy[15] is 1, expected 0 from 1 on"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    RotationProbe, WrongField,
    testing::Values(
        Case{"count", at(96 + 320 + 24, std::uint64_t{3}),
             "probes: the section has 280 bytes, expected 216 + 32 x 3"},
        Case{"count_wraps", at(96 + 320 + 24, std::uint64_t{1} << 59 | 2),
             "probes: the section has 280 bytes, expected 216 + 32 x 576460752303423490"},
        Case{"rotation", in_section(5, 216, 2u), "rotation probe 0: rotation is 2, the file has 2"},
        Case{"rotation_of_another", in_section(5, 216, 1u),
             "rotation probe 0: tensor 'blk.0.attn_q.weight' does not have input rotation 1"},
        Case{"tensor", in_section(5, 216 + 4, 8u), "rotation probe 0: tensor is 8, the file has 8"},
        Case{"row", in_section(5, 216 + 8, std::uint64_t{33}),
             "rotation probe 0: row is 33, tensor 'blk.0.attn_q.weight' has 33"},
        Case{"col", in_section(5, 216 + 16, std::uint64_t{160}),
             "rotation probe 0: col is 160, tensor 'blk.0.attn_q.weight' has 160"},
        Case{"value", in_section(5, 216 + 24, std::numeric_limits<double>::quiet_NaN()),
             "rotation probe 0: value is nan, expected a finite number"},
        Case{"rotation_without_probe",
             [](Bytes& bytes) {
               const std::size_t first = section_at(bytes, 5) + 216;
               std::memcpy(bytes.data() + first + 32, bytes.data() + first, 32);
               sign(bytes);
             },
             "rotation 1 has no rotation probe, expected at least one"}),
    name_of);

TEST(WrongFields, PaddingBeforeTheData) {
  for (const bool first : {true, false}) {
    Bytes bytes = copy_of(sample_file().span());
    const std::size_t end = section_at(bytes, 5) + section_bytes(bytes, 5);
    put(bytes, first ? end : 65535, std::uint8_t{1});
    sign(bytes);
    EXPECT_EQ(File::parse(bytes.span()).error().message(),
              "padding before section 'data': a byte from " + std::to_string(end) + " on is not 0");
  }
}

TEST(WrongFields, SignBitsBehindTheWidthAreRefused) {
  FileContents contents = sample_contents();
  contents.rotations[1].signs = {1, 0x8000};  // width 48: 16 bits of the last word
  Bytes bytes = make_file(contents);
  put<std::uint32_t>(bytes, section_at(bytes, 2) + 36 + 16 + 4, 0x10000);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "rotation 1: a sign bit is set behind the width of 48");
}

TEST(WrongFields, ARotationThatNobodyUsesIsRefused) {
  FileContents contents = sample_contents();
  contents.tensors[kUp].dims[0] = 48;
  contents.tensors[kUp].input_rotation = 1;
  Bytes bytes = make_file(contents);
  // Both of rotation 1's tensors and its probe go over to none.
  put(bytes, record_at(bytes, kUp, 64), 0xffffffffu);
  put(bytes, record_at(bytes, kDown, 64), 0xffffffffu);
  const std::size_t first = section_at(bytes, 5) + 216;
  std::memcpy(bytes.data() + first + 32, bytes.data() + first, 32);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "rotation 1 is used by no tensor, expected at least one");
}

TEST(WrongFields, ATooSmallProbesSectionIsRefused) {
  Bytes bytes = copy_of(sample_file().span());
  put(bytes, 96 + 320 + 16, std::uint64_t{215});
  put(bytes, 96 + 320 + 24, std::uint64_t{0});
  std::memset(bytes.data() + section_at(bytes, 5) + 215, 0, 280 - 215);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "probes: the section has 215 bytes, expected 216 + 32 x 0");
}

TEST(WrongFields, MetadataKeysOfOtherSectionsAreRefused) {
  const std::pair<const char*, const char*> keys[] = {{"tokenizer.ggml.tokens", "tokenizer"},
                                                      {"tokenizer.ggml.scores", "tokenizer"},
                                                      {"tokenizer.ggml.merges", "tokenizer"},
                                                      {"prism.hadamard.versio", "rotations"}};
  for (const auto& [key, section] : keys) {
    Bytes bytes = copy_of(sample_file().span());  // over "test.embedding_length", as long
    std::memcpy(bytes.data() + section_at(bytes, 1) + 44 + 8, key, 21);
    sign(bytes);
    EXPECT_EQ(File::parse(bytes.span()).error().message(),
              "metadata key '" + std::string(key) +
                  "' is not allowed: its content belongs in the " + section + " section");
  }
}

}  // namespace
}  // namespace tsq::format
