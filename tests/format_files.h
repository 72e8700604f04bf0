// A small .tsq file with one tensor of each kind of the base set, and the means to damage it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "format/writer.h"

namespace tsq::format {

using Bytes = Buffer<std::byte>;

// The sample: hidden_size 160, 1 layer, 6 tokens, two rotations, eight tensors in this order.
enum SampleTensor : std::size_t { kEmbd, kNorm, kQ, kDown, kUp, kF16, kBf16, kQ8, kSampleTensors };
FileContents sample_contents();
// Writes body bytes that are sound for each record, from a fixed seed, and seals. The zero counts
// are counted here, code by code.
Result<void> write_tensors(Writer& writer);
// contents as a whole file in memory.
Bytes make_file(FileContents contents, const TokenProbe& probe = {});
const Bytes& sample_file();
TokenProbe sample_token_probe();

Bytes copy_of(std::span<const std::byte> bytes);
Bytes read_file(const std::filesystem::path& path);
void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes);

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(const Bytes& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Where section k (0 to 6, in the order of FORMAT.md) says that it lies.
std::size_t section_at(const Bytes& bytes, std::size_t k);
std::size_t section_bytes(const Bytes& bytes, std::size_t k);
// Byte `field` of the record of tensor i.
std::size_t record_at(const Bytes& bytes, std::size_t tensor, std::size_t field);
// Makes every digest of header and sections right again, and the header's file size.
void sign(Bytes& bytes);

}  // namespace tsq::format
