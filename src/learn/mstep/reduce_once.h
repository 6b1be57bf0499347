#pragma once
#include <cstdint>

#include "learn/mstep/rank_gradients.h"

namespace rematch {

/// The default: every rank sums its own rows in float32, and the step has one round of exchanges,
/// during the rank's last backward pass. Sums run over a rank's rows, then over the ranks in rank
/// order: the same bits in every run with the same number of ranks. Traffic is that of
/// DistributedDataParallel, for any number of rows.
class ReduceOnce final : public RankGradients {
 public:
  using RankGradients::RankGradients;

 private:
  int64_t count_rounds(int64_t /*most_rows*/) const override { return 1; }
  bool ends_round(int64_t row) const override { return row == last_trained_row(); }
};

}  // namespace rematch
