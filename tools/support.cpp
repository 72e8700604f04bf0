#include "support.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/errorf.h"

namespace tsq::tool {
namespace {

std::string from_environment;

std::string with_unit(std::uint64_t bytes, double step, std::array<const char*, 7> units) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1;
  return stringf("%.*f %s", decimals, value, units[unit]);
}

}  // namespace

Exit exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return kUsage;
    case ErrorCode::damaged:
      return kDamaged;
    case ErrorCode::unsupported:
      return kUnsupported;
    case ErrorCode::cancelled:
      return kInterrupted;
    case ErrorCode::not_found:
    case ErrorCode::io:
    case ErrorCode::out_of_memory:
    case ErrorCode::out_of_context:
    case ErrorCode::numeric:
      return kFailure;
  }
  return kFailure;
}

void blame_environment(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings)
    from_environment += (from_environment.empty() ? " (the environment gives " : ", ") + setting;
  if (!from_environment.empty()) from_environment += ")";
}

int fail(const Error& error) {
  const bool usage = error.code() == ErrorCode::invalid_argument;
  log_line(LogLevel::error, error.message() + (usage ? from_environment : ""));
  return exit_code(error.code());
}

bool print(std::string_view text) {
  if (std::ferror(stdout)) return false;  // said already
  errno = 0;
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return true;
  if (errno != EPIPE)
    fail(errorf(ErrorCode::io, "standard output: %s", lower_first(std::strerror(errno)).c_str()));
  return false;
}

Result<std::string> read_text(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const auto failed = [&] {
    return errorf(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, "%s: %s", name.c_str(),
                  lower_first(std::strerror(errno)).c_str());
  };
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return failed();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(path == "-" ? nullptr : file,
                                                               std::fclose);
  std::string text;
  char piece[65536];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, file)) text.append(piece, n);
  if (std::ferror(file)) return failed();
  return text;
}

std::string human_bytes(std::uint64_t bytes) {
  return with_unit(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB", "EB"});
}

std::string human_bytes_binary(std::uint64_t bytes) {
  return with_unit(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string with_commas(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string lower_first(std::string text) {
  // An abbreviation keeps its capitals.
  const auto is_upper = [&](std::size_t i) {
    return i < text.size() && std::isupper(static_cast<unsigned char>(text[i]));
  };
  if (is_upper(0) && !is_upper(1)) text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace tsq::tool
