#include "learn/estep/match/labels.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/content_key.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace rematch {

LabelMatch LabelMatch::from(const std::string& rule, TextForm form) {
  LabelMatch match;
  match.exact_ = rule == "exact";
  match.form_ = std::move(form);
  if (match.exact_ || rule == "normalized") return match;
  const JsonOrigin origin{
      .path = rule,
      .error = "a file of synonyms cannot be used",
      .fix = "write {\"person\": [\"man\", \"woman\"], …}: each label with its synonyms"};
  const Json synonyms = read_json_file(rule);
  JsonFields fields(synonyms, origin);
  const auto add = [&](const std::string& name, const std::string& label) {
    const auto [known, is_new] =
        match.labels_by_name_.emplace(normalize_label(name), normalize_label(label));
    if (!is_new && known->second != normalize_label(label)) {
      throw_json_error(origin, name,
                       fmt::format("it is a synonym of both \"{}\" and \"{}\"", known->second,
                                   normalize_label(label)));
    }
  };
  for (const auto& item : synonyms.items()) {
    add(item.key(), item.key());
    for (const std::string& name : fields.texts(item.key())) add(name, item.key());
  }
  return match;
}

std::string LabelMatch::class_name(const std::string& desc) const {
  return exact_ ? normalize_label(desc) : canonical(desc);
}

std::string LabelMatch::identity() const {
  if (exact_) return "exact";
  if (labels_by_name_.empty()) return "normalized";
  std::string all;
  for (const auto& [name, label] : labels_by_name_)
    all += fmt::format("{}:{}{}:{}", name.size(), name, label.size(), label);
  return fmt::format("{} synonyms, content {}", labels_by_name_.size(), content_hash_of(all));
}

std::string LabelMatch::canonical(const std::string& desc) const {
  if (exact_) return form_ ? form_(desc) : desc;
  std::string label = normalize_label(desc);
  const auto known = labels_by_name_.find(label);
  return known == labels_by_name_.end() ? label : known->second;
}

}  // namespace rematch
