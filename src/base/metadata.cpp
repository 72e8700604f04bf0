#include "base/metadata.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/errorf.h"

namespace tsq {
namespace {

constexpr int kMaxDepth = 4;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxEntries = 65536;  // models have some dozens; bounds what is held
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;  // key of one byte, type, a u8

// Bytes of a value of fixed size; 0 for strings, arrays and numbers that are no type.
std::size_t fixed_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return 0;
}

bool is_type(ValueType type) {
  return fixed_bytes(type) != 0 || type == ValueType::string || type == ValueType::array;
}

Error cut_off(const char* what, std::size_t at, std::uint64_t needed, std::size_t left) {
  return errorf(ErrorCode::damaged, "%s at byte %zu is cut off: it needs %llu bytes, %zu are left",
                what, at, static_cast<unsigned long long>(needed), left);
}

Error unknown_type(std::size_t at, ValueType type) {
  return errorf(ErrorCode::damaged, "value type %u at byte %zu is unknown, expected 0 to 12",
                static_cast<unsigned>(type), at);
}

Result<std::string_view> read_text(ByteReader& in, const char* what, std::uint64_t max_bytes) {
  const std::size_t at = in.offset();
  if (in.left() < 8) return cut_off(what, at, 8, in.left());
  const auto length = in.read<std::uint64_t>();
  if (length > max_bytes)
    return errorf(ErrorCode::damaged, "%s at byte %zu has %llu bytes, at most %llu are allowed",
                  what, at, static_cast<unsigned long long>(length),
                  static_cast<unsigned long long>(max_bytes));
  if (length > in.left()) return cut_off(what, at, length, in.left());
  return in.take_text(length);
}

Result<void> check_booleans(std::span<const std::byte> bytes, std::size_t at) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > std::byte{1})
      return errorf(ErrorCode::damaged, "boolean at byte %zu is %u, expected 0 or 1", at + i,
                    std::to_integer<unsigned>(bytes[i]));
  }
  return {};
}

// Steps over a value of the type. Recursion ends at kMaxDepth.
Result<void> skip_value(ByteReader& in, ValueType type, int depth) {
  const std::size_t at = in.offset();
  if (type == ValueType::string) {
    const auto text = read_text(in, "string", std::numeric_limits<std::uint64_t>::max());
    return text ? Result<void>() : text.error();
  }
  if (type != ValueType::array) {
    const std::size_t bytes = fixed_bytes(type);
    if (bytes == 0) return unknown_type(at, type);
    if (bytes > in.left()) return cut_off("value", at, bytes, in.left());
    const auto field = in.take(bytes);
    return type == ValueType::boolean ? check_booleans(field, at) : Result<void>();
  }

  if (depth == kMaxDepth)
    return errorf(ErrorCode::damaged, "array at byte %zu is nested deeper than %d", at, kMaxDepth);
  if (in.left() < 12) return cut_off("array", at, 12, in.left());
  const auto element = static_cast<ValueType>(in.read<std::uint32_t>());
  const auto count = in.read<std::uint64_t>();
  if (!is_type(element)) return unknown_type(at, element);
  const std::size_t bytes = fixed_bytes(element);
  const std::size_t least = bytes != 0 ? bytes : element == ValueType::string ? 8 : 12;
  if (count > in.left() / least)
    return errorf(ErrorCode::damaged,
                  "array at byte %zu promises %llu elements, %zu bytes are left", at,
                  static_cast<unsigned long long>(count), in.left());
  if (bytes != 0) {
    const std::size_t start = in.offset();
    const auto elements = in.take(count * bytes);
    return element == ValueType::boolean ? check_booleans(elements, start) : Result<void>();
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (auto skipped = skip_value(in, element, depth + 1); !skipped) return skipped;
  }
  return {};
}

// The number at the front of bytes; nothing if To cannot hold it exactly (integers) or if the type
// is no number. Integers become floats by rounding.
template <class To>
std::optional<To> convert(ValueType type, ByteReader& in) {
  const auto from = [&]<class From>(From value) -> std::optional<To> {
    if constexpr (std::is_integral_v<To>) {
      if constexpr (!std::is_integral_v<From>)
        return std::nullopt;
      else if (!std::in_range<To>(value))
        return std::nullopt;
    }
    return static_cast<To>(value);
  };
  switch (type) {
    case ValueType::u8:
      return from(in.read<std::uint8_t>());
    case ValueType::i8:
      return from(in.read<std::int8_t>());
    case ValueType::u16:
      return from(in.read<std::uint16_t>());
    case ValueType::i16:
      return from(in.read<std::int16_t>());
    case ValueType::u32:
      return from(in.read<std::uint32_t>());
    case ValueType::i32:
      return from(in.read<std::int32_t>());
    case ValueType::u64:
      return from(in.read<std::uint64_t>());
    case ValueType::i64:
      return from(in.read<std::int64_t>());
    case ValueType::f32:
      return from(in.read<float>());
    case ValueType::f64:
      return from(in.read<double>());
    case ValueType::boolean:
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return std::nullopt;
}

template <class To>
std::optional<To> convert_one(const Value& value) {
  ByteReader in(value.bytes());
  return convert<To>(value.type(), in);
}

template <class To>
std::optional<std::vector<To>> convert_all(const Value& value) {
  if (value.type() != ValueType::array) return std::nullopt;
  if (value.element_type() == ValueType::boolean || fixed_bytes(value.element_type()) == 0)
    return std::nullopt;
  ByteReader in(value.bytes());
  in.take(12);  // element type and count
  std::vector<To> numbers;
  numbers.reserve(value.count());
  for (std::uint64_t i = 0; i < value.count(); ++i) {
    const auto number = convert<To>(value.element_type(), in);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::string describe(const Value& value) {
  if (value.type() != ValueType::array) return value_type_name(value.type());
  return std::string("array of ") + value_type_name(value.element_type());
}

template <class T>
Result<T> require(const Value* value, std::string_view key, std::optional<T> converted,
                  const char* expected) {
  const std::string name = printable(key);
  if (value == nullptr)
    return errorf(ErrorCode::damaged, "metadata key '%s' is missing, expected %s", name.c_str(),
                  expected);
  if (!converted)
    return errorf(ErrorCode::damaged, "metadata key '%s' is %s, expected %s", name.c_str(),
                  describe(*value).c_str(), expected);
  return *converted;
}

void write_key(ByteWriter& out, std::string_view key, ValueType type) {
  out.write<std::uint64_t>(key.size());
  out.write_text(key);
  out.write(static_cast<std::uint32_t>(type));
}

}  // namespace

const char* value_type_name(ValueType type) {
  switch (type) {
    case ValueType::u8:
      return "u8";
    case ValueType::i8:
      return "i8";
    case ValueType::u16:
      return "u16";
    case ValueType::i16:
      return "i16";
    case ValueType::u32:
      return "u32";
    case ValueType::i32:
      return "i32";
    case ValueType::f32:
      return "f32";
    case ValueType::boolean:
      return "bool";
    case ValueType::string:
      return "string";
    case ValueType::array:
      return "array";
    case ValueType::u64:
      return "u64";
    case ValueType::i64:
      return "i64";
    case ValueType::f64:
      return "f64";
  }
  return "unknown";
}

std::optional<std::uint64_t> Value::as_u64() const { return convert_one<std::uint64_t>(*this); }
std::optional<std::int64_t> Value::as_i64() const { return convert_one<std::int64_t>(*this); }
std::optional<double> Value::as_f64() const { return convert_one<double>(*this); }

std::optional<bool> Value::as_bool() const {
  if (type_ != ValueType::boolean) return std::nullopt;
  return bytes_[0] == std::byte{1};
}

std::optional<std::string_view> Value::as_string() const {
  if (type_ != ValueType::string) return std::nullopt;
  ByteReader in(bytes_);
  return in.take_text(in.read<std::uint64_t>());
}

std::optional<std::vector<std::int64_t>> Value::as_i64s() const {
  return convert_all<std::int64_t>(*this);
}
std::optional<std::vector<double>> Value::as_f64s() const { return convert_all<double>(*this); }

std::optional<std::vector<bool>> Value::as_bools() const {
  if (type_ != ValueType::array || element_ != ValueType::boolean) return std::nullopt;
  std::vector<bool> flags;
  flags.reserve(count_);
  for (const std::byte b : bytes_.subspan(kArrayHeadBytes)) flags.push_back(b == std::byte{1});
  return flags;
}

std::optional<std::vector<std::string_view>> Value::as_strings() const {
  if (type_ != ValueType::array || element_ != ValueType::string) return std::nullopt;
  std::vector<std::string_view> texts;
  texts.reserve(count_);
  each_string([&](std::string_view text) { texts.push_back(text); });
  return texts;
}

Result<Metadata> Metadata::parse(ByteReader& in, std::uint64_t count) {
  if (count > in.left() / kMinEntryBytes)
    return errorf(ErrorCode::damaged,
                  "%llu metadata entries are promised at byte %zu, %zu bytes are left",
                  static_cast<unsigned long long>(count), in.offset(), in.left());
  if (count > kMaxEntries)
    return errorf(ErrorCode::unsupported, "%llu metadata entries, at most %llu are supported",
                  static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(kMaxEntries));
  Metadata metadata;
  metadata.entries_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t start = in.offset();
    const auto key = read_text(in, "metadata key", kMaxKeyBytes);
    if (!key) return key.error();
    if (key->empty()) return errorf(ErrorCode::damaged, "metadata key at byte %zu is empty", start);
    const auto where = [&] { return stringf("metadata key '%s'", printable(*key).c_str()); };
    if (in.left() < 4) return cut_off("value type", in.offset(), 4, in.left()).at(where());

    Value value;
    const std::size_t type_at = in.offset();
    value.type_ = static_cast<ValueType>(in.read<std::uint32_t>());
    if (!is_type(value.type_)) return unknown_type(type_at, value.type_).at(where());
    ByteReader ahead = in;  // to know the length before the bytes are taken
    if (auto skipped = skip_value(ahead, value.type_, 0); !skipped)
      return skipped.error().at(where());
    value.bytes_ = in.take(ahead.offset() - in.offset());
    if (value.type_ == ValueType::array) {
      ByteReader array(value.bytes_);
      value.element_ = static_cast<ValueType>(array.read<std::uint32_t>());
      value.count_ = array.read<std::uint64_t>();
    }
    metadata.entries_.push_back({*key, value});
  }

  metadata.by_key_.resize(metadata.entries_.size());
  std::iota(metadata.by_key_.begin(), metadata.by_key_.end(), 0u);
  const auto key_of = [&](std::uint32_t i) { return metadata.entries_[i].key; };
  std::ranges::sort(metadata.by_key_, {}, key_of);
  const auto twin = std::ranges::adjacent_find(metadata.by_key_, {}, key_of);
  if (twin != metadata.by_key_.end())
    return errorf(ErrorCode::damaged, "metadata key '%s' stands twice, expected once",
                  printable(key_of(*twin)).c_str());
  return metadata;
}

const Value* Metadata::find(std::string_view key) const {
  const auto found =
      std::ranges::lower_bound(by_key_, key, {}, [&](std::uint32_t i) { return entries_[i].key; });
  if (found == by_key_.end() || entries_[*found].key != key) return nullptr;
  return &entries_[*found].value;
}

Result<std::uint64_t> Metadata::require_u64(std::string_view key) const {
  const Value* const value = find(key);
  return require(value, key, value ? value->as_u64() : std::nullopt, "an integer of at least 0");
}

Result<double> Metadata::require_f64(std::string_view key) const {
  const Value* const value = find(key);
  return require(value, key, value ? value->as_f64() : std::nullopt, "a number");
}

Result<std::string_view> Metadata::require_string(std::string_view key) const {
  const Value* const value = find(key);
  return require(value, key, value ? value->as_string() : std::nullopt, "a string");
}

void write_entry(ByteWriter& out, std::string_view key, const Value& value) {
  write_key(out, key, value.type());
  out.write_bytes(value.bytes());
}

void write_entry(ByteWriter& out, std::string_view key, std::string_view text) {
  write_key(out, key, ValueType::string);
  out.write<std::uint64_t>(text.size());
  out.write_text(text);
}

void write_entry(ByteWriter& out, std::string_view key, const char* text) {
  write_entry(out, key, std::string_view(text));
}

void write_entry(ByteWriter& out, std::string_view key, std::uint32_t number) {
  write_key(out, key, ValueType::u32);
  out.write(number);
}

void write_entry(ByteWriter& out, std::string_view key, float number) {
  write_key(out, key, ValueType::f32);
  out.write(number);
}

void write_entry(ByteWriter& out, std::string_view key, bool flag) {
  write_key(out, key, ValueType::boolean);
  out.write<std::uint8_t>(flag ? 1 : 0);
}

}  // namespace tsq
