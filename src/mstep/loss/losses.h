#pragma once
#include <ATen/ATen.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "flow/segment.h"

namespace rematch {

// Shapes: T tokens of a row, K supervised positions, H hidden, V vocabulary.

/// Weights and shapes of the coordinate losses (BEHAVIOUR 8.2); defaults of BEHAVIOUR 1.
struct LossOptions {
  double soft_ce_weight = 1.0;
  double w1_weight = 1.0;
  double gate_weight = 1.0;
  double temperature_coord = 1.0;               ///< > 0
  double target_sigma = 2.0;                    ///< > 0, bins
  std::optional<double> target_truncate;        ///< bins; none = no cut
  std::array<TokenId, 1000> coord_token_ids{};  ///< in bin order
  int64_t chunk_positions = 1024;               ///< most positions per head call
  int64_t chunk_bytes = int64_t{64} << 20;  ///< most bytes of a call's logits in float32; what is alive at once is about four times that
};

/// What a row is supervised on, offsets already those of the row.
struct RowSupervision {
  std::vector<int64_t> ce_positions;  ///< position of the labelled token; its logits are read one before
  std::vector<int64_t> ce_labels;
  std::vector<int64_t> slot_positions;
  std::vector<int64_t> slot_bins;
  std::vector<bool> slot_is_prefix;

  static RowSupervision from(const PackedRow& row);
};

/// Sums over a row (not means): the caller divides by the window's counts. Components are unweighted.
struct RowLoss {
  at::Tensor total;  ///< scalar float32 with graph: ce_sum·ce_scale + coord_sum·coord_scale
  double ce_sum = 0;
  double coord_sum = 0;  ///< weighted sum of the three components
  double soft_ce_sum = 0, w1_sum = 0, gate_sum = 0;
  double coord_prefix_sum = 0, coord_append_sum = 0;
  int64_t ce_count = 0, coord_count = 0, coord_prefix_count = 0, coord_append_count = 0;
  int64_t ce_correct_count = 0;  ///< argmax hits at CE positions (stage 1 eval_token_acc)
};

/// Loss of one row with its graph. Only supervised positions reach the head, in chunks; each chunk's gradient is taken through the head at once,
/// so that no logits outlive their chunk. `total` can be differentiated once.
/// @param hidden_TH    final hidden states of the row
/// @param head_KV      maps [K, H] to [K, V]
/// @param ce_scale     multiplies the CE sum (1 / CE tokens of the window for `window` normalisation); likewise coord_scale
RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision,
                 const std::function<at::Tensor(const at::Tensor&)>& head_KV, const LossOptions& options, double ce_scale,
                 double coord_scale);

}  // namespace rematch
