#include "tools/records/stock_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "learn/data/problem_list.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

constexpr const char* kImageMark = "<image>";

/// @throws UserError (data) for a record that a conversation cannot represent
void check_sample(const Sample& sample, const std::string& path) {
  std::vector<Problem> problems;
  const auto refuse = [&](const char* error, std::string what, std::string fix) {
    problems.push_back(
        {.error = error, .where = sample.where, .what = std::move(what), .fix = std::move(fix)});
  };
  const auto polygon = std::ranges::find_if(sample.objects, [](const SceneObject& object) {
    return object.geometry.kind == GeometryKind::kPoly;
  });
  if (polygon != sample.objects.end())
    refuse("a stock answer cannot have a \"poly\"",
           fmt::format("objects[{}]", polygon - sample.objects.begin()),
           fmt::format("run `rematch data boxes {} --out NEW`, which replaces polygons by their "
                       "bounding boxes",
                       shell_word(path)));
  if (sample.image_paths.size() != 1)
    refuse("a stock answer needs exactly one image",
           fmt::format("{} images", sample.image_paths.size()), "write one record per image");
  if (sample.prompt.find(kImageMark) != std::string::npos)
    refuse("\"prompt\" contains an image mark",
           fmt::format("{} in {}", kImageMark, show_json(sample.prompt)),
           "remove it: the new file adds one");
  if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
}

}  // namespace

int64_t write_stock_file(const std::string& path, const std::string& out,
                         const StockExport& options) {
  const RecordFile file(path);
  const InputFiles inputs = file.inputs(options.inputs);
  inputs.refuse(out);
  ProblemList problems(path, "change these records, or remove them");
  for (const Sample& sample : file.samples()) {
    try {
      check_sample(sample, path);
    } catch (const UserError& error) {
      problems.add(error);
    }
  }
  problems.throw_if_any();
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
  make_directories(parent_of(out));
  write_output(out, inputs, lines);
  return std::ssize(file.samples());
}

}  // namespace rematch
