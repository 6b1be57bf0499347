#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/nn/layers.h"

namespace rematch {

/// Trained rows of an embedding or of a head (PEFT's `trainable_token_indices`). They replace the
/// base's rows, which never change. With tied weights one object serves both. Shapes: K trained
/// rows, V tokens, H hidden.
class TokenRows : public LinearAdapter {
 public:
  /// @param token_ids   K distinct ids below num_tokens
  /// @param rows_KH     float32 leaf on the model's device
  /// @param num_tokens  V, rows of the base
  TokenRows(std::vector<int64_t> token_ids, at::Tensor rows_KH, int64_t num_tokens);

  /// Initial values: the base's rows, float32, with gradient.
  /// @param weight_VH  of the base
  static at::Tensor initial(const at::Tensor& weight_VH, const std::vector<int64_t>& token_ids);

  /// Logits of a head with replaced rows, rounded to the base's dtype as in PEFT.
  at::Tensor forward(const at::Tensor& x, const LinearWeights& base,
                     Results results) const override;
  std::vector<at::Tensor> parameters() const override { return {rows_KH_}; }

  /// Lookup in an embedding with replaced rows.
  /// @param token_ids  int64, any shape.
  /// @param pad  id without gradient; -1 = none
  at::Tensor embed(const at::Tensor& weight_VH, const at::Tensor& token_ids, int64_t pad) const;
  /// A copy of the base's matrix with replaced rows.
  at::Tensor merge(const at::Tensor& weight_VH) const;

 private:
  std::vector<int64_t> token_ids_;
  at::Tensor ids_K_, rows_KH_;
  at::Tensor slot_V_;  ///< trained row of each token; -1 = none
};

}  // namespace rematch
