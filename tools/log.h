// What the tool says on stderr: text for people, or one JSON object a line (--log-json).
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace tsq::tool {

enum class LogLevel { error, warn, info, debug };

// Lines above the level are dropped. At the start: info, as text.
void set_log(LogLevel level, bool json);
bool log_enabled(LogLevel level);
// Nothing but log lines may go to stderr then: no progress bar, no echo of a prompt.
bool log_json();

// A named value of a JSON line.
struct LogField {
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;

  template <std::integral T>
  LogField(const char* field, T number) : name(field) {
    if constexpr (std::is_same_v<T, bool>) {
      value = number;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<std::int64_t>(number);
    } else {
      value = static_cast<std::uint64_t>(number);
    }
  }
  LogField(const char* field, double number) : name(field), value(number) {}
  LogField(const char* field, std::string_view text) : name(field), value(std::string(text)) {}
  LogField(const char* field, const char* text) : name(field), value(std::string(text)) {}

  std::string name;
  Value value;
};

// One line. Text: an error and a warning begin with "tsq: ", information stands as it is.
void log_line(LogLevel level, const std::string& message, const std::vector<LogField>& fields = {});
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void info(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

// A line about the run: "context    1024 tokens"; in JSON with the values by name, and the label as
// the field "fact".
void info_fact(const char* label, const std::string& text, std::vector<LogField> fields);

}  // namespace tsq::tool
