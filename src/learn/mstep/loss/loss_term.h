#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/token.h"
#include "base/settings/loss.h"

namespace rematch {

// Shapes: K positions of a chunk, V vocabulary.

/// The composition of a run's loss (BEHAVIOUR 8) and how it is computed.
struct LossOptions {
  LossSettings settings;
  std::array<TokenId, 1000> coord_token_ids{};  ///< in bin order
  int64_t chunk_positions = 1024;               ///< most positions per head call
  /// most bytes of a call's logits in float32; about four times that is alive at once
  int64_t chunk_bytes = int64_t{64} << 20;
  /// the same on a device, where every chunk reads and writes the head's whole gradient once
  int64_t device_chunk_bytes = int64_t{512} << 20;

  double value(const LossKey& key) const;
};

/// K positions with one kind of target, as its terms process them.
class LossChunk {
 public:
  LossChunk(const LossOptions& run_options, at::Tensor logits, at::Tensor targets,
            double gradient_scale, bool with_gradient)
      : options(run_options),
        logits_KV(std::move(logits)),
        targets_K(std::move(targets)),
        scale(gradient_scale),
        needs_gradient(with_gradient) {}

  const LossOptions& options;
  const at::Tensor logits_KV;  ///< any floating dtype, without graph; convert to float32 to compute
  const at::Tensor targets_K;  ///< int64
  const double scale;          ///< multiplies every gradient
  const bool needs_gradient;

  /// Adds [K, V] float32 to the gradient of the logits. Takes ownership of the first tensor.
  void add_gradient(at::Tensor grad_KV);
  /// Records a sum over the chunk (scalar float64) under a name of RowLoss::details.
  void add_sum(std::string name, at::Tensor sum) {
    sums_.emplace_back(std::move(name), std::move(sum));
  }
  const std::vector<std::pair<std::string, at::Tensor>>& sums() const { return sums_; }

  /// Values that several terms derive from the chunk's logits, and the gradient that they
  /// accumulate there.
  class Shared {
   public:
    virtual ~Shared() = default;
    /// Called once after all terms, when the chunk needs a gradient.
    virtual void add_gradient_to(LossChunk& chunk) = 0;
  };
  /// Created by the first term that uses it. @tparam T  a Shared, constructed from the chunk
  template <class T>
  T& shared() {
    for (const auto& shared : shared_) {
      if (T* found = dynamic_cast<T*>(shared.get())) return *found;
    }
    auto made = std::make_unique<T>(*this);
    T& reference = *made;
    shared_.push_back(std::move(made));
    return reference;
  }

  /// The whole gradient in the logits' dtype; shared values are freed. Call once, after all terms.
  at::Tensor take_gradient();

 private:
  std::vector<std::pair<std::string, at::Tensor>> sums_;
  std::vector<std::unique_ptr<Shared>> shared_;
  at::Tensor grad_KV_;
};

/// One term of the loss. Each has a file and an entry in the table of loss_table.cc; nothing else
/// refers to it.
struct LossTerm {
  std::string name;  ///< of its sum in RowLoss::details
  /// The kind of target it reads: kLabels, or a kind of Segment::slots. Normalised by the number of
  /// positions of that kind. Terms of one kind share logits.
  std::string kind;
  /// nullopt = 1. A term with default 0 is computed only in runs that give it a weight
  std::optional<LossKey> weight;
  std::vector<LossKey> keys = {};  ///< further settings
  /// The K losses without weight, [K] float64. If the chunk needs a gradient, also adds weight ·
  /// their gradient, through LossChunk::add_gradient (scaled) or a shared value.
  std::function<at::Tensor(LossChunk& chunk, double weight)> values_K;
};

/// The kind of target of Segment::labels.
inline constexpr const char* kLabels = "ce";

}  // namespace rematch
