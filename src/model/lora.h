#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/settings/tuner.h"
#include "model/nn/layers.h"

namespace rematch {

// LoRA and DoRA on one Linear, as PEFT computes them (MODEL 9). Shapes: r rank, I input width, O
// output width.

/// The trained tensors of one adapted Linear: leaves with gradient, float32 for every dtype of the
/// base model.
struct LoraTensors {
  at::Tensor a_rI;
  at::Tensor b_Or;
  at::Tensor magnitude_O;  ///< DoRA only, else undefined
};

/// A new adapter: A uniform in ±1/√I (Kaiming, a = √5) from counter-based randomness, B zero, the
/// magnitude from the row norms of the weight. Like PEFT, rounds A and magnitude to bfloat16 if the
/// base is bfloat16.
/// @param weight_OI  of the base.
/// @param module  its name; with `seed` the random key of A
LoraTensors initial_lora(const at::Tensor& weight_OI, const LoraSettings& options,
                         const std::string& module, uint64_t seed);

/// The weight of a plain Linear that is equivalent to base and adapter together (PEFT's merge):
/// computed in float32 on the weight's device, rounded once to the base's dtype. Does not change
/// the base. Cost: one product of B and A, in slices of rows.
at::Tensor merge_lora(const at::Tensor& weight_OI, const LoraTensors& tensors, double scaling);

/// The dropout state shared by all adapters of a model. Masks depend only on this state and the
/// name of the module, so a recomputed forward pass drops the same inputs.
struct LoraDropout {
  bool active = false;   ///< true during the forward and backward pass of a training row
  uint64_t row_key = 0;  ///< random key of the training row: seed, optimizer step, row
  /// For tests: replaces the random mask (1 = keep) of a module's input.
  /// @param sizes  of the input
  std::function<at::Tensor(const std::string& module, at::IntArrayRef sizes)> mask;
};

/// A Linear with its adapter.
class LoraLinear : public LinearAdapter {
 public:
  /// @param keeps_merged  false: a merged weight is made for each pass
  LoraLinear(std::string module, const LoraSettings& options, LoraTensors tensors,
             std::shared_ptr<const LoraDropout> dropout, bool keeps_merged = true);

  /// LoRA: base + s·B(A(drop(x))). DoRA: base + (m/n − 1)·base′ + (m/n)·s·B(A(x)), with n the
  /// detached row norm of W + s·BA and base′ the base output without bias; with active dropout both
  /// use drop(x). The adapter computes in the dtype of x, as PEFT does under torch.autocast; the
  /// result has it too. Without gradients and outside training rows it is a plain Linear with the
  /// merged weight, a separate tensor that is cached until the next pass with gradients; a packed
  /// base has none, and the adapter is computed apart. The base weight never changes.
  at::Tensor forward(const at::Tensor& x, const LinearWeights& base,
                     Results results) const override;
  std::vector<at::Tensor> parameters() const override;

  const std::string& module() const { return module_; }
  const LoraTensors& tensors() const { return tensors_; }
  double scaling() const { return options_.scaling(); }

 private:
  /// The inputs of a cached value.
  struct Origin {
    at::Tensor weight;
    std::array<uint32_t, 4> versions{};  ///< of weight, A, B and magnitude
    bool operator==(const Origin& other) const {
      return weight.is_same(other.weight) && versions == other.versions;
    }
  };
  /// A or B in another dtype.
  struct Cast {
    at::Tensor tensor;
    uint32_t version = 0;  ///< of the tensor that it was made from
  };
  Origin origin(const at::Tensor& weight_OI) const;
  bool drops() const;
  at::Tensor drop(const at::Tensor& x) const;
  bool multiplies_merged(const LinearWeights& base) const;
  at::Tensor adapt(const at::Tensor& x, const LinearWeights& base, const at::Tensor& result) const;
  at::Tensor adapt_fused(const at::Tensor& x, const LinearWeights& base,
                         const at::Tensor& result) const;
  at::Tensor cast(const at::Tensor& tensor, Cast& kept, at::ScalarType dtype) const;
  const at::Tensor& weight_norm_O(const LinearWeights& base) const;
  at::Tensor merged_weight_OI(const at::Tensor& weight_OI) const;

  std::string module_;
  LoraSettings options_;
  LoraTensors tensors_;
  std::shared_ptr<const LoraDropout> dropout_;
  bool keeps_merged_;
  /// Cached between two changes of the adapter, because every token of a rollout needs them.
  mutable at::Tensor norm_O_, merged_OI_;
  mutable Origin norm_origin_, merged_origin_;
  mutable Cast cast_a_, cast_b_;
};

}  // namespace rematch
