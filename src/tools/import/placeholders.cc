#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

constexpr std::string_view kBox = "<bbox>", kName = "<ref-object>";

[[noreturn]] void refuse(const std::string& what) { throw LeftOut{reason::kNotPaired, what}; }

/// A text with what `on_name` and `on_box` return in place of its placeholders.
template <typename OnName, typename OnBox>
std::string fill(const std::string& text, const OnName& on_name, const OnBox& on_box) {
  std::string filled;
  for (size_t at = 0;;) {
    const size_t name = text.find(kName, at), next = std::min(name, text.find(kBox, at));
    filled += text.substr(at, next - at);
    if (next == text.npos) return filled;
    filled += next == name ? on_name() : on_box();
    at = next + (next == name ? kName : kBox).size();
  }
}

/// The numbers of a flat list, which are shares unless they are pixels; "null" for another value.
/// @param divisor  0: pixels
std::string box_text(Json box, double divisor) {
  for (Json& value : box) {
    const std::optional<double> number = read_number(value);
    if (!number) return "null";
    value = divisor == 0 ? *number : *number / divisor;
  }
  return box.is_array() ? box.dump() : "null";
}

}  // namespace

Placeholders::Placeholders(const Json& record) {
  const Json &objects = member(record, {"objects"}), &boxes = member(objects, {"bbox"});
  if (objects.is_null()) return;
  const std::string type = text_member(objects, {"bbox_type"});
  if (!objects.is_object() || !(boxes.is_null() || boxes.is_array()) ||
      !(type.empty() || type == "real" || type == "norm1" || type == "norm1000"))
    refuse("\"objects\" has no list \"bbox\" of the bbox_type real, norm1 or norm1000");
  divisor_ = type == "norm1" ? 1 : type == "norm1000" ? 1000 : 0;
  has_boxes_ = !boxes.is_null();
  for (const Json& box : boxes) boxes_.push_back(box_text(box, divisor_));
  for (const Json& name : member(objects, {"ref"})) {
    if (!name.is_string()) refuse("objects.ref is not a list of texts");
    names_.push_back(name.get<std::string>());
  }
}

const std::string& Placeholders::next_name() {
  if (next_name_ >= names_.size())
    refuse(fmt::format("{} names for more <ref-object>", names_.size()));
  return names_[next_name_++];
}

const std::string& Placeholders::next_box() {
  if (next_box_ >= boxes_.size()) refuse(fmt::format("{} boxes for more <bbox>", boxes_.size()));
  return boxes_[next_box_++];
}

std::string Placeholders::fill_question(const std::string& text) {
  return fill(
      text, [this] { return next_name(); },
      []() -> std::string { throw LeftOut{reason::kBoxInPrompt}; });
}

void Placeholders::use_up(const std::string& system) {
  fill_question(system);
  names_.erase(names_.begin(), names_.begin() + next_name_);
  next_name_ = 0;
}

std::string Placeholders::fill_answer(const std::string& text) {
  const auto has = [&text](std::string_view part) { return text.find(part) != text.npos; };
  const bool is_json = has("{"), is_caption = !is_json && has(kBox), has_name = has(kName);
  if (is_caption && !has_name && names_.size() > 1 && names_.size() != boxes_.size())
    refuse(fmt::format("{} names for {} boxes", names_.size(), boxes_.size()));
  const auto marked = [](const std::string& name) { return "<ref>" + name + "</ref>"; };
  const auto on_name = [&] {
    const std::string& name = next_name();
    if (!is_json) return is_caption ? marked(name) : name;
    const std::string quoted = python_json_string(name);
    return quoted.substr(1, quoted.size() - 2);
  };
  const auto on_box = [&] {
    if (is_json) return next_box();
    const bool is_named = has_name || names_.empty();
    const std::string name = is_named ? "" : marked(names_[std::min(next_box_, names_.size() - 1)]);
    return name + "<box>" + next_box() + "</box>";
  };
  return fill(text, on_name, on_box);
}

std::string Placeholders::fill_all() {
  std::string text;
  for (size_t i = 0; i < boxes_.size(); ++i) text += kBox;
  return boxes_.empty() ? "[]" : fill_answer(text);
}

}  // namespace rematch
