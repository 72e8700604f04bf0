// GGUF files in memory, sound or broken in one place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "base/metadata.h"

namespace tsq::gguf {

// A value as it stands in the file: its type, then its bytes.
using EncodedValue = std::vector<std::byte>;

template <class T>
EncodedValue scalar(ValueType type, T value) {
  ByteWriter out;
  out.write(static_cast<std::uint32_t>(type));
  out.write(value);
  return out.take();
}
inline EncodedValue u32(std::uint32_t value) { return scalar(ValueType::u32, value); }
inline EncodedValue u16(std::uint16_t value) { return scalar(ValueType::u16, value); }
inline EncodedValue i32(std::int32_t value) { return scalar(ValueType::i32, value); }
inline EncodedValue f32(float value) { return scalar(ValueType::f32, value); }
inline EncodedValue boolean(bool value) {
  return scalar(ValueType::boolean, static_cast<std::uint8_t>(value));
}

inline void write_string(ByteWriter& out, std::string_view text) {
  out.write<std::uint64_t>(text.size());
  out.write_text(text);
}
inline EncodedValue text(std::string_view value) {
  ByteWriter out;
  out.write(static_cast<std::uint32_t>(ValueType::string));
  write_string(out, value);
  return out.take();
}
template <class T>
EncodedValue array(ValueType element, const std::vector<T>& values) {
  ByteWriter out;
  out.write(static_cast<std::uint32_t>(ValueType::array));
  out.write(static_cast<std::uint32_t>(element));
  out.write<std::uint64_t>(values.size());
  for (const T value : values) out.write(value);
  return out.take();
}
inline EncodedValue i32s(const std::vector<std::int32_t>& values) {
  return array(ValueType::i32, values);
}
inline EncodedValue texts(const std::vector<std::string>& values) {
  ByteWriter out;
  out.write(static_cast<std::uint32_t>(ValueType::array));
  out.write(static_cast<std::uint32_t>(ValueType::string));
  out.write<std::uint64_t>(values.size());
  for (const std::string& value : values) write_string(out, value);
  return out.take();
}

// GGUF's numbers of the types that tests write.
inline constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7,
                               kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kBF16 = 30,
                               kTQ1_0 = 34, kTQ2_0 = 35, kI2_S = 36, kQ1_0 = 41, kQ2_0 = 42,
                               kSTQ1_0 = 43, kIQ1_BN = 134, kIQ2_BN = 135, kPQ2_0 = 142,
                               kPTQ1_0 = 143;

struct BuiltTensor {
  std::string name;
  std::uint32_t type;
  std::vector<std::uint64_t> dims;
  std::vector<std::byte> data;
  std::optional<std::uint64_t> offset;  // other than where the data lies
};

struct GgufBuilder {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::vector<std::pair<std::string, EncodedValue>> keys;
  std::vector<BuiltTensor> tensors;
  std::optional<std::uint64_t> n_tensors, n_keys;  // other than the true numbers

  // Adds the key, or replaces its value.
  GgufBuilder& set(std::string_view key, EncodedValue value) {
    for (auto& entry : keys) {
      if (entry.first != key) continue;
      entry.second = std::move(value);
      return *this;
    }
    keys.emplace_back(key, std::move(value));
    return *this;
  }
  GgufBuilder& erase(std::string_view key) {
    std::erase_if(keys, [&](const auto& entry) { return entry.first == key; });
    return *this;
  }
  GgufBuilder& add(std::string name, std::uint32_t type, std::vector<std::uint64_t> dims,
                   std::vector<std::byte> data) {
    tensors.push_back({std::move(name), type, std::move(dims), std::move(data), std::nullopt});
    return *this;
  }
  BuiltTensor& tensor(std::string_view name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const BuiltTensor& tensor) { return tensor.name == name; });
  }

  std::vector<std::byte> build() const {
    ByteWriter out;
    out.write_text(magic);
    out.write(version);
    out.write<std::uint64_t>(n_tensors.value_or(tensors.size()));
    out.write<std::uint64_t>(n_keys.value_or(keys.size()));
    for (const auto& [key, value] : keys) {
      write_string(out, key);
      out.write_bytes(value);
    }
    std::uint64_t offset = 0;
    for (const BuiltTensor& tensor : tensors) {
      write_string(out, tensor.name);
      out.write(static_cast<std::uint32_t>(tensor.dims.size()));
      for (const std::uint64_t dim : tensor.dims) out.write(dim);
      out.write(tensor.type);
      out.write(tensor.offset.value_or(offset));
      offset += (tensor.data.size() + alignment - 1) / alignment * alignment;
    }
    for (const BuiltTensor& tensor : tensors) {
      out.pad_to(static_cast<std::size_t>(alignment));
      out.write_bytes(tensor.data);
    }
    return out.take();
  }
};

// Bytes that any type can hold: small, so that no fp16 among them is infinite.
inline std::vector<std::byte> some_bytes(std::size_t n, std::uint32_t seed) {
  std::vector<std::byte> bytes(n);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24 & 0x3fu);
  }
  return bytes;
}

inline std::vector<std::byte> f32_bytes(const std::vector<float>& values) {
  ByteWriter out;
  for (const float value : values) out.write(value);
  return out.take();
}

}  // namespace tsq::gguf
