#include "plan/row_memory.h"

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
#include "plan/meta_memory.h"

namespace rematch {
namespace {

// The memory of a pass is affine in the lengths (except for constants such as the gradient of one
// weight, which matter in short rows), so rows of these lengths predict all others. It is also
// affine in the number of equal layers, so a few of them predict all.
constexpr int64_t kShort = 1024, kLong = 65536, kFewPads = 16, kManyPads = 16384;
constexpr int64_t kImageSide = 4;  ///< merged patches; divides the numbers of pads
constexpr size_t kMostAlike = 3;

// Bytes: kept from the forward to the backward pass, and temporary in addition.
struct Held {
  int64_t kept = 0, passing = 0;
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
      : options_{.dtype = computation.value_bytes == 4 ? at::kFloat : at::kBFloat16,
                 .device = at::kMeta,
                 .gradient_checkpointing = computation.checkpointing},
        reaches_mergers_(trained.reaches_mergers),
        on_gpu_(computation.on_gpu),
        model_(Model::without_weights(description, options_)) {
    for (const NamedParameter& parameter : model_->parameters())
      if (trained.full.count(parameter.name) != 0) train(parameter.tensor);
    adapt(trained, computation.lora);
  }

  Held text(int64_t num_tokens, int64_t num_pads, bool is_packed) const;
  Held vision(int64_t num_pads) const;

 private:
  void adapt(const TrainedParameters& trained, const LoraSettings& lora);
  GridThw grid(int64_t num_pads) const {
    const int64_t merge = model_->description().vision.spatial_merge_size;
    return {1, kImageSide * merge, num_pads / kImageSide * merge};
  }
  at::Tensor shape(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::empty(sizes, at::TensorOptions(dtype).device(at::kMeta));
  }

  ModelOptions options_;
  bool reaches_mergers_, on_gpu_;
  std::shared_ptr<Model> model_;
};

void ShapeModel::adapt(const TrainedParameters& trained, const LoraSettings& lora) {
  const auto dropout = std::make_shared<LoraDropout>();
  dropout->active = true;
  dropout->mask = [this](const std::string&, at::IntArrayRef sizes) {
    return shape(sizes, at::kBool);
  };
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

Held ShapeModel::text(int64_t num_tokens, int64_t num_pads, bool is_packed) const {
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
  const int64_t kept = memory.live();
  torch::autograd::backward({hidden}, {gradient});
  return {kept, memory.peak() - kept};
}

Held ShapeModel::vision(int64_t num_pads) const {
  const VisionDescription& vision = model_->description().vision;
  MetaMemory memory;
  VisionInput images{
      .pixel_values_NC = shape({num_pads * vision.merge_area(), vision.patch_width()}, at::kFloat),
      .grid_thw = {grid(num_pads)}};
  const VisionFeatures features = model_->encode_images(images);
  if (on_gpu_) images.pixel_values_NC.reset();  // on the host
  std::vector<at::Tensor> outputs{features.embeds_MH};
  outputs.insert(outputs.end(), features.deepstack_MH.begin(), features.deepstack_MH.end());
  int64_t kept = memory.live();
  for (const at::Tensor& output : outputs) kept -= static_cast<int64_t>(output.nbytes());
  if (!outputs[0].requires_grad()) return {kept, memory.peak() - kept};
  const int64_t num_output_bytes = memory.live() - kept;
  memory.restart_peak();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& output : outputs) gradients.push_back(at::empty_like(output));
  torch::autograd::backward(outputs, gradients);
  return {kept, memory.peak() - num_output_bytes - kept};
}

// Equal for layers that take the same memory.
std::vector<int64_t> layer_kind(const LayerDescription& layer, const TrainedParameters& trained) {
  std::vector<int64_t> kind{layer.window, layer.deepstack};
  for (const LinearDescription* linear :
       {&layer.q, &layer.k, &layer.v, &layer.o, &*layer.mlp.gate, &layer.mlp.up, &layer.mlp.down}) {
    kind.push_back(static_cast<int64_t>(trained.adapted.count(linear->module)));
    kind.push_back(static_cast<int64_t>(trained.full.count(linear->module + ".weight")));
  }
  return kind;
}

// Number of layers at the end that can be left out because enough equal ones remain.
size_t num_to_leave_out(const TextDescription& text, const TrainedParameters& trained) {
  const auto kind = layer_kind(text.layers.back(), trained);
  const auto other = std::find_if(
      text.layers.rbegin(), text.layers.rend(),
      [&](const LayerDescription& layer) { return layer_kind(layer, trained) != kind; });
  const auto num_alike = static_cast<size_t>(other - text.layers.rbegin());
  return num_alike - std::min(num_alike, kMostAlike);
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
  Plane kept, passing;
};

TextPlanes measure_text(const ModelDescription& model, const TrainedParameters& trained,
                        const Computation& computation, bool is_packed) {
  const ShapeModel shapes(model, trained, computation);
  const Held at_short = shapes.text(kShort, kFewPads, is_packed),
             at_long = shapes.text(kLong, kFewPads, is_packed),
             with_pads = shapes.text(kLong, kManyPads, is_packed);
  return {fit_plane(at_short.kept, at_long.kept, with_pads.kept),
          fit_plane(at_short.passing, at_long.passing, with_pads.passing)};
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
  const size_t num_left_out = num_to_leave_out(model.text, trained);
  layers.resize(layers.size() - num_left_out);
  const Held vision = ShapeModel(shorter, trained, computation).vision(kManyPads);
  TextPlanes text = measure_text(shorter, trained, computation, is_packed);
  if (num_left_out > 0) {
    layers.pop_back();
    const Plane less = measure_text(shorter, trained, computation, is_packed).kept;
    const auto times = static_cast<double>(num_left_out);
    text.kept.a += times * (text.kept.a - less.a);
    text.kept.b += times * (text.kept.b - less.b);
    text.kept.c += times * (text.kept.c - less.c);
  }
  const auto per_pad = [](int64_t bytes) {
    return Plane{.c = static_cast<double>(bytes) / kManyPads};
  };
  measurements_.push_back({.trained = trained,
                           .computation = computation,
                           .is_packed = is_packed,
                           .text = text.kept,
                           .text_passing = text.passing,
                           .vision = per_pad(vision.kept),
                           .vision_passing = per_pad(vision.passing)});
  return measurements_.back();
}

RowMemory RowMeter::measure(const ModelDescription& model, const TrainedParameters& trained,
                            const Computation& computation, const RowShape& row) {
  const Measurement& found = find_or_measure(model, trained, computation, row.is_packed);
  const int64_t tokens = row.num_tokens, pads = row.num_visual_tokens;
  return {.text = found.text.at(tokens, pads),
          .vision = found.vision.at(tokens, pads),
          .text_passing = found.text_passing.at(tokens, pads),
          .vision_passing = found.vision_passing.at(tokens, pads)};
}

}  // namespace rematch
