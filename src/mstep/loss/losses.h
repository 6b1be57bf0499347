#pragma once
#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "flow/segment.h"
#include "mstep/loss/head.h"
#include "mstep/loss/loss_term.h"

namespace rematch {

// Shapes: T tokens of a row, K supervised positions, H hidden, V vocabulary.

/// Targets of one part of the loss in a row.
struct PartTargets {
  std::vector<int64_t> positions;  ///< of the taught tokens in the row; their logits are read one before
  std::vector<int64_t> values;     ///< labels, or targets of slots
  std::vector<bool> is_prefix;     ///< slots only: taught in the kept prefix; empty for labels
};

/// What a row is supervised on by part of the loss, offsets already those of the row. A part without targets has no entry.
struct RowSupervision {
  std::map<std::string, PartTargets> parts;

  static RowSupervision from(const PackedRow& row);
};

/// A sum over supervised positions, and their number.
struct LossSum {
  double sum = 0;
  int64_t count = 0;

  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0.0; }
};

/// Sums by name.
struct NamedSums : std::map<std::string, LossSum> {
  /// Zero for a name that was never added.
  LossSum of(const std::string& name) const;
  void add(const std::string& name, const LossSum& more);
  void add(const NamedSums& more);
};

/// Sums over a row (not means): the caller divides by the window's counts.
struct RowLoss {
  at::Tensor total;   ///< scalar float32 with graph: Σ of the parts, each times its scale
  NamedSums parts;    ///< "ce", "coord", …: weighted sums of their terms
  NamedSums details;  ///< each term without its weight; "PART_prefix" and "PART_tail" of parts that have slots; kCorrectTokens
};

/// Detail of cross-entropy: labels that have the largest logit (stage 1 eval_token_acc).
inline constexpr const char* kCorrectTokens = "ce_correct";

/// What multiplies the sum of each part of a row's loss, so that the rows of a window add up to the loss of the step.
/// A part without an entry is multiplied by 1.
using LossScale = std::map<std::string, double>;
double scale_of(const LossScale& scale, const std::string& part);

/// Loss of one row with its graph. Only supervised positions reach the head, in chunks; each chunk's gradient is taken through the head at
/// once, so that no logits outlive their chunk. `total` can be differentiated once.
/// @param hidden_TH  final hidden states of the row
/// @param scale      e.g. "ce": 1 / CE tokens of the window for `window` normalisation
RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision, const Head& head, const LossOptions& options,
                 const LossScale& scale);

}  // namespace rematch
