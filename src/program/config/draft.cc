#include "program/config/draft.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"

namespace rematch {
namespace {

const std::string kVariant = "custom.trainer_variant";

}  // namespace

Draft::Draft(Settings base) : rollouts(base.rollouts) {
  Settings built_in;
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    const bool differs = spec.read && spec.read(base) != spec.read(built_in);
    entries_[spec.path] = {differs ? spec.read(base) : spec.fallback, "default"};
  }
}

const Draft::Entry& Draft::entry(const std::string& key) const {
  const auto found = entries_.find(key);
  REMATCH_CHECK(found != entries_.end(), key);
  return found->second;
}

void Draft::set(const std::string& key, KeyValue value, std::string origin, bool given) {
  entry(key);  // must exist
  entries_[key] = {std::move(value), std::move(origin), given};
}
void Draft::derive(const std::string& key, KeyValue value, const std::string& from) {
  set(key, std::move(value), "derived from " + from, false);
}

void Draft::problem(std::string error, const std::string& key, std::string what, std::string fix) {
  problems.push_back({std::move(error), where(key), std::move(what), std::move(fix)});
}
void Draft::warn(std::string text, const std::string& key) {
  warnings.push_back({std::move(text), where(key)});
}
void Draft::warn_no_effect(const std::string& key, const std::string& reason) {
  warn(fmt::format("`{}` has no effect: {}", key, reason), key);
}

const Node* Draft::find_written(const std::string& key) const {
  const Node* node = &root;
  for (const std::string& part : split(key, '.')) {
    if (node) node = node->find(part);
  }
  return node;
}

TrainerVariant Draft::variant() const {
  return is_null(kVariant) ? TrainerVariant::kSft : *value_of<TrainerVariant>(text(kVariant));
}
bool Draft::has_rollout_section() const {
  const Node* section = find_written(kRolloutMatching);
  return section ? !section->is_null() : rollouts;
}

}  // namespace rematch
