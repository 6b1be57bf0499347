#pragma once
#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nn/layers.h"
#include "settings/tuner.h"

namespace rematch {

// LoRA and DoRA on one Linear, as PEFT computes them (MODEL 9). Shapes: r rank, I input width, O
// output width.

/// An adapter's settings, and those found only in saved adapters.
struct LoraOptions : LoraSettings {
  bool use_rslora = false;  ///< scales by alpha / √rank
  /// The factor of B·A.
  double scaling() const;
};

/// The trained tensors of one adapted Linear: float32 whatever the base model's dtype, leaves with
/// gradient.
struct LoraTensors {
  at::Tensor a_rI;
  at::Tensor b_Or;
  at::Tensor magnitude_O;  ///< DoRA only, else undefined
};

/// A fresh adapter: A uniform in ±1/√I (Kaiming, a = √5) from counter-based randomness, B zero,
/// magnitude the row norms of the weight. With a bfloat16 base A and magnitude are rounded to
/// bfloat16, as PEFT does.
/// @param weight_OI  of the base. @param module  its name; with `seed` the key of A
LoraTensors initial_lora(const at::Tensor& weight_OI, const LoraOptions& options,
                         const std::string& module, uint64_t seed);

/// The weight of a plain Linear that is equivalent to base and adapter together (PEFT's merge):
/// computed in float32, rounded once to the base's dtype. The base is not changed. Cost: one
/// product of B and A, in slices of rows.
at::Tensor merged_lora_weight(const at::Tensor& weight_OI, const LoraTensors& tensors,
                              double scaling);

/// The dropout state of adapters; shared by all of a model's. Masks depend only on this state and
/// the name of the module, so a repeated or recomputed forward pass drops the same inputs.
struct LoraDropout {
  bool active = false;   ///< between the forward and the end of the backward pass of a training row
  uint64_t row_key = 0;  ///< of the training row: seed, optimizer step, row
  /// For tests: the mask (1 = keep) of a module's input instead of the drawn one. @param sizes  of
  /// the input
  std::function<at::Tensor(const std::string& module, at::IntArrayRef sizes)> mask;
};

/// The mask of a training row for one module: true with probability 1 − dropout. The same bits on
/// every device.
at::Tensor dropout_mask(uint64_t key, at::IntArrayRef sizes, double dropout, at::Device device);

/// A Linear with its adapter.
class LoraLinear : public LinearAdapter {
 public:
  LoraLinear(std::string module, const LoraOptions& options, LoraTensors tensors,
             std::shared_ptr<const LoraDropout> dropout);

  /// LoRA: base + s·B(A(drop(x))). DoRA: base + (m/n − 1)·base′ + (m/n)·s·B(A(x)), n the detached
  /// row norm of W + s·BA and base′ the base output without its bias; with active dropout both see
  /// drop(x). The adapter computes in float32, the result has the base's dtype. Without gradients
  /// and outside training rows: a plain Linear of the merged weight, which is kept in a separate
  /// tensor until the next pass with gradients. The base weight is never written.
  at::Tensor forward(const at::Tensor& x, const LinearWeights& base) const override;
  std::vector<at::Tensor> parameters() const override;

  const std::string& module() const { return module_; }
  const LoraTensors& tensors() const { return tensors_; }
  double scaling() const { return options_.scaling(); }

 private:
  /// The inputs from which a cached value was computed.
  struct Origin {
    at::Tensor weight;
    std::array<uint32_t, 4> versions{};  ///< of weight, A, B and magnitude
    bool operator==(const Origin& other) const {
      return weight.is_same(other.weight) && versions == other.versions;
    }
  };
  Origin origin(const at::Tensor& weight_OI) const;
  at::Tensor drop(const at::Tensor& x) const;
  const at::Tensor& weight_norm_O(const at::Tensor& weight_OI) const;
  const at::Tensor& merged_weight_OI(const at::Tensor& weight_OI) const;

  std::string module_;
  LoraOptions options_;
  LoraTensors tensors_;
  std::shared_ptr<const LoraDropout> dropout_;
  /// Computed once between two changes of the adapter; otherwise every token of a rollout would pay
  /// for it.
  mutable at::Tensor norm_O_, merged_OI_;
  mutable Origin norm_origin_, merged_origin_;
};

}  // namespace rematch
