#include "tools/records/stock_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

constexpr const char* kImageMark = "<image>";

/// Collects records that conversations cannot represent, one problem per kind.
class Refusals {
 public:
  void add(const Sample& sample, const std::string& error, const std::string& what,
           const std::string& fix) {
    for (auto& [problem, count] : problems_) {
      if (problem.error != error) continue;
      ++count;
      return;
    }
    problems_.emplace_back(Problem{.error = error, .where = sample.where, .what = what, .fix = fix},
                           1);
  }

  void throw_if_any() const {
    std::vector<Problem> problems;
    for (const auto& [problem, count] : problems_) {
      problems.push_back(problem);
      if (count > 1) problems.back().what += fmt::format(" (the first of {} records)", count);
    }
    if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
  }

 private:
  std::vector<std::pair<Problem, int64_t>> problems_;
};

void check_sample(const Sample& sample, const std::string& path, Refusals& refusals) {
  for (size_t i = 0; i < sample.objects.size(); ++i) {
    if (sample.objects[i].geometry.kind != GeometryKind::kPoly) continue;
    refusals.add(sample, "a stock answer cannot have a \"poly\"", fmt::format("objects[{}]", i),
                 fmt::format("run `rematch data boxes {} --out FILE`, which replaces polygons by "
                             "their bounding boxes",
                             shell_word(path)));
    break;
  }
  if (sample.image_paths.size() != 1) {
    refusals.add(sample, "a stock answer needs exactly one image",
                 fmt::format("{} images", sample.image_paths.size()), "write one record per image");
  }
  if (sample.prompt.find(kImageMark) != std::string::npos) {
    refusals.add(sample, "\"prompt\" contains an image mark",
                 fmt::format("{} in {}", kImageMark, show_json(sample.prompt)),
                 "remove it: the new file adds one");
  }
}

}  // namespace

int64_t write_stock_file(const std::string& path, const std::string& out,
                         const StockExport& options) {
  const RecordFile file(path);
  const InputFiles inputs = file.inputs(options.inputs);
  inputs.refuse(out);
  Refusals refusals;
  for (const Sample& sample : file.samples()) check_sample(sample, path, refusals);
  refusals.throw_if_any();
  std::string lines;
  for (const Sample& sample : file.samples()) {
    const StockSides sides = stock_sides(
        options.scale, {.width_px = sample.width_px, .height_px = sample.height_px}, sample.where);
    const std::string& text = sample.prompt.empty() ? options.usual_text : sample.prompt;
    Json record;
    record["messages"] = {
        {{"role", "user"}, {"content", kImageMark + text}},
        {{"role", "assistant"}, {"content", format_stock_answer(sample.objects, sides)}}};
    record["images"] = {relative_image_name(out, sample.image_paths.front())};
    const Json original = parse_json(file.line(sample), sample.where);
    for (const char* key : {"summary", "metadata"}) {
      if (const auto member = original.find(key); member != original.end()) record[key] = *member;
    }
    lines += json_line(record);
  }
  if (const std::string parent = std::filesystem::path(out).parent_path().string(); !parent.empty())
    make_directories(parent);
  write_output(out, inputs, lines);
  return static_cast<int64_t>(file.samples().size());
}

}  // namespace rematch
