#include "config/schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr double kLargestInteger = std::numeric_limits<int>::max();

KeySpec make(std::string path, KeyType type, std::string fallback) {
  KeySpec spec;
  spec.path = std::move(path);
  spec.type = type;
  spec.fallback = std::move(fallback);
  return spec;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

struct Index {
  std::unordered_map<std::string, const KeySpec*> keys;
  std::set<std::string> sections{""};
};

const Index& index() {
  static const Index built = [] {
    Index result;
    for (const KeySpec& spec : schema()) {
      REMATCH_CHECK(result.keys.emplace(spec.path, &spec).second, spec.path);
      for (size_t dot = spec.path.find('.'); dot != std::string::npos; dot = spec.path.find('.', dot + 1)) {
        result.sections.insert(spec.path.substr(0, dot));
      }
    }
    for (const std::string& section : result.sections) REMATCH_CHECK(!result.keys.count(section), section);
    return result;
  }();
  return built;
}

}  // namespace

KeySpec&& KeySpec::at_least(double value) && {
  low = value;
  return std::move(*this);
}
KeySpec&& KeySpec::above(double value) && {
  low = value;
  low_open = true;
  return std::move(*this);
}
KeySpec&& KeySpec::below(double value) && {
  high = value;
  high_open = true;
  return std::move(*this);
}
KeySpec&& KeySpec::within(double from, double to) && {
  low = from;
  high = to;
  return std::move(*this);
}
KeySpec&& KeySpec::one_of(std::vector<std::string> texts) && {
  choices = std::move(texts);
  return std::move(*this);
}
KeySpec&& KeySpec::or_else(std::string text) && {
  way_out = std::move(text);
  return std::move(*this);
}
KeySpec&& KeySpec::null_is(std::vector<std::string> texts) && {
  null_words = std::move(texts);
  return std::move(*this);
}
KeySpec&& KeySpec::is_required() && {
  required = true;
  return std::move(*this);
}
KeySpec&& KeySpec::says(std::string text) && {
  help = std::move(text);
  return std::move(*this);
}
KeySpec&& KeySpec::warns(std::string when, std::string text) && {
  rules.push_back({std::move(when), ValueRule::Verdict::kWarn, std::move(text)});
  return std::move(*this);
}
KeySpec&& KeySpec::refuses(std::string when, std::string advice) && {
  rules.push_back({std::move(when), ValueRule::Verdict::kRefuse, std::move(advice)});
  return std::move(*this);
}
KeySpec&& KeySpec::needs(std::string when, Capability id) && {
  rules.push_back({std::move(when), ValueRule::Verdict::kNotBuilt, "", id});
  return std::move(*this);
}

std::string KeySpec::default_text() const {
  if (required) return "required";
  if (!fallback.empty()) return fallback;
  return null_words.empty() ? "null" : null_words.front();
}

std::string KeySpec::range_text() const {
  const bool has_low = low != -std::numeric_limits<double>::infinity();
  const bool has_high = high < kLargestInteger;  // that one goes without saying
  if (has_low && has_high) return fmt::format("in {}{}, {}{}", low_open ? "(" : "[", low, high, high_open ? ")" : "]");
  if (has_low) return fmt::format("{} {}", low_open ? ">" : ">=", low);
  return has_high ? fmt::format("{} {}", high_open ? "<" : "<=", high) : "";
}

bool KeySpec::in_range(double value) const { return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high); }

KeySpec text_key(std::string path, std::string fallback) { return make(std::move(path), KeyType::kString, std::move(fallback)); }
KeySpec integer(std::string path, std::string fallback) {
  KeySpec spec = make(std::move(path), KeyType::kInteger, std::move(fallback));
  spec.high = kLargestInteger;
  return spec;
}
KeySpec number(std::string path, std::string fallback) { return make(std::move(path), KeyType::kNumber, std::move(fallback)); }
KeySpec boolean(std::string path, std::string fallback) { return make(std::move(path), KeyType::kBool, std::move(fallback)); }
KeySpec string_list(std::string path, std::string fallback) { return make(std::move(path), KeyType::kStringList, std::move(fallback)); }
KeySpec mapping(std::string path) { return make(std::move(path), KeyType::kMap, ""); }

KeySpec ignored(std::string path, std::string reason) {
  KeySpec spec = make(std::move(path), KeyType::kAny, "");
  spec.state = KeyState::kIgnored;
  spec.note = std::move(reason);
  return spec;
}

KeySpec refused(std::string path, std::string advice) {
  KeySpec spec = make(std::move(path), KeyType::kAny, "");
  spec.state = KeyState::kRefused;
  spec.note = std::move(advice);
  return spec;
}

const std::vector<KeySpec>& schema() {
  static const std::vector<KeySpec> table = [] {
    std::vector<KeySpec> rows;
    for (auto part : {model_keys, training_keys, custom_keys, rollout_keys, foreign_keys}) {
      for (KeySpec& spec : part()) rows.push_back(std::move(spec));
    }
    return rows;
  }();
  return table;
}

const KeySpec* find_key(const std::string& path) {
  const auto found = index().keys.find(path);
  return found == index().keys.end() ? nullptr : found->second;
}

bool is_section(const std::string& path) { return index().sections.count(path) > 0; }

std::vector<std::string> suggest_keys(const std::string& section, const std::string& name) {
  constexpr size_t kMost = 3;
  constexpr size_t kLongestName = 80;  // comparing names costs their lengths multiplied
  std::vector<std::string> found;
  if (name.size() > kLongestName) return found;
  const auto add = [&](const std::string& path) {
    if (found.size() < kMost && std::find(found.begin(), found.end(), path) == found.end()) found.push_back(path);
  };
  std::vector<std::string> siblings;                  // names directly inside the section
  std::multimap<std::string, std::string> elsewhere;  // last part → path
  std::vector<std::string> parts;
  const std::string prefix = section.empty() ? "" : section + ".";
  std::vector<std::string> paths(index().sections.begin(), index().sections.end());
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kRefused) paths.push_back(spec.path);
  }
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const std::string last = last_part(path);
    if (path == prefix + last) siblings.push_back(last);
    elsewhere.emplace(last, path);
    parts.push_back(last);
  }
  for (auto [at, end] = elsewhere.equal_range(last_part(name)); at != end; ++at) add(at->second);
  for (const std::string& sibling : near_names(name, siblings)) add(prefix + sibling);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  for (const std::string& part : near_names(name, parts)) {
    for (auto [at, end] = elsewhere.equal_range(part); at != end; ++at) add(at->second);
  }
  return found;
}

std::vector<std::string> evaluation_metrics(bool stage_2, bool has_rollout_section) {
  std::vector<std::string> names;
  if (!stage_2) names = {"eval_loss", "eval_token_acc"};
  if (stage_2 || has_rollout_section) {
    for (const char* name :
         {"f1", "precision", "recall", "pred_objects", "gt_objects", "matched", "fp", "fn", "gating_rejections", "parse_dropped_invalid",
          "parse_truncated_rate", "parse_malformed_rate", "sample_valid_pred_rate", "sample_any_match_rate", "matched_maskiou_mean"}) {
      names.push_back(std::string("eval_rollout_") + name);
    }
  }
  names.push_back("eval_runtime");
  names.push_back("eval_samples_per_second");
  return names;
}

}  // namespace rematch
