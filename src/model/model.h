#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/model.h"
#include "model/families/description.h"
#include "model/nn/attention.h"
#include "model/nn/block_weights.h"
#include "model/nn/layers.h"

namespace rematch {

// Shapes: T tokens of a row, N vision rows (patches), M = N/merge² visual tokens, H text hidden, V
// vocabulary, S segments.

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;  ///< kFloat or kBFloat16
  at::Device device = at::kCPU;
  /// Forward passes with gradients store only the inputs of each decoder layer and vision block and
  /// recompute the rest in the backward pass: the same gradients bit for bit, at the cost of one
  /// more forward pass. With kSelective decoder layers also store the results of their products:
  /// recomputing these would be most of that cost. The model must then outlive its graphs.
  Checkpointing gradient_checkpointing = Checkpointing::kOff;
  /// Quantise the weights of all Linears but the head while they are loaded, one at a time.
  std::optional<FourBitSettings> four_bit = {};
  /// Hold the weights of decoder layers and vision blocks, which then are frozen, and of an
  /// embedding and a head that an adapter leaves as they are; null = the model holds them.
  std::shared_ptr<BlockWeights> blocks = nullptr;
};

/// A parameter with its checkpoint name (MODEL 4). `tensor` is a leaf with fixed shape and storage.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;  ///< of a packed weight: its shape and dtype, on the meta device
  std::shared_ptr<const FourBitWeight> packed = nullptr;  ///< a weight in four bits
  /// Gives the tensor its values, where ModelOptions::blocks hold it; else empty. Every process
  /// calls it for the same parameters in the same order.
  std::function<void()> need = {};

  /// The values in the model's dtype: a new tensor for a packed weight, else the parameter itself.
  at::Tensor values() const {
    if (need) need();
    return packed ? packed->dequantised(tensor.scalar_type()) : tensor;
  }
  /// The tensors in memory, for comparing weights: all parts of a packed weight.
  std::vector<at::Tensor> stored() const {
    if (need) need();
    return packed ? packed->parts() : std::vector<at::Tensor>{tensor};
  }
};

/// The vision tower's output for a list of images, in order.
struct VisionFeatures {
  at::Tensor embeds_MH;                  ///< replaces the embeddings of the image pads
  std::vector<at::Tensor> deepstack_MH;  ///< added after text layer k at the pads
};

/// The images of a row's pads, in order.
struct VisionInput {
  /// [N, 3·temporal·patch²], float32 (cast inside); or [N, 3·patch²], uint8: grey levels
  at::Tensor pixel_values_NC;
  std::vector<GridThw> grid_thw;  ///< patches of each image
  /// [3, 256], float32: the value of a grey level; defined with levels
  at::Tensor level_values_C256;
};

/// A row: segments side by side.
struct RowInput {
  std::vector<int64_t> token_ids;           ///< [T], image pads expanded
  std::vector<int64_t> segment_lens;        ///< S lengths, sum T
  std::vector<std::vector<GridThw>> grids;  ///< by segment: grids of its images
};

class Adapter;
class HfDir;
class TokenRows;

/// A vision-language model on ATen with autograd, built from its family's description. The
/// optimizer updates parameters() in place.
class Model {
 public:
  /// Loads a Hugging Face directory (single or sharded safetensors) of a known family
  /// (model/families/family.h). With device `meta` reads only headers: everything is checked, and
  /// the tensors have shapes but no values.
  /// @throws UserError for an unknown family, an unsupported layer, and a missing or misshapen
  /// tensor, naming it
  static std::shared_ptr<Model> load(const std::string& model_dir, const ModelOptions& options);

  /// A model with shapes but no files, for passes that measure memory.
  /// @param options  with device `meta`
  static std::shared_ptr<Model> without_weights(ModelDescription description,
                                                const ModelOptions& options);

  const ModelDescription& description() const;
  at::ScalarType dtype() const;
  at::Device device() const;
  const std::shared_ptr<BlockWeights>& blocks() const;  ///< of ModelOptions
  bool tied() const;  ///< true if the head is the embedding (MODEL 1, tie flag rules)

  /// Every parameter of the base model once, in checkpoint order, without a tied head. The caller
  /// sets requires_grad.
  const std::vector<NamedParameter>& parameters() const;
  /// The parameter with a checkpoint name; undefined if there is none.
  at::Tensor parameter(const std::string& name) const;
  /// As parameter(), with the values of a packed weight; null if there is none.
  const NamedParameter* find_parameter(const std::string& name) const;
  /// Linears whose weights are packed in four bits. They cannot be trained, only adapted.
  int64_t num_packed() const;

  /// The LoRA or DoRA adapter that every forward pass applies (model/adapter.h attaches it), or
  /// null.
  const std::shared_ptr<Adapter>& adapter() const;

  /// Every Linear that can have an adapter, by module name (checkpoint name without `.weight`):
  /// vision tower, decoder, then the head unless it is the embedding.
  std::vector<std::pair<std::string, LinearWeights>> linears() const;
  /// Attaches a layer to each named Linear.
  /// @param adapter  owner of the layers (Adapter::create, Adapter::load)
  /// @param embedding_rows  replace rows of the embedding, and of the head if they are tied; null =
  /// none
  void attach(std::shared_ptr<Adapter> adapter,
              const std::map<std::string, std::shared_ptr<const LinearAdapter>>& layers,
              std::shared_ptr<const TokenRows> embedding_rows = nullptr);

  /// Unused tensors of the checkpoint, sorted, for a warning; without rotary tables and a redundant
  /// head.
  const Strings& unused_tensors() const;

  /// Vision tower with DeepStack mergers. Undefined tensors without images. Cost: one forward pass
  /// over N rows.
  /// @throws UserError (data) if rows, grids and the checkpoint's patch size do not match
  VisionFeatures encode_images(const VisionInput& images) const;

  /// mRoPE positions [3, T] (int64, CPU) of a row, by segment (MODEL 5).
  at::Tensor positions_3T(const RowInput& row) const;

  /// Hidden states of a row after the final norm, block-causal by segment. `features` may be
  /// undefined for text-only rows.
  at::Tensor forward_TH(const RowInput& row, const VisionFeatures& features) const;

  /// The decoder with the caller's embeddings, positions and attention, for training and for cached
  /// decoding.
  /// @param embeds_TH     token embeddings with visual features in place; any leading shape [...,
  /// H]
  /// @param positions_3T  [3, T] or [3, B, T], matching the leading shape
  /// @param attention     called once per layer with rotated q and k, and v
  /// @param visual_idx_M  indices of visual features in the flattened leading shape; undefined if
  /// there are none
  at::Tensor decode_TH(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                       AttentionContext& attention, const at::Tensor& visual_idx_M,
                       const std::vector<at::Tensor>& deepstack_MH) const;

  /// Embedding lookup [..] → [.., H].
  at::Tensor embed(const at::Tensor& token_ids) const;

  /// The language-model head with its adapter, if any; if tied, its weight is the embedding.
  const LinearWeights& head() const;
  /// Language-model head on selected positions: [K, H] → [K, V] in the model's dtype.
  at::Tensor head_KV(const at::Tensor& hidden_KH) const;

 private:
  Model();
  /// @param dir  null = no weights
  static std::shared_ptr<Model> make(ModelDescription description, std::shared_ptr<const HfDir> dir,
                                     const ModelOptions& options);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
