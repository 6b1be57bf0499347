#include "learn/estep/match/labels.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw UserError(
      ErrorKind::kData,
      {.error = "a file of synonyms cannot be used",
       .where = path,
       .what = what,
       .fix = "write {\"person\": [\"man\", \"woman\"], …}: each label with its synonyms"});
}

}  // namespace

LabelMatch LabelMatch::from(const std::string& rule, TextForm form) {
  LabelMatch match;
  match.exact_ = rule == "exact";
  match.form_ = std::move(form);
  if (match.exact_ || rule == "normalized") return match;
  const Json synonyms = read_json_file(rule);
  if (!synonyms.is_object())
    refuse(rule, fmt::format("expected an object, found {}", synonyms.type_name()));
  const auto add = [&](const std::string& name, const std::string& label) {
    const auto [known, is_new] =
        match.labels_by_name_.emplace(normalize_label(name), normalize_label(label));
    if (!is_new && known->second != normalize_label(label)) {
      refuse(rule, fmt::format("\"{}\" is a synonym of both \"{}\" and \"{}\"", name, known->second,
                               normalize_label(label)));
    }
  };
  for (const auto& item : synonyms.items()) {
    if (!item.value().is_array())
      refuse(rule, fmt::format("expected a list for \"{}\", found {}", item.key(),
                               item.value().type_name()));
    add(item.key(), item.key());
    for (const Json& name : item.value()) {
      if (!name.is_string())
        refuse(rule,
               fmt::format("a synonym of \"{}\" is not a string: {}", item.key(), name.dump()));
      add(name.get<std::string>(), item.key());
    }
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
