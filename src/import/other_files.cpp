#include "import/other_files.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/errorf.h"

namespace tsq::importer {
namespace {

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

bool is_html(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  text.remove_prefix(first);
  return starts_with_ignoring_case(text, "<!doctype html") ||
         starts_with_ignoring_case(text, "<html");
}

bool is_old_ggml(std::string_view magic) {
  for (const char* old : {"ggml", "lmgg", "fmgg", "tjgg", "algg"}) {
    if (magic == old) return true;
  }
  return false;
}

// What torch.save writes: a zip file, or before that a bare pickle.
bool is_pytorch(std::string_view start) {
  return start.starts_with("PK\3\4") || start.starts_with("\x80\2");
}

}  // namespace

bool is_safetensors(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto header_bytes = in.read<std::uint64_t>();
  const auto first = in.read<char>();
  return in.ok() && first == '{' && header_bytes <= bytes.size() - 8;
}

Error not_gguf(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 512));
  if (start.empty()) return {ErrorCode::damaged, "the file is empty, expected GGUF"};
  if (start.substr(0, 4) == std::string_view("TSQ\0", 4)) {
    return {ErrorCode::unsupported, "this is a .tsq file already, expected GGUF"};
  }
  if (start.starts_with("version https://git-lfs")) {
    return {ErrorCode::damaged,
            "this is a git-lfs pointer, not the model: fetch the file itself (git lfs pull)"};
  }
  if (is_html(start)) {
    return {ErrorCode::damaged, "this is an HTML page, not a model: the download went wrong"};
  }
  if (is_safetensors(bytes)) {
    return {ErrorCode::unsupported, "this is a safetensors file, expected GGUF"};
  }
  if (is_pytorch(start)) {
    return {ErrorCode::unsupported,
            "this is a PyTorch file (or another zip), whose pickles can run code and are not read: "
            "expected GGUF, or a folder with config.json and safetensors"};
  }
  if (is_old_ggml(start.substr(0, 4))) {
    return {ErrorCode::unsupported, "this is a GGML file from before GGUF, expected GGUF"};
  }
  return errorf(ErrorCode::damaged, "not a GGUF file: it starts with '%s', expected 'GGUF'",
                printable(start.substr(0, 4)).c_str());
}

}  // namespace tsq::importer
