#pragma once
#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow/token.h"

namespace rematch {

// Shapes: K positions of a chunk, V vocabulary.

/// A setting of a loss: a number under its name in the configuration.
struct LossKey {
  const char* name = "";
  double fallback = 0;
  double low = 0;             ///< least legal value
  bool excludes_low = false;  ///< `low` itself is not legal
  const char* meaning = "";   ///< one line
};

/// What a run's loss is made of (BEHAVIOUR 8) and how it is computed.
struct LossOptions {
  std::map<std::string, double> settings;       ///< by LossKey::name; what is absent has its default
  std::array<TokenId, 1000> coord_token_ids{};  ///< in bin order
  int64_t chunk_positions = 1024;               ///< most positions per head call
  int64_t chunk_bytes = int64_t{64} << 20;  ///< most bytes of a call's logits in float32; what is alive at once is about four times that

  double value(const LossKey& key) const;
};

/// K positions with one kind of target on their way through its terms.
class LossChunk {
 public:
  LossChunk(const LossOptions& run_options, at::Tensor logits, at::Tensor targets, double gradient_scale, bool with_gradient)
      : options(run_options),
        logits_KV(std::move(logits)),
        targets_K(std::move(targets)),
        scale(gradient_scale),
        needs_gradient(with_gradient) {}

  const LossOptions& options;
  const at::Tensor logits_KV;  ///< any floating dtype, without graph; to be computed with in float32
  const at::Tensor targets_K;  ///< int64
  const double scale;          ///< multiplies every gradient
  const bool needs_gradient;

  /// Adds [K, V] float32 to the gradient by the logits, which takes the first one over.
  void add_gradient(at::Tensor grad_KV);
  /// Notes a sum over the chunk (scalar float64) under a name of RowLoss::details.
  void add_sum(std::string name, at::Tensor sum) { sums_.emplace_back(std::move(name), std::move(sum)); }
  const std::vector<std::pair<std::string, at::Tensor>>& sums() const { return sums_; }

  /// What several terms compute from the chunk's logits, and the gradient that they gather there.
  class Shared {
   public:
    virtual ~Shared() = default;
    /// Called once after all terms, when the chunk needs a gradient.
    virtual void add_gradient_to(LossChunk& chunk) = 0;
  };
  /// Made by the first term that asks. @tparam T  a Shared, constructed from the chunk
  template <class T>
  T& shared() {
    for (const auto& one : shared_) {
      if (T* found = dynamic_cast<T*>(one.get())) return *found;
    }
    auto made = std::make_unique<T>(*this);
    T& reference = *made;
    shared_.push_back(std::move(made));
    return reference;
  }

  /// The whole gradient in the logits' dtype; what was shared goes. Call once, after all terms.
  at::Tensor take_gradient();

 private:
  std::vector<std::pair<std::string, at::Tensor>> sums_;
  std::vector<std::unique_ptr<Shared>> shared_;
  at::Tensor grad_KV_;
};

/// One term of the loss. It lives in a file of its own and stands in the table of loss_table.cc; nothing else knows it.
struct LossTerm {
  std::string name;  ///< of its sum in RowLoss::details
  /// The kind of target it reads, whose number of positions normalises it: kLabels, or a kind of Segment::slots. Terms of one kind share logits.
  std::string kind;
  std::optional<LossKey> weight;   ///< none = 1. A term with the default 0 is computed only in runs that give it a weight
  std::vector<LossKey> keys = {};  ///< further settings
  /// The K losses without weight, [K] float64. Where the chunk needs a gradient it is given weight · theirs, by
  /// LossChunk::add_gradient (scaled) or through something shared.
  std::function<at::Tensor(LossChunk& chunk, double weight)> values_K;
};

/// The kind of target that Segment::labels are.
inline constexpr const char* kLabels = "ce";

}  // namespace rematch
