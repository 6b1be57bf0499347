#include "tools/import/placeholders.h"

#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tools/import/json_value.h"

namespace rematch {
namespace {

constexpr double kNorm1000 = 1000;
constexpr std::string_view kMark = "<bbox#";

double read_divisor(const std::string& type, const JsonOrigin& origin) {
  if (type == "real") return 0;
  if (type == "norm1") return 1;
  if (type == "norm1000") return kNorm1000;
  throw_json_error(origin, "objects.bbox_type",
                   fmt::format("expected real, norm1 or norm1000, found {}", show_json(type)));
}

}  // namespace

Placeholders::Placeholders(const Json& record, const JsonOrigin& origin) {
  const Json* objects = find_member(record, "objects");
  if (objects == nullptr) return;
  const Json parsed =
      objects->is_string() ? parse_document(objects->get<std::string>(), origin) : *objects;
  if (parsed.is_array()) {
    read_list(parsed, origin);
    return;
  }
  JsonFields fields(parsed, origin, "objects");
  names_ = fields.texts("ref");
  if (fields.has("bbox_type") && !fields.at("bbox_type").is_null())
    divisor_ = read_divisor(fields.text("bbox_type"), origin);
  const Json* boxes = fields.find("bbox");
  has_boxes_ = boxes != nullptr && !boxes->is_null();
  if (!has_boxes_) return;
  if (!boxes->is_array()) fields.fail("bbox", "expected a list of boxes");
  boxes_.assign(boxes->begin(), boxes->end());
}

void Placeholders::read_list(const Json& list, const JsonOrigin& origin) {
  has_boxes_ = true;
  for (const Json& item : list) {
    const Json* box = find_member(item, "bbox");
    if (box == nullptr) throw_json_error(origin, "objects", "an entry has no \"bbox\"");
    const Json* name = find_member(item, {"caption", "ref", "label"});
    names_.push_back(name != nullptr && name->is_string() ? name->get<std::string>() : "");
    boxes_.push_back(*box);
    const Json* type = find_member(item, "bbox_type");
    if (type == nullptr || !type->is_string()) continue;
    const auto divisor = read_divisor(type->get<std::string>(), origin);
    if (boxes_.size() > 1 && divisor != divisor_)
      throw_json_error(origin, "objects", "its boxes have more than one \"bbox_type\"");
    divisor_ = divisor;
  }
}

std::string Placeholders::fill(const std::string& text, bool as_json) {
  std::string filled;
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(kNamePlaceholder)) {
      const std::string name = next_name_ < names_.size() ? names_[next_name_] : "";
      const std::string quoted = python_json_string(name);
      filled += as_json ? (in_string ? quoted.substr(1, quoted.size() - 2) : quoted) : name;
      ++next_name_;
      at += kNamePlaceholder.size();
    } else if (rest.starts_with(kBoxPlaceholder)) {
      const std::string mark = fmt::format("{}{}>", kMark, next_box_++);
      filled += as_json && !in_string ? "\"" + mark + "\"" : mark;
      at += kBoxPlaceholder.size();
    } else {
      if (text[at] == '"' && (at == 0 || text[at - 1] != '\\')) in_string = !in_string;
      filled += text[at++];
    }
  }
  return filled;
}

std::optional<Json> Placeholders::box_of(const Json& value) const {
  const Json& mark = value.is_array() && value.size() == 1 ? value[0] : value;
  if (!mark.is_string()) return std::nullopt;
  const std::string& text = mark.get_ref<const std::string&>();
  if (!text.starts_with(kMark)) return std::nullopt;
  const size_t index = static_cast<size_t>(std::atoi(text.c_str() + kMark.size()));
  return index < boxes_.size() ? std::optional<Json>(boxes_[index]) : std::optional<Json>(Json());
}

}  // namespace rematch
