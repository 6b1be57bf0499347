#include "assembly/session.h"

#include <fmt/core.h>

#include <vector>

#include "assembly/adapter_setup.h"
#include "assembly/sample_pixels.h"
#include "assembly/vllm_setup.h"
#include "augment/augmentation.h"
#include "model/adapter.h"
#include "model/row.h"
#include "nn/attention_choice.h"
#include "ranks/device.h"
#include "vision/upright.h"

namespace rematch {
namespace {

/// @param directory  of the weights
std::shared_ptr<Model> load_model(const Settings& settings, const std::string& directory,
                                  const at::Device& device, Terminal& terminal) {
  std::shared_ptr<Model> model =
      Model::load(directory, {.dtype = dtype_on(device, settings.model.dtype),
                              .device = device,
                              .gradient_checkpointing = settings.model.gradient_checkpointing});
  terminal.say(fmt::format("model     {} ({}, {})", settings.model.directory,
                           model->dtype() == at::kBFloat16 ? "bfloat16" : "float32",
                           describe_device(device)));
  if (!device.is_cpu()) {
    const ModelDescription& parts = model->description();
    terminal.say(
        "attention: " +
        describe_attention(device, model->dtype(), {parts.text.head_dim, parts.vision.head_dim()}));
  }
  for (const std::string& name : model->unused_tensors())
    terminal.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
  return model;
}

SessionParts build_or_throw(const Settings& settings, const std::string& device,
                            const SessionNeeds& needs, const Group& group, Terminal& terminal) {
  Problems problems(/*collects=*/false);
  const auto vllm_options = [&](const at::Device& on) {
    return make_vllm_options(settings, on, group, needs.engine_ranks);
  };
  return build_session_parts({.settings = settings,
                              .device = device,
                              .needs = needs,
                              .vllm_options = vllm_options,
                              .terminal = terminal},
                             problems);
}

}  // namespace

Session::Session(const Settings& settings_, const std::string& device_, const SessionNeeds& needs,
                 const Group& group, Terminal& terminal_)
    : Session(settings_, build_or_throw(settings_, device_, needs, group, terminal_), needs, group,
              terminal_) {}

Session::Session(const Settings& settings_, SessionParts parts, const SessionNeeds& needs,
                 const Group& group, Terminal& terminal_)
    : settings(settings_),
      terminal(terminal_),
      device(parts.device),
      tokenizer(std::move(parts.tokenizer)),
      format_name(std::move(parts.format_name)),
      format(std::move(parts.format)),
      patches(*std::move(parts.patches)),
      prompts(std::move(parts.prompts)),
      train_data(std::move(parts.train_data)),
      val_data(std::move(parts.val_data)),
      num_long_dropped(parts.num_long_dropped),
      pixels(std::make_unique<PixelStore>(
          PixelStore::Options{.loader = settings_.loader,
                              .batch_images = settings_.batches.per_device_train_batch_size,
                              .patches = patches,
                              .load = needs.upright_images ? load_upright : load_image,
                              .change = change_image})) {
  if (needs.rollouts && settings.backend == "vllm") {
    std::vector<const Dataset*> data;
    if (train_data) data.push_back(&*train_data);
    if (val_data) data.push_back(&*val_data);
    vllm = make_vllm_options(settings, device, group, needs.engine_ranks);
    settle_vllm_options(vllm, settings, data, *prompts, patches);
  }
  // Finds samples that are too long for a row before the model is loaded.
  if (train_data && settings.pack.enabled && !settings.is_stage_2())
    stream_packing = make_stream_packing();

  const bool use_adapter = settings.tuner.train_type == TrainType::kLora && needs.train_data;
  const bool starts_at_base = needs.weights_dir.empty() || use_adapter;
  model = load_model(settings, starts_at_base ? settings.model.directory : needs.weights_dir,
                     device, terminal);
  if (use_adapter) attach_adapter(*model, settings, *format, needs.weights_dir, terminal);
}

RolloutScorer::Options Session::scorer_options() const {
  return {.match = settings.match,
          .labels = LabelMatch::from(settings.match.label_match),
          .ordering = settings.data.object_ordering,
          .seed = settings.seed,
          .patches = patches,
          .backend = settings.backend};
}

RolloutScorer::Options Session::training_options() const {
  RolloutScorer::Options options = scorer_options();
  options.augment = settings.augment;
  return options;
}

std::unique_ptr<StreamPacking> Session::make_stream_packing() const {
  const std::shared_ptr<const TruthSegments> source = training_truth(/*row_tokens=*/0);
  const StreamSamples samples{
      .num_samples = train_data->size(),
      .encoded_len = [source](int64_t sample_idx,
                              int64_t epoch) { return source->encoded_len(sample_idx, epoch); },
      .vary_by_epoch = source->lengths_vary_by_epoch()};
  auto packing = std::make_unique<StreamPacking>(
      samples, StreamOptions{.pack = settings.pack, .packing_length = max_length()},
      [&](int64_t num_measured) {
        terminal.progress({.phase = "measure", .done = num_measured, .total = samples.num_samples});
      });
  terminal.finish_progress();
  terminal.say(packing->start_text());
  return packing;
}

TargetSettings Session::target_settings() const {
  TargetSettings target = settings.target;
  if (!settings.data.answer_format && format->coords() == nullptr) target.policy = "rewrite";
  return target;
}

InputNoise Session::input_noise() const {
  return {.sigma_bins = settings.data.coord_input_noise, .seed = settings.seed};
}

int Session::max_length() const {
  return static_cast<int>(settings.model.global_max_length.value_or(0));
}

RowModel Session::row_model(FeatureCache* kept) const {
  return {
      .hidden_TH =
          [this, kept, get = sample_pixels(*pixels, train_data, val_data)](const PackedRow& row) {
            const RowBatch batch = make_row(row, get);
            return forward_row(*model, batch, kept);
          },
      .head = Head::of(model->head()),
      .training_row =
          [this](int64_t step, int64_t row_idx) {
            return model->adapter() ? model->adapter()->training_row(step, row_idx) : nullptr;
          }};
}

std::unique_ptr<TruthSegments> Session::validation_truth() const {
  return std::make_unique<TruthSegments>(*val_data, *prompts, *format, *pixels, scorer_options(),
                                         TruthSegments::Caps{.segment_tokens = max_length()});
}

std::unique_ptr<TruthSegments> Session::training_truth(int row_tokens) const {
  return std::make_unique<TruthSegments>(
      *train_data, *prompts, *format, *pixels, training_options(),
      TruthSegments::Caps{.segment_tokens = max_length(), .row_tokens = row_tokens}, input_noise());
}

}  // namespace rematch
