#pragma once
#include <string>
#include <utility>
#include <vector>

#include "learn/mstep/loss/loss_term.h"

namespace rematch {

// The terms of BEHAVIOUR 8, one file each.
LossTerm cross_entropy_term();       ///< ce_loss.cc
LossTerm soft_cross_entropy_term();  ///< soft_ce_loss.cc
LossTerm wasserstein_term();         ///< w1_loss.cc
LossTerm gate_term();                ///< gate_loss.cc
LossTerm digit_term();

/// The table of loss terms. Sums are taken in its order.
const std::vector<LossTerm>& loss_terms();

/// Adds a term to the table, for code outside this folder. Call before the first run, e.g. from a
/// static initialiser. Returns true.
bool add_loss_term(LossTerm term);

/// The settings of all terms, each once.
std::vector<LossKey> loss_keys();

/// A kind of target with a run's terms on it and their weights.
struct LossKind {
  std::string name;
  std::vector<std::pair<const LossTerm*, double>> terms;
};

/// The kinds of target that a run is trained on, in the order of the table.
std::vector<LossKind> loss_kinds(const LossOptions& options);

}  // namespace rematch
