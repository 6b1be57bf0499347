#include "tools/stages/stage.h"

#include <fmt/core.h>

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

Json error_object(const UserError& error) {
  const Problem& problem = error.problems().front();
  Json value;
  value["kind"] = kind_name(error.kind());
  value["message"] = fmt::format("{} ({}: {})", problem.error, problem.where, problem.what);
  value["fix"] = problem.fix;
  return value;
}

// A value on one line.
std::string one_line(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  escape_line_ends(text);
  return text;
}

// A waiting input line: its id (null when absent), and its input or the error in it.
struct Line {
  std::string name;  ///< the id as text, or "line-N" without one
  Json id;
  bool has_id = false;
  Json input;
  Json error;
};

Line read_line(const std::string& text, int64_t number) {
  Line line{.name = fmt::format("line-{}", number)};
  try {
    // The JSON parser accepts a byte order mark at the start, which is legal only in the first
    // line.
    if (number > 1 && text.starts_with("\xEF\xBB\xBF")) {
      throw data_error({.error = "a byte order mark in the middle of the input",
                        .where = fmt::format("line {}", number),
                        .what = "the line begins with the bytes EF BB BF",
                        .fix = "remove them; they come from joining files"});
    }
    Json value = parse_json(text, fmt::format("line {}", number));
    if (!value.is_object()) {
      throw data_error({.error = "an input line is not a JSON object",
                        .where = fmt::format("line {}", number),
                        .what = value.type_name(),
                        .fix = "write one JSON object per line"});
    }
    if (auto id = value.find("id"); id != value.end()) {
      line.id = *id;
      line.has_id = true;
      line.name = id->is_string() ? id->get<std::string>() : id->dump();
      value.erase("id");
    }
    line.input = std::move(value);
  } catch (const UserError& error) {
    line.error = error_object(error);
  }
  return line;
}

bool answer(Stage& stage, std::vector<Line>& lines, std::ostream& out) {
  std::vector<Json> inputs;
  Strings names;
  for (const Line& line : lines) {
    if (!line.error.is_null()) continue;
    inputs.push_back(line.input);
    names.push_back(line.name);
  }
  std::vector<Json> errors(inputs.size());
  std::vector<Json> answers;
  if (!inputs.empty()) answers = stage.run_batch(inputs, names, errors);
  bool all_good = true;
  size_t next = 0;
  for (Line& line : lines) {
    Json result = Json::object();
    if (line.has_id) result["id"] = line.id;
    const bool read = line.error.is_null();
    const Json& error = read ? errors[next] : line.error;
    if (error.is_null()) {
      for (auto& member : answers[next].items()) result[member.key()] = std::move(member.value());
    } else {
      result["error"] = error;
      all_good = false;
    }
    if (read) ++next;
    out << one_line(result) << '\n';
  }
  out.flush();
  lines.clear();
  return all_good;
}

}  // namespace

std::vector<Json> Stage::run_batch(const std::vector<Json>& inputs, const Strings& names,
                                   std::vector<Json>& errors) {
  std::vector<Json> answers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    line_name_ = names[i];
    try {
      answers[i] = run(inputs[i]);
    } catch (const UserError& error) {
      errors[i] = error_object(error);
    }
  }
  return answers;
}

int run_stage(Stage& stage, int batch_size, std::istream& in, std::ostream& out) {
  std::vector<Line> lines;
  bool all_good = true;
  int64_t number = 0;
  std::string text;
  while (out && std::getline(in, text)) {
    ++number;
    throw_if_interrupted();
    if (python_strip(is_valid_utf8(text) ? text : "x").empty()) continue;
    lines.push_back(read_line(text, number));
    if (static_cast<int>(lines.size()) >= batch_size)
      all_good = answer(stage, lines, out) && all_good;
  }
  throw_if_interrupted();  // a signal ends a blocking read as the end of the input would
  if (in.bad()) {
    throw environment_error({.error = "cannot read the input",
                             .where = "standard input",
                             .what = fmt::format("reading failed after line {}", number),
                             .fix = "check the file or the program that the input comes from"});
  }
  if (!lines.empty()) all_good = answer(stage, lines, out) && all_good;
  return all_good ? 0 : 3;
}

const JsonOrigin& input_origin() {
  static const JsonOrigin kOrigin{
      .path = "",
      .error = "{} has an invalid value",
      .fix = "correct it; docs/contract/STAGES.md describes each stage's input",
      .null_is_absent = true,
      .unknown_key = ErrorKind::kConfig};
  return kOrigin;
}

}  // namespace rematch
