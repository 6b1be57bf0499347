#pragma once
#include <cstdint>

#include "learn/mstep/rank_gradients.h"

namespace rematch {

/// `training.exact_ranks`: one round of exchanges per row, first row 0 of every rank, then row 1,
/// and so on. Rows are distributed round-robin, so this is window order: the sums are bit for bit
/// those of one process with all rows, for any number of ranks. With m rows per rank the traffic is
/// (m + 1) / 2 times that of ReduceOnce.
class ExactRows final : public RankGradients {
 public:
  using RankGradients::RankGradients;

 private:
  int64_t count_rounds(int64_t most_rows) const override { return most_rows; }
  bool ends_round(int64_t /*row*/) const override { return true; }
};

}  // namespace rematch
