#include "tools/plan/row_memory.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/lora.h"
#include "model/model.h"
#include "model/nn/device_kernels.h"
#include "tools/plan/meta_memory.h"

namespace rematch {
namespace {

// The memory of a pass is affine in the lengths (except for constants such as the gradient of one
// weight, which matter in short rows), so rows of these lengths predict all others. It is also
// affine in the number of equal layers or groups of layers, so a few of them predict all.
constexpr int64_t kShort = 1024, kLong = 65536, kFewPads = 16, kManyPads = 16384;
constexpr int64_t kImageSide = 4;      ///< merged patches; divides the numbers of pads
constexpr size_t kLayersMeasured = 3;  // of those that are equal
constexpr size_t kLongestPeriod = 8;

// Bytes: saved by the forward pass for the backward pass, and temporary in addition.
struct RowBytes {
  int64_t saved = 0, transient = 0;
};

// Drops the gradients of parameters, which plan.cc counts.
class DropGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  void operator()(const at::Tensor& parameter) override {
    at::Tensor(parameter).mutable_grad().reset();
  }
};

void train(const at::Tensor& leaf) {
  at::Tensor(leaf).set_requires_grad(true);
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<DropGradient>());
}

// The model of a run, with its trained parameters and adapters, as shapes.
class ShapeModel {
 public:
  ShapeModel(const ModelDescription& description, const TrainedParameters& trained,
             const Computation& computation)
      : stands_for_device_(computation.on_gpu),
        options_{.dtype = computation.value_bytes == 4 ? at::kFloat : at::kBFloat16,
                 .device = at::kMeta,
                 .gradient_checkpointing = computation.checkpointing,
                 .four_bit = computation.four_bit},
        reaches_mergers_(trained.reaches_mergers),
        on_gpu_(computation.on_gpu),
        model_(Model::without_weights(description, options_)) {
    for (const NamedParameter& parameter : model_->parameters())
      if (trained.full.count(parameter.name) != 0) train(parameter.tensor);
    adapt(trained, computation.lora);
  }

  RowBytes text(int64_t num_tokens, int64_t num_pads, bool is_packed) const;
  RowBytes vision(int64_t num_pads) const;

 private:
  void adapt(const TrainedParameters& trained, const LoraSettings& lora);
  GridThw grid(int64_t num_pads) const {
    const int64_t merge = model_->description().vision.spatial_merge_size;
    return {1, kImageSide * merge, num_pads / kImageSide * merge};
  }
  at::Tensor shape(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::empty(sizes, at::TensorOptions(dtype).device(at::kMeta));
  }

  MetaStandsForDevice stands_for_device_;
  ModelOptions options_;
  bool reaches_mergers_, on_gpu_;
  std::shared_ptr<Model> model_;
};

void ShapeModel::adapt(const TrainedParameters& trained, const LoraSettings& lora) {
  const auto dropout = std::make_shared<LoraDropout>();
  dropout->active = true;
  std::map<std::string, std::shared_ptr<const LinearAdapter>> layers;
  for (const auto& [module, linear] : model_->linears()) {
    if (trained.adapted.count(module) == 0) continue;
    const int64_t num_outputs = linear.weight.size(0), num_inputs = linear.weight.size(1);
    LoraTensors tensors{shape({lora.rank, num_inputs}, at::kFloat),
                        shape({num_outputs, lora.rank}, at::kFloat),
                        lora.use_dora ? shape({num_outputs}, at::kFloat) : at::Tensor()};
    const auto layer =
        std::make_shared<const LoraLinear>(module, lora, std::move(tensors), dropout);
    for (const at::Tensor& tensor : layer->parameters()) train(tensor);
    layers[module] = layer;
  }
  model_->attach(nullptr, layers);
}

RowBytes ShapeModel::text(int64_t num_tokens, int64_t num_pads, bool is_packed) const {
  const ModelDescription& model = model_->description();
  // A packed row has segments of two lengths, the longer one with the image.
  const int64_t first = is_packed ? num_tokens / 4 : 0;
  RowInput row{.token_ids = std::vector<int64_t>(static_cast<size_t>(num_tokens), 0)};
  std::fill_n(row.token_ids.begin() + first, num_pads, model.image_token_id);
  if (is_packed) {
    row.segment_lens.push_back(first);
    row.grids.emplace_back();
  }
  row.segment_lens.push_back(num_tokens - first);
  row.grids.push_back({grid(num_pads)});
  const auto feature = [&] {
    return shape({num_pads, model.text.hidden_size}, options_.dtype)
        .set_requires_grad(reaches_mergers_);
  };
  VisionFeatures features{.embeds_MH = feature()};
  for (size_t i = 0; i < model.vision.deepstack_mergers.size(); ++i)
    features.deepstack_MH.push_back(feature());
  MetaMemory memory;
  const at::Tensor hidden = model_->forward_TH(row, features), gradient = at::empty_like(hidden);
  const int64_t saved = memory.live();
  torch::autograd::backward({hidden}, {gradient});
  return {saved, memory.peak() - saved};
}

RowBytes ShapeModel::vision(int64_t num_pads) const {
  const VisionDescription& vision = model_->description().vision;
  MetaMemory memory;
  const int64_t num_rows = num_pads * vision.merge_area();
  VisionInput images{.grid_thw = {grid(num_pads)}};
  if (on_gpu_) {
    images.pixel_values_NC =
        shape({num_rows, vision.patch_width() / vision.temporal_patch_size}, at::kByte);
    images.level_values_C256 = shape({vision.in_channels, 256}, at::kFloat);
  } else {
    images.pixel_values_NC = shape({num_rows, vision.patch_width()}, at::kFloat);
  }
  const VisionFeatures features = model_->encode_images(images);
  if (on_gpu_) images = {};  // on the host
  std::vector<at::Tensor> outputs{features.embeds_MH};
  outputs.insert(outputs.end(), features.deepstack_MH.begin(), features.deepstack_MH.end());
  int64_t saved = memory.live();
  for (const at::Tensor& output : outputs) saved -= static_cast<int64_t>(output.nbytes());
  const int64_t num_output_bytes = memory.live() - saved;
  std::erase_if(outputs, [](const at::Tensor& output) { return !output.requires_grad(); });
  if (outputs.empty()) return {saved, memory.peak() - saved};
  memory.restart_peak();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& output : outputs) gradients.push_back(at::empty_like(output));
  torch::autograd::backward(outputs, gradients);
  return {saved, memory.peak() - num_output_bytes - saved};
}

// Equal for layers that take the same memory.
std::vector<int64_t> layer_kind(const LayerDescription& layer, const TrainedParameters& trained) {
  std::vector<int64_t> kind{static_cast<int64_t>(layer.mixer.index()), layer.deepstack};
  std::vector<LinearDescription> linears = layer.mixer_linears();
  linears.insert(linears.end(), {*layer.mlp.gate, layer.mlp.up, layer.mlp.down});
  for (const LinearDescription& linear : linears) {
    kind.push_back(static_cast<int64_t>(trained.adapted.count(linear.module)));
    kind.push_back(static_cast<int64_t>(trained.full.count(linear.module + ".weight")));
  }
  return kind;
}

/// Layers at the end that repeat the ones before them.
struct Repetition {
  size_t period = 1;    ///< layers
  size_t left_out = 0;  ///< periods that can be left out because enough equal ones remain
};

Repetition find_repetition(const TextDescription& text, const TrainedParameters& trained) {
  std::vector<std::vector<int64_t>> kinds;
  for (const LayerDescription& layer : text.layers) kinds.push_back(layer_kind(layer, trained));
  Repetition best;
  for (size_t period = 1; period <= std::min(kinds.size(), kLongestPeriod); ++period) {
    size_t num_alike = period;
    while (num_alike < kinds.size() &&
           kinds[kinds.size() - 1 - num_alike] == kinds[kinds.size() - 1 - num_alike + period])
      ++num_alike;
    const size_t num_periods = num_alike / period,
                 left_out = num_periods - std::min(num_periods, kLayersMeasured);
    if (left_out * period > best.left_out * best.period) best = {period, left_out};
  }
  return best;
}

using Plane = RowMeter::Plane;

// Fits a plane to the memory of rows of three shapes.
Plane fit_plane(int64_t at_short, int64_t at_long, int64_t with_pads) {
  Plane plane{.b = static_cast<double>(at_long - at_short) / (kLong - kShort),
              .c = static_cast<double>(with_pads - at_long) / (kManyPads - kFewPads)};
  plane.a = static_cast<double>(at_short) - plane.b * kShort - plane.c * kFewPads;
  return plane;
}

struct TextPlanes {
  Plane saved, transient;
};

TextPlanes measure_text(const ModelDescription& model, const TrainedParameters& trained,
                        const Computation& computation, bool is_packed) {
  const ShapeModel shapes(model, trained, computation);
  const RowBytes at_short = shapes.text(kShort, kFewPads, is_packed),
                 at_long = shapes.text(kLong, kFewPads, is_packed),
                 with_pads = shapes.text(kLong, kManyPads, is_packed);
  return {fit_plane(at_short.saved, at_long.saved, with_pads.saved),
          fit_plane(at_short.transient, at_long.transient, with_pads.transient)};
}

}  // namespace

int64_t RowMeter::Plane::at(int64_t num_tokens, int64_t num_visual_tokens) const {
  const double bytes =
      a + b * static_cast<double>(num_tokens) + c * static_cast<double>(num_visual_tokens);
  return std::max<int64_t>(0, std::llround(bytes));
}

const RowMeter::Measurement& RowMeter::find_or_measure(const ModelDescription& model,
                                                       const TrainedParameters& trained,
                                                       const Computation& computation,
                                                       bool is_packed) {
  for (const Measurement& known : measurements_) {
    if (known.is_packed == is_packed && known.computation == computation &&
        known.trained == trained)
      return known;
  }
  ModelDescription shorter = model;
  std::vector<LayerDescription>& layers = shorter.text.layers;
  const Repetition repetition = find_repetition(model.text, trained);
  layers.resize(layers.size() - repetition.left_out * repetition.period);
  const RowBytes vision = ShapeModel(shorter, trained, computation).vision(kManyPads);
  TextPlanes text = measure_text(shorter, trained, computation, is_packed);
  if (repetition.left_out > 0) {
    layers.resize(layers.size() - repetition.period);
    const Plane less = measure_text(shorter, trained, computation, is_packed).saved;
    const auto times = static_cast<double>(repetition.left_out);
    text.saved.a += times * (text.saved.a - less.a);
    text.saved.b += times * (text.saved.b - less.b);
    text.saved.c += times * (text.saved.c - less.c);
  }
  const auto per_pad = [](int64_t bytes) {
    return Plane{.c = static_cast<double>(bytes) / kManyPads};
  };
  measurements_.push_back({.trained = trained,
                           .computation = computation,
                           .is_packed = is_packed,
                           .text = text.saved,
                           .text_transient = text.transient,
                           .vision = per_pad(vision.saved),
                           .vision_transient = per_pad(vision.transient)});
  return measurements_.back();
}

RowMemory RowMeter::measure(const ModelDescription& model, const TrainedParameters& trained,
                            const Computation& computation, const RowShape& row) {
  const Measurement& found = find_or_measure(model, trained, computation, row.is_packed);
  const int64_t tokens = row.num_tokens, pads = row.num_visual_tokens;
  return {.text = found.text.at(tokens, pads),
          .vision = found.vision.at(tokens, pads),
          .text_transient = found.text_transient.at(tokens, pads),
          .vision_transient = found.vision_transient.at(tokens, pads)};
}

}  // namespace rematch
