#include "cli/stage.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
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

UserError field_error(const std::string& what, const std::string& key, const std::string& found, const std::string& wanted) {
  return UserError(ErrorKind::kData, {.error = fmt::format("{} has an invalid value", key),
                                      .where = fmt::format("{}.{}", what, key),
                                      .what = found,
                                      .fix = fmt::format("pass {}", wanted)});
}

// A pending input line: its id (null when absent) and either its input or the error from reading it.
struct Line {
  int64_t number = 0;
  Json id;
  bool has_id = false;
  Json input;
  Json error;
};

Line read_line(const std::string& text, int64_t number) {
  Line line{.number = number};
  try {
    Json value = parse_json(text, fmt::format("line {}", number));
    if (!value.is_object()) {
      throw UserError(ErrorKind::kData, {.error = "an input line is not a JSON object",
                                         .where = fmt::format("line {}", number),
                                         .what = value.type_name(),
                                         .fix = "write one JSON object per line"});
    }
    if (auto id = value.find("id"); id != value.end()) {
      line.id = *id;
      line.has_id = true;
      value.erase("id");
    }
    line.input = std::move(value);
  } catch (const UserError& error) {
    line.error = error_object(error);
  }
  return line;
}

// The name of a line's output files.
std::string line_name(const Line& line) {
  if (!line.has_id) return fmt::format("line-{}", line.number);
  return line.id.is_string() ? line.id.get<std::string>() : line.id.dump();
}

bool answer(Stage& stage, std::vector<Line>& lines, std::ostream& out) {
  std::vector<Json> inputs;
  std::vector<std::string> names;
  for (const Line& line : lines) {
    if (!line.error.is_null()) continue;
    inputs.push_back(line.input);
    names.push_back(line_name(line));
  }
  stage.set_line_names(std::move(names));
  std::vector<Json> errors(inputs.size());
  std::vector<Json> answers;
  if (!inputs.empty()) answers = stage.run_batch(inputs, errors);
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
    out << result.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
  out.flush();
  lines.clear();
  return all_good;
}

}  // namespace

std::vector<Json> Stage::run_batch(const std::vector<Json>& inputs, std::vector<Json>& errors) {
  std::vector<Json> answers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    line_idx_ = i;
    try {
      answers[i] = run(inputs[i]);
    } catch (const UserError& error) {
      errors[i] = error_object(error);
    }
  }
  return answers;
}

void Stage::set_line_names(std::vector<std::string> names) {
  line_names_ = std::move(names);
  line_idx_ = 0;
}

std::string Stage::line_file(const std::string& directory) const {
  REMATCH_CHECK(line_idx_ < line_names_.size(), fmt::format("line {} of {}", line_idx_, line_names_.size()));
  const std::string& name = line_names_[line_idx_];
  if (name.empty() || name.front() == '.' || name.size() > 200 || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw UserError(ErrorKind::kData, {.error = "the id cannot be a file name",
                                       .where = "id",
                                       .what = name.substr(0, 80),
                                       .fix = "use ids of 1 to 200 characters without \"/\" that do not start with a dot"});
  }
  return fmt::format("{}/{}.safetensors", directory, name);
}

int run_stage(Stage& stage, int batch_size, std::istream& in, std::ostream& out) {
  std::vector<Line> lines;
  bool all_good = true;
  int64_t number = 0;
  std::string text;
  while (std::getline(in, text)) {
    ++number;
    throw_if_interrupted();
    if (python_strip(is_valid_utf8(text) ? text : "x").empty()) continue;
    lines.push_back(read_line(text, number));
    if (static_cast<int>(lines.size()) >= batch_size) all_good = answer(stage, lines, out) && all_good;
  }
  if (!lines.empty()) all_good = answer(stage, lines, out) && all_good;
  return all_good ? 0 : 3;
}

FieldReader::FieldReader(const Json& value, std::string what) : value_(&value), what_(std::move(what)) {
  if (!value.is_object() && !value.is_null()) {
    throw UserError(
        ErrorKind::kData,
        {.error = fmt::format("{} is not an object", what_), .where = what_, .what = value.type_name(), .fix = "pass a JSON object"});
  }
}

const Json* FieldReader::optional(const std::string& key) {
  asked_.push_back(key);
  if (value_->is_null()) return nullptr;
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

bool FieldReader::has(const std::string& key) { return optional(key) != nullptr; }

const Json& FieldReader::required(const std::string& key) {
  const Json* member = optional(key);
  if (member == nullptr) {
    throw UserError(ErrorKind::kData, {.error = fmt::format("{} is missing", key),
                                       .where = what_,
                                       .what = fmt::format("no member \"{}\"", key),
                                       .fix = fmt::format("add \"{}\"", key)});
  }
  return *member;
}

double FieldReader::number(const std::string& key, double fallback) {
  const Json* member = optional(key);
  if (member == nullptr) return fallback;
  if (!member->is_number() || !std::isfinite(member->get<double>())) throw field_error(what_, key, member->dump(), "a finite number");
  return member->get<double>();
}

int FieldReader::integer(const std::string& key, int fallback) {
  const Json* member = optional(key);
  if (member == nullptr) return fallback;
  const double value = member->is_number() ? member->get<double>() : 0.5;
  if (value != std::floor(value) || std::abs(value) > std::numeric_limits<int>::max())
    throw field_error(what_, key, member->dump(), "an integer");
  return static_cast<int>(value);
}

bool FieldReader::boolean(const std::string& key, bool fallback) {
  const Json* member = optional(key);
  if (member == nullptr) return fallback;
  if (!member->is_boolean()) throw field_error(what_, key, member->dump(), "true or false");
  return member->get<bool>();
}

std::string FieldReader::text(const std::string& key, const std::string& fallback) {
  const Json* member = optional(key);
  if (member == nullptr) return fallback;
  if (!member->is_string()) throw field_error(what_, key, member->dump(), "a string");
  return member->get<std::string>();
}

std::string FieldReader::required_text(const std::string& key) {
  required(key);
  return text(key, "");
}

std::vector<int> FieldReader::required_integers(const std::string& key) {
  const Json& member = required(key);
  std::vector<int> values;
  const bool is_list = member.is_array();
  if (is_list) {
    for (const Json& item : member) {
      const bool fits = item.is_number_integer() && (!item.is_number_unsigned() || item.get<uint64_t>() <= 2147483647u) &&
                        std::abs(static_cast<double>(item.get<int64_t>())) <= 2147483647.0;
      if (!fits)
        throw field_error(what_, key, item.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80), "a list of integers");
      values.push_back(item.get<int>());
    }
  } else {
    throw field_error(what_, key, member.type_name(), "a list of integers");
  }
  return values;
}

std::vector<std::string> FieldReader::texts(const std::string& key) {
  std::vector<std::string> values;
  const Json* member = optional(key);
  if (member == nullptr || member->is_null()) return values;
  bool is_legal = member->is_array();
  for (size_t i = 0; is_legal && i < member->size(); ++i) {
    is_legal = (*member)[i].is_string();
    if (is_legal) values.push_back((*member)[i].get<std::string>());
  }
  if (!is_legal) {
    throw field_error(what_, key, member->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80), "a list of strings");
  }
  return values;
}

void FieldReader::finish() const {
  if (value_->is_null()) return;
  for (const auto& member : value_->items()) {
    if (std::find(asked_.begin(), asked_.end(), member.key()) != asked_.end()) continue;
    const std::vector<std::string> near = near_names(member.key(), asked_);
    throw UserError(ErrorKind::kConfig, {.error = fmt::format("unknown field \"{}\"", member.key()),
                                         .where = what_,
                                         .what = fmt::format("known: {}", join(asked_, ", ")),
                                         .fix = near.empty() ? "remove it" : fmt::format("did you mean \"{}\"?", near.front())});
  }
}

}  // namespace rematch
