// Typed key-values as GGUF encodes them: key | u32 type | value, integers little-endian, strings a
// u64 length and bytes, arrays a u32 element type, a u64 count and the elements. A .tsq file keeps
// the same bytes (src/format/FORMAT.md), so one reader serves both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "tsq/error.h"

namespace tsq {

enum class ValueType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

const char* value_type_name(ValueType type);

// One value, as a view of its encoded bytes: valid as long as they are. Every conversion gives
// nothing where the type or the range does not fit.
class Value {
 public:
  ValueType type() const { return type_; }
  // Arrays: the type and number of the elements.
  ValueType element_type() const { return element_; }
  std::uint64_t count() const { return count_; }

  std::optional<std::uint64_t> as_u64() const;  // any integer type that holds it without loss
  std::optional<std::int64_t> as_i64() const;
  std::optional<double> as_f64() const;  // f32, f64 or an integer
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  // Arrays of any integer type, of f32/f64 or integers, of bools, of strings.
  std::optional<std::vector<std::int64_t>> as_i64s() const;
  std::optional<std::vector<double>> as_f64s() const;
  std::optional<std::vector<bool>> as_bools() const;
  std::optional<std::vector<std::string_view>> as_strings() const;
  // Calls visit(text) for each string of such an array, without a list of them all. False: it is
  // none.
  template <class Visit>
  bool each_string(Visit visit) const {
    if (type_ != ValueType::array || element_ != ValueType::string) return false;
    ByteReader in(bytes_);
    in.take(kArrayHeadBytes);
    for (std::uint64_t i = 0; i < count_; ++i) visit(in.take_text(in.read<std::uint64_t>()));
    return true;
  }

  // The encoded value, without its type.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend class Metadata;
  static constexpr std::size_t kArrayHeadBytes = 12;  // element type and count
  ValueType type_ = ValueType::u8;
  ValueType element_ = ValueType::u8;
  std::uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

struct Entry {
  std::string_view key;
  Value value;
};

// The entries of a file in their order, keys unique.
class Metadata {
 public:
  // Reads count entries. Refuses (damaged, with the byte's position): a cut entry, a count or
  // length larger than what is left, an empty, duplicate or over-long key (65,535 bytes), an
  // unknown type, arrays nested deeper than 4, a boolean that is neither 0 nor 1. More than 65,536
  // entries are unsupported.
  static Result<Metadata> parse(ByteReader& in, std::uint64_t count);

  std::span<const Entry> entries() const { return entries_; }
  const Value* find(std::string_view key) const;

  // The value of a key that must be there with this type: an error names the key, what was found
  // and what was expected.
  Result<std::uint64_t> require_u64(std::string_view key) const;
  Result<double> require_f64(std::string_view key) const;
  Result<std::string_view> require_string(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> by_key_;  // sorted
};

// Appends entries in the same encoding.
void write_entry(ByteWriter& out, std::string_view key, const Value& value);
void write_entry(ByteWriter& out, std::string_view key, std::string_view text);
void write_entry(ByteWriter& out, std::string_view key, const char* text);  // else: taken for bool
void write_entry(ByteWriter& out, std::string_view key, std::uint32_t number);
void write_entry(ByteWriter& out, std::string_view key, float number);
void write_entry(ByteWriter& out, std::string_view key, bool flag);

}  // namespace tsq
