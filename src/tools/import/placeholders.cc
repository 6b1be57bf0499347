#include "tools/import/placeholders.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tools/import/answer_reader.h"
#include "tools/import/chat_record.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

constexpr std::string_view kBox = "<bbox>", kName = "<ref-object>";

[[noreturn]] void refuse(const std::string& what) { throw LeftOut{reason::kNotPaired, what}; }

Json read_objects(const Json& record) {
  const Json* objects = find_member(record, "objects");
  if (objects == nullptr) return {};
  try {
    return objects->is_string() ? parse_json(objects->get<std::string>(), "objects") : *objects;
  } catch (const UserError& error) {
    refuse(error.problems().front().what);
  }
}

}  // namespace

Placeholders::Placeholders(const Json& record) {
  const Json objects = read_objects(record);
  if (objects.is_array()) {
    has_boxes_ = true;
    for (const Json& item : objects) {
      const Json* box = find_member(item, "bbox");
      if (box == nullptr) refuse("an entry of \"objects\" has no \"bbox\"");
      names_.push_back(text_member(item, {"caption", "ref", "label"}));
      add(*box, find_member(item, "bbox_type"));
    }
    return;
  }
  const Json *names = find_member(objects, "ref"), *boxes = find_member(objects, "bbox");
  for (const Json& name : names != nullptr ? *names : Json::array()) {
    if (!name.is_string()) refuse("objects.ref is not a list of texts");
    names_.push_back(name.get<std::string>());
  }
  has_boxes_ = boxes != nullptr;
  if (has_boxes_ && !boxes->is_array()) refuse("objects.bbox is not a list of boxes");
  for (const Json& box : has_boxes_ ? *boxes : Json::array())
    add(box, find_member(objects, "bbox_type"));
}

void Placeholders::add(const Json& box, const Json* type) {
  const double divisor = type == nullptr || *type == "real" ? 0
                         : *type == "norm1"                 ? 1
                         : *type == "norm1000"              ? 1000
                                                            : -1;
  if (divisor < 0 || (!boxes_.empty() && divisor != divisor_))
    refuse("bbox_type is not one of real, norm1 and norm1000 for all boxes");
  divisor_ = divisor;
  boxes_.push_back(box);
}

const std::string& Placeholders::next_name() {
  if (next_name_ >= names_.size())
    refuse(fmt::format("{} names for more <ref-object>", names_.size()));
  return names_[next_name_++];
}

/// The numbers of a flat list, which are shares unless they are pixels; "null" for another value.
std::string Placeholders::next_box() {
  if (next_box_ >= boxes_.size()) refuse(fmt::format("{} boxes for more <bbox>", boxes_.size()));
  const Json& box = boxes_[next_box_++];
  Json numbers = Json::array();
  for (const Json& value : box.is_array() ? box : Json::array()) {
    const std::optional<double> number = read_number(value);
    if (!number) return "null";
    numbers.push_back(divisor_ == 0 ? *number : *number / divisor_);
  }
  return numbers.empty() ? "null" : numbers.dump();
}

std::string Placeholders::fill_question(const std::string& text) {
  if (text.find(kBox) != text.npos) throw LeftOut{reason::kBoxInPrompt};
  std::string filled = text;
  for (size_t at = filled.find(kName); at != filled.npos; at = filled.find(kName, at)) {
    const std::string& name = next_name();
    filled.replace(at, kName.size(), name);
    at += name.size();
  }
  return filled;
}

void Placeholders::use_up(const std::string& system) {
  fill_question(system);
  names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(next_name_));
  next_name_ = 0;
}

std::string Placeholders::fill_json(std::string text) {
  // a box may stand in quotes, or in a separate list
  for (const char* wrapped : {"\"<bbox>\"", "[<bbox>]"}) {
    const std::string_view with = wrapped;
    for (size_t at = text.find(with); at != text.npos; at = text.find(with))
      text.replace(at, with.size(), kBox);
  }
  std::string filled;
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(kName)) {
      const std::string quoted = python_json_string(next_name());
      filled += in_string ? quoted.substr(1, quoted.size() - 2) : quoted;
      at += kName.size();
    } else if (rest.starts_with(kBox)) {
      filled += next_box();
      at += kBox.size();
    } else {
      if (text[at] == '"' && (at == 0 || text[at - 1] != '\\')) in_string = !in_string;
      filled += text[at++];
    }
  }
  return filled;
}

std::string Placeholders::fill_answer(const std::string& text) {
  const bool has_box = text.find(kBox) != text.npos, has_name = text.find(kName) != text.npos;
  if (text.find('{') != text.npos) return fill_json(text);
  if (!has_box) return has_name ? fill_question(text) : text;
  if (!has_name && names_.size() > 1 && names_.size() != boxes_.size())
    refuse(fmt::format("{} names for {} boxes", names_.size(), boxes_.size()));
  std::string marks, others;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(kName)) {
      marks += "<ref>" + next_name() + "</ref>";
      at += kName.size();
    } else if (rest.starts_with(kBox)) {
      if (!has_name && !names_.empty())
        marks += "<ref>" + names_[std::min(next_box_, names_.size() - 1)] + "</ref>";
      marks += "<box>" + next_box() + "</box>";
      at += kBox.size();
    } else {
      others += text[at++];
    }
  }
  if (has_written_box(others)) refuse("only some boxes of the answer are <bbox>");
  return marks;
}

std::string Placeholders::fill_all() {
  std::string text;
  for (size_t i = 0; i < boxes_.size(); ++i) text += kBox;
  return boxes_.empty() ? "[]" : fill_answer(text);
}

}  // namespace rematch
