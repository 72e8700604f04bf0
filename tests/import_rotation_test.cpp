// The rotation contract of GGUF files: what it means, and every way of breaking it.
#include <gtest/gtest.h>

#include <functional>

#include "gguf_builder.h"
#include "import/gguf.h"

namespace tsq {
namespace {

using gguf::GgufBuilder;
using importer::Bytes;

Result<importer::Checkpoint> parse(const std::vector<std::byte>& file) {
  const Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

// Two widths, 64 and 128, in blocks of 64; +1 but for a few places.
std::vector<std::int32_t> sign_values() {
  std::vector<std::int32_t> values(192, 1);
  for (const std::size_t minus : {0u, 33u, 63u, 64u, 191u}) values[minus] = -1;
  return values;
}

GgufBuilder rotated() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("qwen3"));
  file.set("prism.hadamard.version", gguf::u32(1));
  file.set("prism.hadamard.block_size", gguf::u32(64));
  file.set("prism.hadamard.transform", gguf::text("normalized-sylvester-walsh-hadamard"));
  file.set("prism.hadamard.axis", gguf::text("input-last-dimension"));
  file.set("prism.hadamard.sign_mode", gguf::text("explicit"));
  file.set("prism.hadamard.sign_widths", gguf::i32s({64, 128}));
  file.set("prism.hadamard.sign_values", gguf::i32s(sign_values()));
  file.set("prism.hadamard.weight_names",
           gguf::texts({"blk.0.attn_q.weight", "blk.0.ffn_down.weight", "output.weight"}));
  file.set("prism.hadamard.inverse_weight_names", gguf::texts({"token_embd.weight"}));
  file.set("prism.hadamard.gdn_v_grouped", gguf::boolean(true));
  file.add("token_embd.weight", gguf::kF16, {64, 2}, gguf::some_bytes(256, 1));
  file.add("blk.0.attn_norm.weight", gguf::kF32, {64}, gguf::some_bytes(256, 2));
  file.add("blk.0.attn_q.weight", gguf::kF16, {64, 2}, gguf::some_bytes(256, 3));
  file.add("blk.0.attn_k.weight", gguf::kF16, {64, 2}, gguf::some_bytes(256, 3));
  file.add("blk.0.ffn_down.weight", gguf::kF16, {128, 1}, gguf::some_bytes(256, 4));
  file.add("output.weight", gguf::kF16, {64, 2}, gguf::some_bytes(256, 5));
  return file;
}

const importer::Tensor& find(const importer::Checkpoint& checkpoint, std::string_view name) {
  return *std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                       [&](const auto& tensor) { return tensor.name == name; });
}

TEST(RotationContract, GivesEachNamedTensorTheRotationOfItsWidth) {
  const auto file = rotated().build();
  const auto checkpoint = parse(file);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_TRUE(checkpoint->warnings.empty());
  EXPECT_TRUE(checkpoint->gdn_v_grouped);
  ASSERT_EQ(checkpoint->rotations.size(), 2u);

  const std::uint32_t narrow = find(*checkpoint, "token_embd.weight").rotation;
  const std::uint32_t wide = find(*checkpoint, "blk.0.ffn_down.weight").rotation;
  EXPECT_EQ(find(*checkpoint, "blk.0.attn_q.weight").rotation, narrow);
  EXPECT_EQ(find(*checkpoint, "output.weight").rotation, narrow);
  EXPECT_EQ(find(*checkpoint, "blk.0.attn_k.weight").rotation, format::kNoRotation);
  EXPECT_EQ(find(*checkpoint, "blk.0.attn_norm.weight").rotation, format::kNoRotation);
  ASSERT_LT(narrow, 2u);
  ASSERT_EQ(wide, 1 - narrow);
  EXPECT_EQ(checkpoint->rotations[narrow].width, 64u);
  EXPECT_EQ(checkpoint->rotations[wide].width, 128u);
  EXPECT_EQ(checkpoint->rotations[narrow].block, 64u);
  EXPECT_EQ(checkpoint->rotations[narrow].signs,
            (std::vector<std::uint32_t>{1u, 1u << 1 | 1u << 31}));
  EXPECT_EQ(checkpoint->rotations[wide].signs, (std::vector<std::uint32_t>{1u, 0, 0, 1u << 31}));
}

TEST(RotationContract, TakesAnyIntegerType) {
  const auto expected_file = rotated().build();
  const auto expected = parse(expected_file);
  ASSERT_TRUE(expected);
  auto file = rotated();
  std::vector<std::int8_t> bytes;
  for (const std::int32_t value : sign_values()) bytes.push_back(static_cast<std::int8_t>(value));
  file.set("prism.hadamard.version", gguf::scalar(ValueType::i64, std::int64_t{1}));
  file.set("prism.hadamard.block_size", gguf::scalar(ValueType::u8, std::uint8_t{64}));
  file.set("prism.hadamard.sign_values", gguf::array(ValueType::i8, bytes));
  file.set("prism.hadamard.sign_widths",
           gguf::array(ValueType::u64, std::vector<std::uint64_t>{64, 128}));
  const auto actual_file = file.build();
  const auto actual = parse(actual_file);
  ASSERT_TRUE(actual) << actual.error().message();
  ASSERT_EQ(actual->rotations.size(), expected->rotations.size());
  for (std::size_t i = 0; i < actual->rotations.size(); ++i) {
    EXPECT_EQ(actual->rotations[i].signs, expected->rotations[i].signs);
  }
}

TEST(RotationContract, IdentityNeedsNoSigns) {
  auto file = rotated();
  file.set("prism.hadamard.sign_mode", gguf::text("identity"));
  file.erase("prism.hadamard.sign_widths").erase("prism.hadamard.sign_values");
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  ASSERT_EQ(checkpoint->rotations.size(), 2u);
  for (const auto& rotation : checkpoint->rotations) {
    EXPECT_EQ(rotation.block, 64u);
    EXPECT_TRUE(rotation.signs.empty());
  }
}

TEST(RotationContract, AllPlusIsTheSameAsNoSigns) {
  auto file = rotated();
  file.set("prism.hadamard.sign_values", gguf::i32s(std::vector<std::int32_t>(192, 1)));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  EXPECT_TRUE(checkpoint->rotations[0].signs.empty());
}

TEST(RotationContract, TheEmbeddingMayStayPlain) {
  auto file = rotated();
  file.set("prism.hadamard.inverse_weight_names", gguf::texts({}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(find(*checkpoint, "token_embd.weight").rotation, format::kNoRotation);
}

// A tied model has no output.weight: its head is the embedding's record.
TEST(RotationContract, ATiedHeadIsTheEmbedding) {
  auto file = rotated();
  std::erase_if(file.tensors, [](const auto& tensor) { return tensor.name == "output.weight"; });
  file.set("prism.hadamard.weight_names",
           gguf::texts({"blk.0.attn_q.weight", "blk.0.ffn_down.weight"}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_NE(find(*checkpoint, "token_embd.weight").rotation, format::kNoRotation);
}

TEST(RotationContract, UnusedWidthsLeaveNoRotation) {
  auto file = rotated();
  file.set("prism.hadamard.weight_names", gguf::texts({"blk.0.attn_q.weight"}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ(checkpoint->rotations.size(), 1u);
  EXPECT_EQ(checkpoint->rotations[0].width, 64u);
}

TEST(RotationContract, WarnsOfUnknownKeys) {
  auto file = rotated();
  file.set("prism.hadamard.tied_output", gguf::boolean(true));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ(checkpoint->warnings.size(), 1u);
  EXPECT_NE(checkpoint->warnings[0].find("'prism.hadamard.tied_output'"), std::string::npos);
}

// gdn_v_grouped is optional where no ssm_out is rotated.
TEST(RotationContract, GroupedHeadsMayBeLeftOut) {
  auto file = rotated();
  file.erase("prism.hadamard.gdn_v_grouped");
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_FALSE(checkpoint->gdn_v_grouped);
}

TEST(RotationContract, EveryKindOfWeightMayBeRotated) {
  auto file = rotated();
  std::vector<std::string> names;
  for (const char* kind :
       {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_gate", "attn_output", "ffn_gate", "ffn_up",
        "ffn_down", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ssm_out"}) {
    names.push_back("blk.17." + std::string(kind) + ".weight");
    file.add(names.back(), gguf::kF16, {64, 1, 2}, gguf::some_bytes(256, 7));
  }
  file.set("general.architecture", gguf::text("qwen35moe"));
  file.set("prism.hadamard.weight_names", gguf::texts(names));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  for (const std::string& name : names) {
    EXPECT_NE(find(*checkpoint, name).rotation, format::kNoRotation) << name;
  }
}

struct Broken {
  const char* name;
  std::function<void(GgufBuilder&)> breaks;
  ErrorCode code;
  std::vector<std::string> message;
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenContract : public testing::TestWithParam<Broken> {};

TEST_P(BrokenContract, IsRefusedByName) {
  auto builder = rotated();
  GetParam().breaks(builder);
  const auto file = builder.build();
  const auto checkpoint = parse(file);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), GetParam().code) << checkpoint.error().message();
  for (const std::string& fragment : GetParam().message) {
    EXPECT_NE(checkpoint.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << checkpoint.error().message();
  }
}

constexpr auto kDamaged = ErrorCode::damaged;
constexpr auto kUnsupported = ErrorCode::unsupported;

std::vector<std::int32_t> signs_with(std::size_t at, std::int32_t value) {
  auto values = sign_values();
  values[at] = value;
  return values;
}
void rename_weight(GgufBuilder& file, const std::string& name) {
  file.tensor("blk.0.attn_q.weight").name = name;
  file.set("prism.hadamard.weight_names", gguf::texts({name}));
}

const Broken kBroken[] = {
    // missing
    {"no_version",
     [](auto& f) { f.erase("prism.hadamard.version"); },
     kDamaged,
     {"'prism.hadamard.version' is missing"}},
    {"no_block_size",
     [](auto& f) { f.erase("prism.hadamard.block_size"); },
     kDamaged,
     {"'prism.hadamard.block_size' is missing"}},
    {"no_transform",
     [](auto& f) { f.erase("prism.hadamard.transform"); },
     kDamaged,
     {"'prism.hadamard.transform' is missing"}},
    {"no_axis",
     [](auto& f) { f.erase("prism.hadamard.axis"); },
     kDamaged,
     {"'prism.hadamard.axis' is missing"}},
    {"no_sign_mode",
     [](auto& f) { f.erase("prism.hadamard.sign_mode"); },
     kDamaged,
     {"'prism.hadamard.sign_mode' is missing"}},
    {"no_sign_widths",
     [](auto& f) { f.erase("prism.hadamard.sign_widths"); },
     kDamaged,
     {"'prism.hadamard.sign_widths' is missing"}},
    {"no_sign_values",
     [](auto& f) { f.erase("prism.hadamard.sign_values"); },
     kDamaged,
     {"'prism.hadamard.sign_values' is missing"}},
    {"no_weight_names",
     [](auto& f) { f.erase("prism.hadamard.weight_names"); },
     kDamaged,
     {"'prism.hadamard.weight_names' is missing"}},
    {"no_inverse_names",
     [](auto& f) { f.erase("prism.hadamard.inverse_weight_names"); },
     kDamaged,
     {"'prism.hadamard.inverse_weight_names' is missing"}},
    {"one_key_alone",
     [](auto& f) {
       std::erase_if(f.keys, [](const auto& entry) {
         return entry.first.starts_with("prism.") && entry.first != "prism.hadamard.gdn_v_grouped";
       });
     },
     kDamaged,
     {"'prism.hadamard.version' is missing"}},
    // another contract
    {"version",
     [](auto& f) { f.set("prism.hadamard.version", gguf::u32(2)); },
     kUnsupported,
     {"'prism.hadamard.version' is 2", "expected 1"}},
    {"transform",
     [](auto& f) { f.set("prism.hadamard.transform", gguf::text("normalized-dct")); },
     kUnsupported,
     {"'prism.hadamard.transform' is 'normalized-dct'", "normalized-sylvester-walsh-hadamard"}},
    {"axis",
     [](auto& f) { f.set("prism.hadamard.axis", gguf::text("output")); },
     kUnsupported,
     {"'prism.hadamard.axis' is 'output'", "'input-last-dimension'"}},
    {"sign_mode",
     [](auto& f) { f.set("prism.hadamard.sign_mode", gguf::text("seeded")); },
     kUnsupported,
     {"'prism.hadamard.sign_mode' is 'seeded'", "'explicit' or 'identity'"}},
    {"architecture",
     [](auto& f) { f.set("general.architecture", gguf::text("gemma3")); },
     kUnsupported,
     {"'gemma3'", "qwen35"}},
    // numbers
    {"block_no_power",
     [](auto& f) { f.set("prism.hadamard.block_size", gguf::u32(96)); },
     kDamaged,
     {"'prism.hadamard.block_size' is 96", "power of two"}},
    {"block_zero",
     [](auto& f) { f.set("prism.hadamard.block_size", gguf::u32(0)); },
     kDamaged,
     {"'prism.hadamard.block_size' is 0", "power of two"}},
    {"block_too_large",
     [](auto& f) { f.set("prism.hadamard.block_size", gguf::u32(32768)); },
     kDamaged,
     {"'prism.hadamard.block_size' is 32768", "16384"}},
    {"block_wider_than_a_width",
     [](auto& f) { f.set("prism.hadamard.block_size", gguf::u32(128)); },
     kDamaged,
     {"'prism.hadamard.sign_widths' holds 64", "multiple of the block size, 128"}},
    {"widths_empty",
     [](auto& f) { f.set("prism.hadamard.sign_widths", gguf::i32s({})); },
     kDamaged,
     {"'prism.hadamard.sign_widths' is empty"}},
    {"width_not_divisible",
     [](auto& f) {
       f.set("prism.hadamard.sign_widths", gguf::i32s({96, 96}));
     },
     kDamaged,
     {"'prism.hadamard.sign_widths' holds 96", "block size, 64"}},
    {"width_negative",
     [](auto& f) {
       f.set("prism.hadamard.sign_widths", gguf::i32s({256, -64}));
     },
     kDamaged,
     {"'prism.hadamard.sign_widths' holds -64"}},
    {"width_twice",
     [](auto& f) {
       f.set("prism.hadamard.sign_widths", gguf::i32s({64, 64, 64}));
     },
     kDamaged,
     {"'prism.hadamard.sign_widths' holds 64 twice"}},
    {"width_of_a_tensor_missing",
     [](auto& f) { f.set("prism.hadamard.sign_widths", gguf::i32s({192})); },
     kDamaged,
     {"'token_embd.weight' has 64 inputs", "'prism.hadamard.sign_widths'"}},
    {"sum_of_widths",
     [](auto& f) {
       f.set("prism.hadamard.sign_widths", gguf::i32s({64, 128, 192}));
     },
     kDamaged,
     {"'prism.hadamard.sign_values' holds 192", "add up to 384"}},
    {"value_zero",
     [](auto& f) { f.set("prism.hadamard.sign_values", gguf::i32s(signs_with(5, 0))); },
     kDamaged,
     {"'prism.hadamard.sign_values' holds 0 at 5", "+1 or -1"}},
    {"value_two",
     [](auto& f) { f.set("prism.hadamard.sign_values", gguf::i32s(signs_with(191, 2))); },
     kDamaged,
     {"'prism.hadamard.sign_values' holds 2 at 191", "+1 or -1"}},
    {"identity_with_minus",
     [](auto& f) { f.set("prism.hadamard.sign_mode", gguf::text("identity")); },
     kDamaged,
     {"'prism.hadamard.sign_mode' is 'identity'", "holds -1"}},
    {"identity_width",
     [](auto& f) {
       f.set("prism.hadamard.sign_mode", gguf::text("identity"));
       f.erase("prism.hadamard.sign_values");
       f.set("prism.hadamard.block_size", gguf::u32(128));
     },
     kDamaged,
     {"'token_embd.weight' has 64 inputs", "128"}},
    // names
    {"names_empty",
     [](auto& f) { f.set("prism.hadamard.weight_names", gguf::texts({})); },
     kDamaged,
     {"'prism.hadamard.weight_names' is empty"}},
    {"name_twice",
     [](auto& f) {
       f.set("prism.hadamard.weight_names",
             gguf::texts({"output.weight", "blk.0.attn_q.weight", "output.weight"}));
     },
     kDamaged,
     {"'prism.hadamard.weight_names' holds 'output.weight' twice"}},
    {"inverse_name_twice",
     [](auto& f) {
       f.set("prism.hadamard.inverse_weight_names",
             gguf::texts({"token_embd.weight", "token_embd.weight"}));
     },
     kDamaged,
     {"'prism.hadamard.inverse_weight_names' holds 'token_embd.weight' twice"}},
    {"inverse_name",
     [](auto& f) { f.set("prism.hadamard.inverse_weight_names", gguf::texts({"output.weight"})); },
     kUnsupported,
     {"'prism.hadamard.inverse_weight_names' holds 'output.weight'", "'token_embd.weight'"}},
    {"name_without_tensor",
     [](auto& f) { f.set("prism.hadamard.weight_names", gguf::texts({"blk.1.attn_q.weight"})); },
     kDamaged,
     {"'blk.1.attn_q.weight'", "no such tensor"}},
    {"inverse_name_without_tensor",
     [](auto& f) { f.tensor("token_embd.weight").name = "embedding.weight"; },
     kDamaged,
     {"'prism.hadamard.inverse_weight_names' holds 'token_embd.weight'", "no such tensor"}},
    {"head_of_a_tied_model",
     [](auto& f) { f.tensor("output.weight").name = "other.weight"; },
     kDamaged,
     {"'output.weight'", "no such tensor", "tied head"}},
    {"embedding_forward",
     [](auto& f) { rename_weight(f, "token_embd.weight.x"); },
     kUnsupported,
     {"'token_embd.weight.x'", "output.weight or a matrix"}},
    {"kind_norm",
     [](auto& f) { rename_weight(f, "blk.0.attn_q_norm.weight"); },
     kUnsupported,
     {"'blk.0.attn_q_norm.weight'"}},
    {"kind_ssm_alpha",
     [](auto& f) { rename_weight(f, "blk.0.ssm_alpha.weight"); },
     kUnsupported,
     {"'blk.0.ssm_alpha.weight'"}},
    {"kind_bias",
     [](auto& f) { rename_weight(f, "blk.0.attn_q.bias"); },
     kUnsupported,
     {"'blk.0.attn_q.bias'"}},
    {"kind_without_layer",
     [](auto& f) { rename_weight(f, "blk.attn_q.weight"); },
     kUnsupported,
     {"'blk.attn_q.weight'"}},
    {"vector",
     [](auto& f) {
       auto& tensor = f.tensor("blk.0.attn_q.weight");
       tensor.dims = {64};
       tensor.data.resize(128);
     },
     kDamaged,
     {"'blk.0.attn_q.weight'", "no matrix"}},
    {"heads_not_grouped",
     [](auto& f) {
       rename_weight(f, "blk.0.ssm_out.weight");
       f.erase("prism.hadamard.gdn_v_grouped");
     },
     kUnsupported,
     {"'blk.0.ssm_out.weight'", "'prism.hadamard.gdn_v_grouped' = true"}},
    {"heads_grouped_false",
     [](auto& f) {
       rename_weight(f, "blk.0.ssm_out.weight");
       f.set("prism.hadamard.gdn_v_grouped", gguf::boolean(false));
     },
     kUnsupported,
     {"'blk.0.ssm_out.weight'", "'prism.hadamard.gdn_v_grouped' = true"}},
    // types
    {"version_type",
     [](auto& f) { f.set("prism.hadamard.version", gguf::text("1")); },
     kDamaged,
     {"'prism.hadamard.version' is string"}},
    {"block_size_type",
     [](auto& f) { f.set("prism.hadamard.block_size", gguf::f32(64)); },
     kDamaged,
     {"'prism.hadamard.block_size' is f32"}},
    {"transform_type",
     [](auto& f) { f.set("prism.hadamard.transform", gguf::u32(1)); },
     kDamaged,
     {"'prism.hadamard.transform' is u32"}},
    {"axis_type",
     [](auto& f) { f.set("prism.hadamard.axis", gguf::u32(0)); },
     kDamaged,
     {"'prism.hadamard.axis' is u32"}},
    {"sign_mode_type",
     [](auto& f) { f.set("prism.hadamard.sign_mode", gguf::boolean(true)); },
     kDamaged,
     {"'prism.hadamard.sign_mode' is bool"}},
    {"sign_widths_type",
     [](auto& f) { f.set("prism.hadamard.sign_widths", gguf::u32(64)); },
     kDamaged,
     {"'prism.hadamard.sign_widths' is u32", "array of integers"}},
    {"sign_values_type",
     [](auto& f) {
       f.set("prism.hadamard.sign_values",
             gguf::array(ValueType::f32, std::vector<float>(192, 1.0f)));
     },
     kDamaged,
     {"'prism.hadamard.sign_values' is array of f32", "array of integers"}},
    {"weight_names_type",
     [](auto& f) { f.set("prism.hadamard.weight_names", gguf::text("output.weight")); },
     kDamaged,
     {"'prism.hadamard.weight_names' is string", "array of strings"}},
    {"inverse_names_type",
     [](auto& f) { f.set("prism.hadamard.inverse_weight_names", gguf::i32s({1})); },
     kDamaged,
     {"'prism.hadamard.inverse_weight_names' is array of i32", "array of strings"}},
    {"grouped_type",
     [](auto& f) { f.set("prism.hadamard.gdn_v_grouped", gguf::u32(1)); },
     kDamaged,
     {"'prism.hadamard.gdn_v_grouped' is u32", "boolean"}},
    {"architecture_missing",
     [](auto& f) { f.erase("general.architecture"); },
     kDamaged,
     {"'general.architecture' is missing"}},
};

INSTANTIATE_TEST_SUITE_P(Every, BrokenContract, testing::ValuesIn(kBroken),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tsq
