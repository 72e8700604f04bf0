// The keys of a GGUF for a checkpoint that comes without.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metadata.h"
#include "import/checkpoint.h"

namespace tsq::importer {

class MetadataBuilder {
 public:
  // Room for so many bytes more, which costs no memory until it is used; growing would copy.
  void reserve(std::size_t bytes) { entries_.reserve(bytes); }
  template <class T>
  void add(std::string_view key, T value) {
    write_entry(entries_, key, value);
    ++count_;
  }
  template <class Texts>
  void add_texts(std::string_view key, const Texts& texts) {
    start_array(key, ValueType::string, texts.size());
    for (const std::string_view text : texts) {
      entries_.write<std::uint64_t>(text.size());
      entries_.write_text(text);
    }
  }
  // One text for each pair, with a space between.
  template <class Pairs>
  void add_pairs(std::string_view key, const Pairs& pairs) {
    start_array(key, ValueType::string, pairs.size());
    for (const auto& [left, right] : pairs) {
      entries_.write<std::uint64_t>(left.size() + 1 + right.size());
      entries_.write_text(left);
      entries_.write_text(" ");
      entries_.write_text(right);
    }
  }
  void add_i32s(std::string_view key, std::span<const std::int32_t> numbers) {
    start_array(key, ValueType::i32, numbers.size());
    entries_.write_bytes(std::as_bytes(numbers));
  }
  void add_bools(std::string_view key, const std::vector<bool>& flags) {
    start_array(key, ValueType::boolean, flags.size());
    for (const bool flag : flags) entries_.write(static_cast<std::uint8_t>(flag));
  }
  void add_f32s(std::string_view key, std::span<const float> numbers) {
    start_array(key, ValueType::f32, numbers.size());
    entries_.write_bytes(std::as_bytes(numbers));
  }

  // Gives the keys to the checkpoint, which owns their bytes from then on.
  Result<void> finish(Checkpoint& checkpoint) {
    const auto bytes = std::make_shared<const std::vector<std::byte>>(entries_.take());
    ByteReader in(*bytes);
    auto metadata = Metadata::parse(in, count_);
    if (!metadata) return metadata.error();
    checkpoint.owned.push_back(bytes);
    checkpoint.metadata = std::move(*metadata);
    return {};
  }

 private:
  void start_array(std::string_view key, ValueType type, std::size_t n) {
    entries_.write<std::uint64_t>(key.size());
    entries_.write_text(key);
    entries_.write(static_cast<std::uint32_t>(ValueType::array));
    entries_.write(static_cast<std::uint32_t>(type));
    entries_.write<std::uint64_t>(n);
    ++count_;
  }

  ByteWriter entries_;
  std::uint64_t count_ = 0;
};

}  // namespace tsq::importer
