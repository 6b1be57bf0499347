#pragma once
#include <functional>
#include <string>
#include <vector>

#include "flow/segment.h"
#include "model/model.h"
#include "model/row.h"
#include "mstep/loss/losses.h"

namespace rematch::bench {

/// One way to run forward and backward over the same segments; `run` adds gradients to the
/// parameters and returns the loss.
struct Variant {
  std::string name;
  std::function<double()> run;
  int64_t num_positions = 0;  ///< tokens that go through the decoder, padding included
};

/// Shared by all variants.
struct Job {
  std::shared_ptr<const Model> model;
  std::vector<std::shared_ptr<const Segment>> segments;
  LossOptions loss;
  PixelGetter pixels;
};

/// The given rows one after another through the training path: make_row, forward_row, row_loss.
Variant rows_variant(const Job& job, std::string name, std::vector<PackedRow> rows);

enum class PaddedAttention {
  kMask,  ///< a [B, 1, T, T] mask that is causal and hides padding, as transformers makes it
  /// no mask: with padding on the right a causal kernel never attends to it. The strongest padded
  /// form
  kCausal,
};

/// All segments as one batch padded on the right to the longest, through the same decoder, head and
/// losses.
Variant padded_variant(const Job& job, std::string name, PaddedAttention attention);

}  // namespace rematch::bench
