#include "assembly/session.h"

#include <fmt/core.h>

#include <vector>

#include "assembly/adapter_setup.h"
#include "assembly/long_samples.h"
#include "assembly/sample_pixels.h"
#include "assembly/session_checks.h"
#include "assembly/vllm_setup.h"
#include "base/error.h"
#include "checkpoint/model_dir.h"
#include "ranks/device.h"
#include "model/adapter.h"
#include "model/families/family.h"
#include "model/patch_fit.h"
#include "model/row.h"
#include "nn/attention_choice.h"
#include "rollout/engine_factory.h"
#include "text/chat_template.h"

namespace rematch {
namespace {

// Everything that can be rejected without reading a data file (BEHAVIOUR 4.3).
at::Device check_first(const Settings& settings, const std::string& name, const SessionNeeds& needs,
                       const Group& group) {
  const at::Device device = choose_device(name);
  const std::string& backend = settings.backend;
  if (needs.rollouts)
    check_backend_available(
        backend, backend == "vllm" ? vllm_options_of(settings, device, group, needs.engine_ranks)
                                   : VllmOptions{});
  // a file of synonyms is found wrong before the data are read
  LabelMatch::from(settings.match.label_match);
  require_model_dir(settings.model.directory);
  return device;
}

// A sample whose image the processor rejects by its size has no prompt that could be skipped later.
Dataset without_impossible_sizes(const Dataset& dataset, const PatchOptions& patches,
                                 Terminal& terminal) {
  std::vector<int64_t> impossible;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Sample& sample = dataset.samples()[static_cast<size_t>(i)];
    try {
      processed_size({.height_px = sample.height_px, .width_px = sample.width_px}, patches,
                     sample.where);
    } catch (const UserError&) {
      impossible.push_back(i);
    }
  }
  if (impossible.empty() || static_cast<int64_t>(impossible.size()) == dataset.size())
    return dataset;
  terminal.warn(fmt::format(
      "{} of {} samples of {} are left out: the image processor rejects the size of their images",
      impossible.size(), dataset.size(), dataset.path()));
  return dataset.without(impossible);
}

}  // namespace

Dataset load_checked(const std::string& path, std::optional<int64_t> limit, bool single_image,
                     const Tokenizer& tokenizer, const PatchOptions& patches, OnBadSample on_bad,
                     Terminal& terminal) {
  DatasetOptions options{.limit = limit,
                         .require_single_image = single_image,
                         .check_image_files = on_bad == OnBadSample::kStop};
  for (const AddedToken& token : tokenizer.added_tokens())
    options.forbidden_texts.push_back(token.content);
  Dataset dataset = Dataset::load(path, options);
  for (const std::string& text : dataset.warnings()) terminal.warn(text);
  if (const int64_t num_outside = count_images_outside(dataset); num_outside > 0) {
    terminal.warn(fmt::format("{} images of {} lie outside its directory", num_outside, path));
  }
  try {
    if (const int64_t num_deep_grey = dataset.validate_images(patches); num_deep_grey > 0) {
      terminal.warn(fmt::format(
          "{} images of {} are 16-bit grey: every level above 255 becomes white, as in Pillow; "
          "scale them to 8 bits unless serving sees them so too",
          num_deep_grey, path));
    }
  } catch (const UserError& error) {
    if (on_bad == OnBadSample::kStop) throw;
    const Problem& first = error.problems().front();
    terminal.warn(
        fmt::format("{}: at least {} images cannot be used and are skipped, the first {}: {} ({})",
                    path, error.problems().size(), first.where, first.error, first.what));
  }
  return on_bad == OnBadSample::kSkip ? without_impossible_sizes(dataset, patches, terminal)
                                      : dataset;
}

namespace {

/// The tokens that stand for images are the ones that the model replaces.
void check_tokenizer_fits(const Tokenizer& tokenizer, const std::string& directory) {
  const std::optional<TokenId> pad = tokenizer.token_id("<|image_pad|>");
  const int64_t expected = describe_model(directory).image_token_id;
  if (!pad || *pad == expected) return;  // without one, prompts are refused
  throw UserError(
      ErrorKind::kData,
      {.error = "the tokenizer belongs to another model",
       .where = directory + "/tokenizer.json",
       .what = fmt::format("its <|image_pad|> is {}, image_token_id of config.json is {}", *pad,
                           expected),
       .fix = "take tokenizer.json and config.json from the same checkpoint"});
}

}  // namespace

std::unique_ptr<PromptEncoder> make_prompts(const Settings& settings,
                                            std::shared_ptr<const Tokenizer> tokenizer,
                                            const PatchOptions& patches, Terminal& terminal) {
  auto chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::load(settings.model.directory));
  for (const std::string& text : chat_template->warnings()) terminal.warn(text);
  check_tokenizer_fits(*tokenizer, settings.model.directory);
  return std::make_unique<PromptEncoder>(
      std::move(tokenizer), std::move(chat_template),
      PromptEncoder::Options{.texts = settings.prompt,
                             .ordering = settings.data.object_ordering,
                             .merge_size = patches.merge_size});
}

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

}  // namespace

Session::Session(const Settings& settings_, const std::string& device_, const SessionNeeds& needs,
                 const Group& group, Terminal& terminal_)
    : settings(settings_),
      terminal(terminal_),
      device(check_first(settings_, device_, needs, group)),
      tokenizer(Tokenizer::load(settings_.model.directory)),
      coords(CoordVocab::from(*tokenizer, settings_.model.directory)),
      vocab(AnswerVocab::from(*tokenizer, coords, settings_.model.directory)),
      patches(PatchOptions::from_model_dir(settings_.model.directory, settings_.images)),
      prompts(make_prompts(settings_, tokenizer, patches, terminal_)) {
  check_patches_fit(patches, describe_model(settings.model.directory).vision,
                    settings.model.directory);
  const bool single_image = settings.is_stage_2();
  const bool use_adapter = settings.tuner.train_type == TrainType::kLora && needs.train_data;
  if (use_adapter) check_adapter_targets(settings, *tokenizer, coords);
  if (needs.train_data)
    train_data =
        load_checked(settings.data.train_jsonl, settings.data.train_sample_limit, single_image,
                     *tokenizer, patches, settings.data.on_bad_sample, terminal);
  if (needs.val_data)
    val_data = load_checked(*settings.data.val_jsonl, settings.data.val_sample_limit, single_image,
                            *tokenizer, patches, OnBadSample::kStop, terminal);
  const SampleEncoding encoding{.prompts = *prompts, .vocab = vocab, .patches = patches};
  if (train_data) num_long_dropped = settle_long_samples(*train_data, settings, encoding, terminal);
  if (needs.val_truth) settle_long_samples(*val_data, settings, encoding, terminal);
  pixels = std::make_unique<PixelStore>(
      PixelStore::Options{.loader = settings.loader,
                          .batch_images = settings.batches.per_device_train_batch_size,
                          .patches = patches});
  if (needs.rollouts && settings.backend == "vllm") {
    std::vector<const Dataset*> data;
    if (train_data) data.push_back(&*train_data);
    if (val_data) data.push_back(&*val_data);
    vllm = vllm_options_of(settings, device, group, needs.engine_ranks);
    settle_vllm_options(vllm, settings, data, *prompts, patches);
  }
  // Finds samples that are too long for a row before the model is loaded.
  if (train_data && settings.pack.enabled && !settings.is_stage_2())
    stream_packing = make_stream_packing();
  const bool starts_at_base = needs.weights_dir.empty() || use_adapter;
  model = load_model(settings, starts_at_base ? settings.model.directory : needs.weights_dir,
                     device, terminal);
  if (use_adapter)
    attach_adapter(*model, settings, *tokenizer, coords, needs.weights_dir, terminal);
}

Examiner::Options Session::examiner_options() const {
  return {.match = settings.match,
          .labels = LabelMatch::from(settings.match.label_match),
          .ordering = settings.data.object_ordering,
          .seed = settings.seed,
          .patches = patches,
          .backend = settings.backend};
}

std::unique_ptr<StreamPacking> Session::make_stream_packing() const {
  const std::shared_ptr<const TeacherSource> source = teacher(*train_data);
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

std::unique_ptr<TeacherSource> Session::teacher(const Dataset& dataset, int row_tokens,
                                                const InputNoise& noise) const {
  return std::make_unique<TeacherSource>(
      dataset, *prompts, vocab, *pixels, examiner_options(),
      TeacherSource::Caps{.segment_tokens = max_length(), .row_tokens = row_tokens}, noise);
}

}  // namespace rematch
