#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "learn/mstep/loss/losses.h"

namespace rematch::test {

/// Targets of cross-entropy.
inline std::pair<const std::string, KindTargets> labels(std::vector<int64_t> positions,
                                                        std::vector<int64_t> values) {
  return {kLabels,
          {.positions = std::move(positions), .values = std::move(values), .is_prefix = {}}};
}

/// Targets of the coordinate losses.
inline std::pair<const std::string, KindTargets> coord_slots(std::vector<int64_t> positions,
                                                             std::vector<int64_t> bins,
                                                             std::vector<bool> is_prefix) {
  return {kCoordSlots,
          {.positions = std::move(positions),
           .values = std::move(bins),
           .is_prefix = std::move(is_prefix)}};
}

/// A head that is the product with a matrix.
inline Head product_with(const at::Tensor& weight_VH) {
  return Head::of({.weight = weight_VH, .bias = {}});
}

/// A head that hands the hidden states through as logits.
inline Head identity() {
  return {.logits_KV = [](const at::Tensor& hidden_KH) { return hidden_KH; }, .weight_VH = {}};
}

}  // namespace rematch::test
