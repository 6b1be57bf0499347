#pragma once
#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flow/sample.h"
#include "model/families/description.h"
#include "nn/attention.h"
#include "nn/layers.h"

namespace rematch {

// Shapes: T tokens of a row, N vision rows (patches), M = N/merge² visual tokens, H text hidden, V
// vocabulary, S segments.

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;  ///< kFloat or kBFloat16
  at::Device device = at::kCPU;
  /// Forward passes with gradients keep only the inputs of each decoder layer and vision block and
  /// recompute the rest in the backward pass: the same gradients bit for bit, for one more forward
  /// pass. The model must then outlive the graphs.
  bool gradient_checkpointing = false;
};

/// A parameter under its checkpoint name (MODEL 4). `tensor` is a leaf variable; shape and storage
/// never change, only values.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

/// The vision tower's output for a list of images, in order.
struct VisionFeatures {
  at::Tensor embeds_MH;                  ///< replaces the embeddings of the image pads
  std::vector<at::Tensor> deepstack_MH;  ///< added after text layer k at the pads
};

/// The images of a row's pads, in order.
struct VisionInput {
  at::Tensor pixel_values_NC;     ///< [N, 3·temporal·patch²], float32 (cast inside)
  std::vector<GridThw> grid_thw;  ///< patches of each image
};

/// One varlen row: segments side by side.
struct RowInput {
  std::vector<int64_t> token_ids;           ///< [T], image pads expanded
  std::vector<int64_t> segment_lens;        ///< S lengths, sum T
  std::vector<std::vector<GridThw>> grids;  ///< per segment: grids of its images
};

class Adapter;
class HfDir;
class TokenRows;

/// A vision-language model on ATen with autograd, computed from its family's description.
/// Parameters are shared through parameters(): the optimizer updates them in place.
class Model {
 public:
  /// Loads a Hugging Face directory (single or sharded safetensors) of a known family
  /// (model/families/family.h). With device `meta` only headers are read: everything is checked,
  /// and the tensors have shapes but no values.
  /// @throws UserError for a family or a layer that is not implemented, and for a missing or
  /// misshapen tensor, naming it
  static std::shared_ptr<Model> load(const std::string& model_dir, const ModelOptions& options);

  /// A model of shapes alone, without files: for passes that count memory. @param options  with
  /// device `meta`
  static std::shared_ptr<Model> without_weights(ModelDescription description,
                                                const ModelOptions& options);

  const ModelDescription& description() const;
  at::ScalarType dtype() const;
  at::Device device() const;
  bool tied() const;  ///< the head is the embedding (MODEL 1, tie flag rules)

  /// Every parameter of the base model once, in checkpoint order (a tied head is not listed).
  /// requires_grad is set by the caller.
  const std::vector<NamedParameter>& parameters() const;
  /// The parameter of a checkpoint name; undefined tensor when there is none.
  at::Tensor parameter(const std::string& name) const;

  /// The LoRA or DoRA adapter that every forward goes through (model/adapter.h attaches it); null
  /// without one.
  const std::shared_ptr<Adapter>& adapter() const;

  /// Every Linear that can carry an adapter under its module name (checkpoint name without
  /// `.weight`): vision tower, decoder, then the head unless it is the embedding.
  std::vector<std::pair<std::string, LinearWeights>> linears() const;
  /// Routes each named Linear through its layer from now on. @param adapter  owner of the layers
  /// (Adapter::create, Adapter::load)
  /// @param embedding_rows  rows in place of the embedding's, and of the head's when they are tied;
  /// null = none
  void attach(std::shared_ptr<Adapter> adapter,
              const std::map<std::string, std::shared_ptr<const LinearAdapter>>& layers,
              std::shared_ptr<const TokenRows> embedding_rows = nullptr);

  /// Unused tensors of the checkpoint, sorted; worth a warning. Rotary tables and a redundant head
  /// are not among them.
  const std::vector<std::string>& unused_tensors() const;

  /// Vision tower with DeepStack mergers. Cost: one forward over N rows. No images give undefined
  /// tensors.
  /// @throws UserError (data) when rows, grids and the checkpoint's patch size disagree
  VisionFeatures encode_images(const VisionInput& images) const;

  /// mRoPE positions [3, T] (int64, CPU) of a row, separately for each segment (MODEL 5).
  at::Tensor positions_3T(const RowInput& row) const;

  /// Final-normed hidden states of a row, block-causal by segment. `features` may be undefined for
  /// text-only rows.
  at::Tensor forward_TH(const RowInput& row, const VisionFeatures& features) const;

  /// The decoder with the caller's embeddings, positions and attention: training rows and cached
  /// decoding are this one function.
  /// @param embeds_TH     token embeddings with visual rows already in place; any leading shape
  /// [..., H]
  /// @param positions_3T  [3, T] or [3, B, T], matching the leading shape
  /// @param attention     called once per layer with rotated q, k and v
  /// @param visual_idx_M  flat indices (into the flattened leading shape) of visual rows; undefined
  /// when there are none
  at::Tensor decode_TH(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                       AttentionContext& attention, const at::Tensor& visual_idx_M,
                       const std::vector<at::Tensor>& deepstack_MH) const;

  /// Embedding look-up [..] → [.., H].
  at::Tensor embed(const at::Tensor& token_ids) const;

  /// The language-model head, with its adapter if it has one; its weight is the embedding if they
  /// are tied.
  const LinearWeights& head() const;
  /// Language-model head on selected rows: [K, H] → [K, V] in the model's dtype.
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
