#include "log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/errorf.h"
#include "support.h"

namespace tsq::tool {
namespace {

LogLevel current_level = LogLevel::info;
bool json_lines = false;

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("tsq", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_level(spdlog::level::trace);  // log_line() has chosen before it gets here
    made.set_pattern("%v");
    made.set_error_handler([](const std::string&) {});  // stderr is what failed
    return made;
  }();
  return instance;
}

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warn:
      return "warn";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "error";
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// The members of the object that stand behind its time.
std::string json_members(LogLevel level, const std::string& message,
                         const std::vector<LogField>& fields) {
  nlohmann::ordered_json line = {{"level", level_name(level)}, {"message", message}};
  for (const LogField& field : fields)
    std::visit([&](const auto& value) { line["fields"][field.name] = value; }, field.value);
  return dump(line).substr(1);  // without its brace: the pattern has one
}

std::string text_of(LogLevel level, const std::string& message) {
  switch (level) {
    case LogLevel::error:
      return "tsq: " + printable(message, SIZE_MAX);  // a path may hold anything, a line break too
    case LogLevel::warn:
      return "tsq: warning: " + message;
    case LogLevel::info:
      return message;
    case LogLevel::debug:
      return "tsq: debug: " + message;
  }
  return message;
}

std::string vformat(const char* format, std::va_list args) {
  std::va_list again;
  va_copy(again, args);
  std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, args)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

}  // namespace

void set_log(LogLevel level, bool json) {
  current_level = level;
  json_lines = json;
  logger().set_formatter(std::make_unique<spdlog::pattern_formatter>(
      json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v)" : "%v", spdlog::pattern_time_type::utc));
}

bool log_enabled(LogLevel level) { return level <= current_level; }
bool log_json() { return json_lines; }

void log_line(LogLevel level, const std::string& message, const std::vector<LogField>& fields) {
  if (!log_enabled(level)) return;
  erase_bar();
  const std::string line =
      json_lines ? json_members(level, message, fields) : text_of(level, message);
  logger().log(spdlog::level::info, spdlog::string_view_t(line));
}

void info_fact(const char* label, const std::string& text, std::vector<LogField> fields) {
  if (!json_lines) return log_line(LogLevel::info, stringf("%-10s %s", label, text.c_str()));
  fields.insert(fields.begin(), LogField("fact", label));
  log_line(LogLevel::info, std::string(label) + ": " + text, fields);
}

void warn(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  log_line(LogLevel::warn, vformat(format, args));
  va_end(args);
}

void info(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  log_line(LogLevel::info, vformat(format, args));
  va_end(args);
}

void debug(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  log_line(LogLevel::debug, vformat(format, args));
  va_end(args);
}

}  // namespace tsq::tool
