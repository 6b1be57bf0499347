#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "learn/mstep/loss/head.h"
#include "learn/mstep/loss/loss_term.h"

namespace rematch {

// Shapes: T tokens of a row, K supervised positions, H hidden, V vocabulary.

/// The supervised positions of a row with one kind of target.
struct KindTargets {
  std::vector<int64_t> positions;  ///< in the row, ≥ 1; the logits are those of the position before
  std::vector<int64_t> values;     ///< labels, or targets of slots
  std::vector<bool> is_prefix;     ///< slots only: in the kept prefix; empty for labels
};

/// Supervised positions of a row by kind of target. A kind without targets has no entry.
struct RowSupervision {
  std::map<std::string, KindTargets> by_kind;

  static RowSupervision from(const PackedRow& row);
  /// Number of positions with a kind of target.
  size_t count(const std::string& kind) const;
};

/// A sum over supervised positions, and their number.
struct LossSum {
  double sum = 0;
  int64_t count = 0;

  double mean() const { return count > 0 ? sum / count : 0.0; }

  friend void fields(auto& wire, LossSum& loss) { wire(loss.sum, loss.count); }
};

/// Sums by name.
struct NamedSums : std::map<std::string, LossSum> {
  /// Zero for a name that was never added.
  LossSum of(const std::string& name) const;
  void add(const std::string& name, const LossSum& more);
  void add(const NamedSums& more);

  friend void fields(auto& wire, NamedSums& sums) {
    wire(static_cast<std::map<std::string, LossSum>&>(sums));
  }
};

/// Sums of a chunk of a row that are still on the device.
struct PendingSums {
  std::string kind;  ///< of its targets
  /// float64: the weighted sum over the prefix, that over the rest, then the sums of `names`
  at::Tensor sums_S;
  Strings names;      ///< entries of RowLoss::details
  int64_t count = 0;  ///< positions
  int64_t num_prefix = 0;
  bool has_sources = false;  ///< slots: there are also details KIND_prefix and KIND_tail
};

/// Sums over a row (not means): the caller divides by the window's counts.
struct RowLoss {
  /// scalar float32 with graph: Σ over the kinds, each times its scale
  at::Tensor total;
  NamedSums by_kind;  ///< weighted sums of the terms, by kind of target
  /// each term without its weight; KIND_prefix and KIND_tail of slots, with weights; kCorrectTokens
  NamedSums details;
  std::vector<PendingSums> pending;  ///< not yet in `by_kind` and `details`, see settle()
};

/// Detail of cross-entropy: number of labels with the largest logit (stage 1 eval_token_acc).
inline constexpr const char* kCorrectTokens = "ce_correct";

/// Factors of a row's sums by kind of target, so that the rows of a window add up to the loss of
/// the step. 1 for a kind without entry.
using LossScale = std::map<std::string, double>;
double get_scale(const LossScale& scale, const std::string& kind);

/// Loss of one row with its graph. Only supervised positions reach the head, in chunks; each
/// chunk's gradient is propagated through the head at once, so that no logits outlive their chunk.
/// `total` can be differentiated once.
/// @param hidden_TH  final hidden states of the row
/// @param scale      e.g. kLabels: 1 / labels of the window for `window` normalisation
RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision, const Head& head,
                 const LossOptions& options, const LossScale& scale);
/// row_loss() without waiting for the device: the sums stay there until settle().
RowLoss pending_row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision,
                         const Head& head, const LossOptions& options, const LossScale& scale);
/// Brings the sums of rows to the host in one transfer.
void settle(std::span<RowLoss> rows);

}  // namespace rematch
