// Whatever the bytes of a .tsq file, the reader answers, and every byte that it then promises is
// readable. An input is a file without the zeros before its data section, so that mutations fall on
// bytes that matter; they are put back here, and the header's file size is made right.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "check_tokenizer.h"
#include "format/probes.h"
#include "format/reader.h"
#include "format/tokenizer_section.h"
#include "format/verify.h"

namespace {

using namespace tsq;
using namespace tsq::format;
using fuzz::read_every_byte;

constexpr std::size_t kFileBytesAt = 64, kProbesEntryAt = 96 + 5 * 64, kDataAlignment = 65536;

// Where the data section was cut off: the end of the probes, as the directory gives it.
std::size_t end_of_probes(std::span<const std::byte> input) {
  if (input.size() < 1024) return input.size();
  std::uint64_t place[2];
  std::memcpy(place, input.data() + kProbesEntryAt + 8, sizeof place);
  if (place[0] > input.size() || place[1] > input.size() - place[0]) return input.size();
  return place[0] + place[1];
}

Buffer<std::byte> whole_file(std::span<const std::byte> input) {
  const std::size_t front = end_of_probes(input);
  const std::size_t data = (front + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  const std::size_t rest = input.size() - front;
  Buffer<std::byte> file(rest == 0 ? front : data + rest);
  std::copy(input.begin(), input.begin() + front, file.data());
  std::copy(input.begin() + front, input.end(), file.data() + file.size() - rest);
  const std::uint64_t size = file.size();
  if (size >= 1024) std::memcpy(file.data() + kFileBytesAt, &size, sizeof size);
  return file;
}

void use_tensor(const File& file, const TensorRecord& tensor) {
  read_every_byte(file.body(tensor));
  read_every_byte(std::as_bytes(file.scales(tensor)));
  if (file.find(tensor.name) != &tensor) std::abort();
  std::vector<float> row(tensor.cols());
  for (const std::uint64_t r : {std::uint64_t{0}, tensor.rows() - 1})
    decode_row(tensor.shape(), file.bytes(tensor), r, row.data());
}

void use_tokenizer(std::span<const std::byte> section, std::uint32_t vocab_size) {
  const auto view = TokenizerView::parse(section, vocab_size);
  if (!view) return;
  (void)view->check();
  fuzz::check_tokenizer(*view);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = whole_file(std::as_bytes(std::span(data, size)));
  const auto file = File::parse(bytes.span(), {.check_digests = false});
  if (!file) {
    if (file.error().message().empty()) std::abort();
    return 0;
  }
  for (const TensorRecord& tensor : file->tensors()) use_tensor(*file, tensor);
  for (const Entry& entry : file->metadata().entries()) {
    read_every_byte(entry.value.bytes());
    (void)entry.value.as_f64s();
    (void)entry.value.as_strings();
  }
  use_tokenizer(file->tokenizer_section(), file->header().vocab_size);
  (void)check_rotation_probes(*file);
  if (!verify(*file)) std::abort();  // it can only be cancelled
  return 0;
}
