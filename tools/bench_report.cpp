#include "bench_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/errorf.h"
#include "support.h"

namespace tsq::tool {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the sample: over n - 1.
double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double m = mean(values);
  double sum = 0;
  for (const double v : values) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::string human_count(std::uint64_t n) {
  const auto x = static_cast<double>(n);
  return n >= 1'000'000'000 ? stringf("%.2f B", x * 1e-9) : stringf("%.2f M", x * 1e-6);
}

// llama-bench's names, in its order, then tsq's own.
nlohmann::ordered_json to_json(const BenchRow& row) {
  std::vector<std::uint64_t> nanoseconds;
  std::vector<double> exact;
  for (const double s : row.seconds) {
    exact.push_back(s * 1e9);
    nanoseconds.push_back(static_cast<std::uint64_t>(std::llround(s * 1e9)));
  }
  const auto speeds = row.speeds();
  nlohmann::ordered_json json = {
      {"model_filename", row.path},
      {"model_type", row.model},
      {"model_size", row.model_bytes},
      {"model_n_params", row.parameters},
      {"cpu_level", row.cpu},
      {"activations", row.activations},
      {"n_threads", row.threads},
      {"n_prompt", row.prompt},
      {"n_gen", row.generate},
      {"n_depth", row.depth},
      {"test", row.test()},
      {"avg_ns", std::llround(mean(exact))},
      {"stddev_ns", std::llround(deviation(exact))},
      {"avg_ts", mean(speeds)},
      {"stddev_ts", deviation(speeds)},
      {"samples_ns", nanoseconds},
      {"samples_ts", speeds},
      {"bytes_per_token", nullptr},
      {"read_gb_per_s", nullptr},
      {"of_read_bandwidth", nullptr},
  };
  if (row.memory) {
    json["bytes_per_token"] = row.memory->bytes_per_token;
    json["read_gb_per_s"] = row.memory->read_speed;
    json["of_read_bandwidth"] = row.memory->share;
  }
  return json;
}

// Every field in quotes; the samples are left to JSON.
std::string csv_line(const BenchRow& row, bool names) {
  std::string line;
  const auto json = to_json(row);
  for (const auto& [name, value] : json.items()) {
    if (value.is_array()) continue;
    std::string field = names               ? name
                        : value.is_string() ? value.get<std::string>()
                        : value.is_null()   ? ""
                                            : value.dump();
    for (std::size_t i = 0; (i = field.find('"', i)) != std::string::npos; i += 2)
      field.insert(i, 1, '"');
    line += (line.empty() ? "\"" : ",\"") + field + '"';
  }
  return line + '\n';
}

std::string markdown_line(const BenchRow& row) {
  std::string name = printable(row.model, 30);
  for (std::size_t i = 0; (i = name.find('|', i)) != std::string::npos; i += 2)
    name.insert(i, 1, '\\');
  const std::string compute = row.cpu + " " + row.activations;
  const auto speeds = row.speeds();
  const std::string speed = stringf("%.2f \u00b1 %.2f", mean(speeds), deviation(speeds));
  std::string bytes, read, share;
  if (row.memory) {
    bytes = human_bytes(row.memory->bytes_per_token);
    read = stringf("%.1f GB/s", row.memory->read_speed);
    share = stringf("%.0f %%", 100 * row.memory->share);
  }
  // 19: a plus-minus sign takes two bytes and one place.
  return stringf("| %-20s | %10s | %8s | %-11s | %7d | %15s | %19s | %9s | %10s | %7s |\n",
                 name.c_str(), human_bytes_binary(row.model_bytes).c_str(),
                 human_count(row.parameters).c_str(), compute.c_str(), row.threads,
                 row.test().c_str(), speed.c_str(), bytes.c_str(), read.c_str(), share.c_str());
}

}  // namespace

std::string BenchRow::test() const {
  std::string name = prompt > 0 ? stringf("pp%d", prompt) : stringf("tg%d", generate);
  if (depth > 0) name += stringf(" @ d%d", depth);
  return name;
}

std::vector<double> BenchRow::speeds() const {
  std::vector<double> speeds;
  for (const double s : seconds) speeds.push_back(static_cast<double>(prompt + generate) / s);
  return speeds;
}

std::string bench_begin(BenchFormat format) {
  if (format == BenchFormat::csv) return "";
  if (format == BenchFormat::json) return "[";
  return "| model                |       size |   params | compute     | threads |            test "
         "|                t/s | per token |       read | of read |\n"
         "| -------------------- | ---------: | -------: | ----------- | ------: | --------------: "
         "| -----------------: | --------: | ---------: | ------: |\n";
}

std::string bench_row(BenchFormat format, const BenchRow& row, bool first) {
  switch (format) {
    case BenchFormat::csv:
      return (first ? csv_line(row, true) : "") + csv_line(row, false);
    case BenchFormat::json:
      return (first ? "\n" : ",\n") +
             to_json(row).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    case BenchFormat::markdown:
      break;
  }
  return markdown_line(row);
}

std::string bench_end(BenchFormat format) { return format == BenchFormat::json ? "\n]\n" : ""; }

}  // namespace tsq::tool
