#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/append_file.h"
#include "base/observe/sinks.h"
#include "base/whole_lines.h"

namespace rematch {
namespace {

class JsonlFile : public MetricSink {
 public:
  explicit JsonlFile(const std::string& path) : file_(path) {}

  void write(int64_t step, const MetricValues& values, const std::string& eval_set) override {
    std::string line = fmt::format("{{\"step\": {}", step);
    for (const auto& [name, value] : values) {
      // JSON has no NaN and no infinity.
      line += fmt::format(", {}: {}", python_json_string(name),
                          std::isfinite(value) ? fmt::format("{}", value) : "null");
    }
    if (!eval_set.empty()) line += fmt::format(", \"eval_set\": {}", python_json_string(eval_set));
    file_.append(line + "}\n");
  }
  void sync() override { file_.sync(); }
  void require_in_place() const override { file_.require_in_place(); }

 private:
  AppendFile file_;
};

int64_t read_step(std::string_view line, const std::string& origin) {
  const Json entry = parse_json(line, origin);
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer()) {
    throw data_error({.error = "a line of the log has no step",
                      .where = origin,
                      .what = std::string(line.substr(0, 200)),
                      .fix = "remove that line, or move the file away to start a new log"});
  }
  return entry["step"].get<int64_t>();
}

}  // namespace

std::unique_ptr<MetricSink> make_jsonl_sink(const std::string& path) {
  if (is_file(path)) {
    const std::string content = read_file(path);
    const size_t keep = whole_lines(content).size();
    if (keep != content.size()) write_file_atomic(path, std::string_view(content).substr(0, keep));
  }
  return std::make_unique<JsonlFile>(path);
}

void truncate_jsonl_after(const std::string& path, int64_t step) {
  if (!is_file(path)) return;
  const std::string content = read_file(path);
  const std::string_view lines = whole_lines(content);
  std::string kept;
  int64_t line_number = 0, last_step = 0;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin) + 1;
    const std::string_view line = lines.substr(begin, end - begin);
    const int64_t line_step = read_step(line, fmt::format("{}:{}", path, ++line_number));
    // Steps decrease where a later run begins, which ended before its first save.
    if (line_step < last_step) break;
    last_step = line_step;
    if (line_step <= step) kept += line;
    begin = end;
  }
  if (kept != content) write_file_atomic(path, kept);
}

}  // namespace rematch
