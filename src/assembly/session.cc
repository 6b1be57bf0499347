#include "assembly/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "assembly/loss_keys.h"
#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoint/hf_dir.h"
#include "checkpoint/model_dir.h"
#include "checkpoint/peft.h"
#include "dist/device.h"
#include "dist/world.h"
#include "rollout/engine_factory.h"
#include "rollout/vllm/vllm_checks.h"
#include "text/stop_ids.h"
#include "model/adapter.h"
#include "model/families/family.h"
#include "model/row.h"
#include "text/chat_template.h"

namespace rematch {
namespace {

// Cleaning after every window would cost a small model a tenth of its time in page faults.
constexpr int64_t kWindowsPerCleaning = 16;

at::ScalarType dtype_on(const at::Device& device, ModelDtype dtype) {
  if (dtype == ModelDtype::kAuto) return device.is_cuda() ? at::kBFloat16 : at::kFloat;
  return dtype == ModelDtype::kBfloat16 ? at::kBFloat16 : at::kFloat;
}

// Everything that can be rejected without reading a data file (BEHAVIOUR 4.3).
at::Device check_first(const Settings& settings, const std::string& name, const SessionNeeds& needs) {
  const at::Device device = choose_device(name);
  const std::string& backend = settings.backend;
  if (needs.rollouts) check_backend_available(backend, backend == "vllm" ? vllm_options_of(settings, device) : VllmOptions{});
  LabelMatch::from(settings.match.label_match);  // a file of synonyms is found wrong before the data are read
  require_model_dir(settings.model.directory);
  return device;
}

// The longest prompt of the data, and its sample.
class LongestPrompt {
 public:
  int64_t num_tokens = 0;
  std::string where;

  void look_at(const Dataset& dataset, const PromptEncoder& prompts, const PatchOptions& patches) {
    for (const Sample& sample : dataset.samples()) {
      std::vector<GridThw> grids;
      for (const ImageRef& image : image_refs(sample, patches)) grids.push_back(image.grid_thw);
      if (!seen_.insert(std::move(grids)).second) continue;  // prompts differ in the sizes of their images only
      const auto length = static_cast<int64_t>(make_prompt(sample, 0, prompts, patches).token_ids.size());
      if (length <= num_tokens) continue;
      num_tokens = length;
      where = sample.where;
    }
  }

 private:
  std::set<std::vector<GridThw>> seen_;
};

Dataset load_checked(const std::string& path, std::optional<int64_t> limit, bool single_image, const Tokenizer& tokenizer,
                     const PatchOptions& patches) {
  DatasetOptions options{.limit = limit, .require_single_image = single_image};
  for (const AddedToken& token : tokenizer.added_tokens()) options.forbidden_texts.push_back(token.content);
  Dataset dataset = Dataset::load(path, options);
  dataset.validate_images(patches);
  return dataset;
}

std::unique_ptr<PromptEncoder> make_prompts(const Settings& settings, std::shared_ptr<const Tokenizer> tokenizer,
                                            const PatchOptions& patches, Terminal& terminal) {
  auto chat_template = std::make_shared<const ChatTemplate>(ChatTemplate::load(settings.model.directory));
  for (const std::string& text : chat_template->warnings()) terminal.warn(text);
  return std::make_unique<PromptEncoder>(
      std::move(tokenizer), std::move(chat_template),
      PromptEncoder::Options{.texts = settings.prompt, .ordering = settings.data.object_ordering, .merge_size = patches.merge_size});
}

AdapterTargets target_options(const TunerSettings& tuner, const ModelDescription& model) {
  AdapterTargets options{tuner.targets};
  options.is_frozen = [freeze = tuner.freeze, part_of = model.part_of](const std::string& parameter) {
    const ParameterPart part = part_of(parameter);
    return part == ParameterPart::kVit ? freeze.vit : part == ParameterPart::kAligner ? freeze.aligner : freeze.llm;
  };
  return options;
}

}  // namespace

VllmOptions vllm_options_of(const Settings& settings, const at::Device& device) {
  VllmOptions options{settings.vllm};
  options.world_size = world_from_environment().size;
  options.model_dir = settings.model.directory;
  options.on_cpu = !device.is_cuda();
  options.bfloat16 = dtype_on(device, settings.model.dtype) == at::kBFloat16;
  options.log_path = settings.output.run_dir + "/vllm.log";
  return options;
}

Session::Session(const Settings& settings_, const std::string& device_, const SessionNeeds& needs, Terminal& terminal_)
    : settings(settings_),
      terminal(terminal_),
      device(check_first(settings_, device_, needs)),
      tokenizer(Tokenizer::load(settings_.model.directory)),
      coords(CoordVocab::from(*tokenizer, settings_.model.directory)),
      vocab(AnswerVocab::from(*tokenizer, coords, settings_.model.directory)),
      patches(PatchOptions::from_model_dir(settings_.model.directory)),
      prompts(make_prompts(settings_, tokenizer, patches, terminal_)) {
  const bool single_image = settings.is_stage_2();
  const bool use_adapter = settings.tuner.train_type == TrainType::kLora && needs.train_data;
  // A mistyped target is found before data and weights are read; the names are sufficient.
  if (use_adapter) {
    const ModelDescription description = describe_model(settings.model.directory);
    select_targets(description, HfDir::open(settings.model.directory)->names(), target_options(settings.tuner, description));
  }
  if (needs.train_data)
    train_data = load_checked(settings.data.train_jsonl, settings.data.train_sample_limit, single_image, *tokenizer, patches);
  if (needs.val_data) val_data = load_checked(*settings.data.val_jsonl, settings.data.val_sample_limit, single_image, *tokenizer, patches);
  pixels = std::make_unique<PixelStore>(
      PixelStore::Options{.loader = settings.loader, .batch_images = settings.batches.per_device_train_batch_size, .patches = patches});

  VllmOptions vllm;
  if (needs.rollouts && settings.backend == "vllm") {
    vllm = vllm_options_of(settings, device);
    LongestPrompt longest;
    if (train_data) longest.look_at(*train_data, *prompts, patches);
    if (val_data) longest.look_at(*val_data, *prompts, patches);
    settle_model_len(vllm, longest.num_tokens, settings.generation.max_new_tokens, longest.where);
    make_directories(settings.output.run_dir);  // of the engine's log
  }

  // Finds samples that are too long for a row before the model is loaded.
  if (train_data && settings.pack.enabled && !settings.is_stage_2()) stream_packing = make_stream_packing();
  const bool starts_at_base = needs.weights_dir.empty() || use_adapter;
  model = Model::load(
      starts_at_base ? settings.model.directory : needs.weights_dir,
      {.dtype = dtype_on(device, settings.model.dtype), .device = device, .gradient_checkpointing = settings.model.gradient_checkpointing});
  terminal.say(fmt::format("model {} ({}, {})", settings.model.directory, model->dtype() == at::kBFloat16 ? "bfloat16" : "float32",
                           describe_device(device)));
  for (const std::string& name : model->unused_tensors())
    terminal.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
  if (use_adapter) make_adapter(needs.weights_dir);
  if (!needs.rollouts) return;
  const GenerateOptions generate{settings.generation, settings.seed, read_stop_ids(settings.model.directory, *tokenizer)};
  offload = make_offload(needs.make_mover());
  OffloadScope offload_scope(offload.get());
  engine = make_engine(
      settings.backend,
      {.model = model, .tokenizer = tokenizer, .pixels = [this](const ImageRef& image) { return pixels->get(image); }, .vllm = vllm},
      generate);
  offload_scope.restore();
  Examiner::Options options = examiner_options();
  options.stop_ids = generate.stop_ids;
  if (train_data) train_examiner = std::make_unique<Examiner>(*train_data, *prompts, *tokenizer, coords, *pixels, *engine, options);
  if (val_data) val_examiner = std::make_unique<Examiner>(*val_data, *prompts, *tokenizer, coords, *pixels, *engine, options);
}

void Session::make_adapter(const std::string& saved_dir) {
  const TunerSettings& tuner = settings.tuner;
  std::vector<std::string> names;
  int64_t num_base_values = 0, num_values = 0;
  for (const NamedParameter& parameter : model->parameters()) {
    names.push_back(parameter.name);
    num_base_values += parameter.tensor.numel();
  }
  const AdapterSelection selection = select_targets(model->description(), names, target_options(tuner, model->description()));
  const bool all_linear = !tuner.targets.target_regex && tuner.targets.target_modules == std::vector<std::string>{"all-linear"};
  if (selection.num_frozen > 0 && !all_linear) {
    terminal.warn(fmt::format("{} targeted modules get no adapter: their part is frozen (tuner.freeze_*)", selection.num_frozen));
  }
  const auto adapter =
      Adapter::create(*model, selection, {.lora = {tuner.lora}, .seed = settings.seed, .base_model = settings.model.directory});
  if (!saved_dir.empty()) adapter->set_values(read_peft_adapter(saved_dir), saved_dir);
  for (const NamedParameter& parameter : adapter->parameters()) num_values += parameter.tensor.numel();
  terminal.say(fmt::format("{} of rank {} on {} Linear layers: {} values are trained, {:.2f} % of the base model's {}",
                           tuner.lora.use_dora ? "DoRA" : "LoRA", tuner.lora.rank, selection.modules.size(), num_values,
                           100.0 * static_cast<double>(num_values) / static_cast<double>(num_base_values), num_base_values));
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
  const StreamSamples samples{.num_samples = train_data->size(),
                              .encoded_len = [source](int64_t sample_idx, int64_t epoch) { return source->encoded_len(sample_idx, epoch); },
                              .vary_by_epoch = source->lengths_vary_by_epoch()};
  return std::make_unique<StreamPacking>(samples, StreamOptions{.pack = settings.pack, .packing_length = max_length()}, terminal);
}

std::unique_ptr<Offload> Session::make_offload(std::unique_ptr<TensorMover> mover) const {
  if (!settings.offload.moves_model() && !settings.offload.moves_optimizer()) return nullptr;
  if (!rollout_backends().find(settings.backend).holds_own_weights) {
    terminal.say(fmt::format("offload has no effect with rollout_backend {}: it generates with the training weights", settings.backend));
    return nullptr;
  }
  if (!mover->is_on_device(model->parameters().front().tensor)) {
    terminal.say(fmt::format("offload has no effect on {}: training state is already in host memory", device.str()));
    return nullptr;
  }
  const auto parameters = [model = model] {
    std::vector<at::Tensor> tensors;
    for (const NamedParameter& parameter : model->parameters()) tensors.push_back(parameter.tensor);
    if (!model->adapter()) return tensors;
    for (const NamedParameter& parameter : model->adapter()->parameters()) {
      if (!model->parameter(parameter.name).defined()) tensors.push_back(parameter.tensor);  // the others belong to the model
    }
    return tensors;
  };
  const auto warn = [&terminal = terminal](const std::string& text) { terminal.warn(text); };
  return std::make_unique<Offload>(Offload::Options{.settings = settings.offload, .warn = warn}, parameters, std::move(mover));
}

int Session::max_length() const { return static_cast<int>(settings.model.global_max_length.value_or(0)); }

RowModel Session::row_model() const {
  // Only a window that is reused has rows that recur.
  const std::shared_ptr<FeatureCache> kept = settings.rollout_buffer.steps_per_window() > 1 ? std::make_shared<FeatureCache>() : nullptr;
  return {.hidden_TH =
              [this, kept](const PackedRow& row) {
                const RowBatch batch = make_row(row, [this](const ImageRef& image) { return pixels->get(image); }, device);
                return forward_row(*model, batch, kept.get());
              },
          .head = Head::of(model->head()),
          .training_row = [this](int64_t step,
                                 int64_t row_idx) { return model->adapter() ? model->adapter()->training_row(step, row_idx) : nullptr; },
          .window_closed =
              [kept, num_windows = int64_t{0}]() mutable {
                if (kept) kept->clear();
                if (++num_windows % kWindowsPerCleaning == 0) give_back_free_memory();
              }};
}

std::unique_ptr<TeacherSource> Session::teacher(const Dataset& dataset, int row_tokens, const InputNoise& noise) const {
  return std::make_unique<TeacherSource>(dataset, *prompts, vocab, *pixels, examiner_options(),
                                         TeacherSource::Caps{.segment_tokens = max_length(), .row_tokens = row_tokens}, noise);
}

std::unique_ptr<Evaluation> Session::evaluation(bool teacher_forced, std::vector<double> extra_gates) const {
  if (!val_data) return nullptr;
  if (teacher_forced) val_teacher_ = teacher(*val_data);
  const Evaluation::TeacherLoss teacher_loss = [model = row_model(), options = loss_options(settings, coords.ids())](const PackedRow& row) {
    return teacher_forced_loss(model, row, options);
  };
  const int batch_size = std::max(settings.evaluation.per_device_eval_batch_size, val_examiner ? settings.generation.batch_size : 1);
  return std::make_unique<Evaluation>(
      val_examiner.get(), engine.get(), val_teacher_.get(), teacher_loss, val_data->size(),
      Evaluation::Options{
          .settings = settings.evaluation, .batch_size = batch_size, .extra_gates = std::move(extra_gates), .offload = offload.get()});
}

}  // namespace rematch
