#include "learn/mstep/loss/loss_table.h"

#include <algorithm>

#include "base/error.h"

namespace rematch {
namespace {

std::vector<LossTerm>& table() {
  static std::vector<LossTerm> terms{cross_entropy_term(), soft_cross_entropy_term(),
                                     wasserstein_term(), gate_term()};
  return terms;
}

auto by_name(const std::string& name) {
  return [&name](const auto& term) { return term.name == name; };
}

}  // namespace

const std::vector<LossTerm>& loss_terms() { return table(); }

bool add_loss_term(LossTerm term) {
  REMATCH_CHECK(std::none_of(table().begin(), table().end(), by_name(term.name)),
                "duplicate loss term " + term.name);
  table().push_back(std::move(term));
  return true;
}

std::vector<LossKey> loss_keys() {
  std::vector<LossKey> keys;
  const auto add = [&](const LossKey& key) {
    if (std::ranges::none_of(keys, by_name(key.name))) keys.push_back(key);
  };
  for (const LossTerm& term : table()) {
    if (term.weight) add(*term.weight);
    std::ranges::for_each(term.keys, add);
  }
  return keys;
}

std::vector<LossKind> loss_kinds(const LossOptions& options) {
  const std::vector<LossKey> keys = loss_keys();
  for (const auto& [name, value] : options.settings) {
    REMATCH_CHECK(std::ranges::any_of(keys, by_name(name)), "no loss has the setting " + name);
  }
  std::vector<LossKind> kinds;
  for (const LossTerm& term : table()) {
    const double weight = term.weight ? options.value(*term.weight) : 1.0;
    if (weight == 0 && term.weight->fallback == 0) continue;
    auto kind = std::ranges::find_if(kinds, by_name(term.kind));
    if (kind == kinds.end()) kind = kinds.insert(kind, LossKind{term.kind, {}});
    kind->terms.emplace_back(&term, weight);
  }
  return kinds;
}

}  // namespace rematch
