#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/plan/request.h"

namespace rematch {

/// Peaks of a GPU, from its vendor's data sheet.
struct Card {
  std::string name;
  double flops = 0;             ///< dense bfloat16 operations a second
  double bytes_per_second = 0;  ///< of its memory
};

/// @throws UserError (config) naming the known cards
Card find_card(const std::string& name);

/// A part of a training row, forward and backward.
struct SpeedPart {
  std::string name;
  double flops = 0;  ///< of matrix products and attention
  double bytes = 0;  ///< read and written by the other operators, and by products
  double launches = 0;
  double seconds = 0;  ///< of the GPU
};

/// The share of a card's peak that a training row can reach, from its products, its memory traffic
/// and its launches. Computed, never measured.
struct SpeedPlan {
  std::vector<SpeedPart> parts;
  double seconds = 0;  ///< of a row: the GPU's work, or the host's launches if they take longer
  double launch_seconds = 0;
  /// operations that the row needs (without recomputation) / (seconds · peak)
  double share_of_peak = 0;
};

SpeedPlan plan_speed(const PlanRequest& request, const Card& card);

/// A table by part, at most 80 columns wide.
std::string speed_text(const PlanRequest& request, const Card& card, const SpeedPlan& plan);

}  // namespace rematch
