#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "base/settings/model.h"
#include "model/delta_layer.h"
#include "model/layer_source.h"
#include "model/nn/attention.h"
#include "model/nn/layers.h"
#include "model/nn/rope.h"

namespace rematch {

struct DecoderLayer {
  at::Tensor mixer_norm, mlp_norm;
  LinearWeights q, k, v, o;   ///< of attention
  at::Tensor q_norm, k_norm;  ///< undefined = heads have no norm
  DeltaLayer delta;           ///< undefined tensors in a layer with attention
  LinearWeights gate, up, down;
};

/// Visual features for DeepStack and the positions that they are added to.
struct DeepstackInput {
  at::Tensor visual_idx_M;              ///< flat indices, int64; undefined if there are none
  std::vector<at::Tensor> features_MH;  ///< of LayerDescription::deepstack
};

/// A text tower without embedding and head (MODEL 2).
class Decoder {
 public:
  /// Reads layers and final norm from `source`, in checkpoint order.
  /// @param text  must outlive the decoder
  Decoder(const TextDescription& text, LayerSource& source);
  Decoder(const Decoder&) = delete;

  /// @param embeds_TH     [..., H]
  /// @param positions_3T  [3, ...]
  /// @return              hidden states after the final norm, same shape
  at::Tensor forward(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                     AttentionContext& attention, const DeepstackInput& deepstack) const;

  /// Stores only the inputs of each layer, kSelective also the results of its products, and
  /// recomputes the rest in the backward pass (model/nn/checkpoint.h). The decoder must then
  /// outlive its graphs.
  void set_gradient_checkpointing(Checkpointing checkpointing) { checkpointing_ = checkpointing; }

 private:
  struct Layer;  ///< one layer in one pass
  at::Tensor run_checkpointed_layer(const Layer& layer, const at::Tensor& hidden,
                                    const std::shared_ptr<AttentionContext>& context) const;

  const TextDescription& text_;
  std::vector<DecoderLayer> layers_;
  std::vector<LayerSource::Need> needs_;  ///< of the layers
  std::vector<int64_t> cache_indices_;
  at::Tensor final_norm_;
  RopeColumns rope_columns_;
  Checkpointing checkpointing_ = Checkpointing::kOff;
};

}  // namespace rematch
