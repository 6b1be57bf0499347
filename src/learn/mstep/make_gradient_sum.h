#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/mstep/gradient_sum.h"

namespace rematch {

/// Choices for several ranks; a single process ignores them.
struct GradientSumOptions {
  /// true: sums row by row in window order, with the same bits on any number of ranks;
  /// false: once per step
  bool exact_ranks = false;
  /// 0: every rank keeps the whole optimizer state; from 1: only that of the parameters it owns.
  /// Only owners hold sums. 2 over NCCL: gradients are sent after each row, as with exact_ranks, so
  /// that no rank holds sums of parameters it does not own; elsewhere 2 is the same as 1. Does not
  /// change the result, but for the order of sums with 2 over NCCL.
  int zero_stage = 0;
  /// float32 gradients in one message; does not change the result
  int64_t bucket_bytes = int64_t{25} << 20;
  /// Returns when every rank has called it: for rows whose passes need all ranks
  /// (model/nn/block_weights.h). Gradients are then sent only between rows, after it. Empty: they
  /// need none. Does not change the result.
  std::function<void()> meet = {};
};

/// @param groups  trainable parameters (make_groups)
std::unique_ptr<GradientSum> make_gradient_sum(std::vector<ParameterGroup> groups,
                                               Group& group = alone(),
                                               const GradientSumOptions& options = {});

}  // namespace rematch
