#include "assembly/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

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

at::ScalarType dtype_of(const std::string& name, const at::Device& device) {
  if (name == "auto") return device.is_cuda() ? at::kBFloat16 : at::kFloat;
  return name == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

// Everything that can be refused without reading a file of data (BEHAVIOUR 4.3).
at::Device check_first(const Config& config, const std::string& name, const SessionNeeds& needs) {
  const at::Device device = choose_device(name);
  const std::string& backend = config.rollout.backend;
  if (needs.rollouts) check_backend_available(backend, backend == "vllm" ? vllm_options_of(config, device) : VllmOptions{});
  require_model_dir(config.model.directory);
  return device;
}

// The longest prompt of the data, and whose it is.
class LongestPrompt {
 public:
  int64_t num_tokens = 0;
  std::string where;

  void look_at(const Dataset& dataset, const PromptEncoder& prompts, const PatchOptions& patches) {
    for (const Sample& sample : dataset.samples()) {
      std::vector<GridThw> grids;
      for (const ImageRef& image : image_refs(sample, patches)) grids.push_back(image.grid_thw);
      if (!seen_.insert(std::move(grids)).second) continue;  // prompts differ in their pictures' sizes only
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

GenerateOptions generate_options(const Config& config, const std::vector<TokenId>& stop_ids) {
  const RolloutConfig& rollout = config.rollout;
  GenerateOptions options{.max_new_tokens = rollout.max_new_tokens,
                          .temperature = rollout.temperature,
                          .top_p = rollout.top_p,
                          .top_k = rollout.top_k,
                          .repetition_penalty = rollout.repetition_penalty,
                          .seed = config.cadence.seed,
                          .batch_size = rollout.generate_batch_size,
                          .stop_ids = stop_ids};
  const RepeatTerminateConfig& guard = rollout.repeat_terminate;
  options.repeat_terminate = {.enabled = guard.enabled,
                              .min_new_tokens = guard.min_new_tokens,
                              .max_consecutive_token_repeats = guard.max_consecutive_token_repeats,
                              .ngram_size = guard.ngram_size,
                              .ngram_repeats = guard.ngram_repeats,
                              .max_object_keys = guard.max_object_keys.value_or(0)};
  options.native = {.max_num_seqs = rollout.native_max_num_seqs, .kv_cache_gib = rollout.native_kv_cache_gib.value_or(0)};
  return options;
}

std::unique_ptr<PromptEncoder> make_prompts(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, const PatchOptions& patches,
                                            Terminal& terminal) {
  auto chat_template = std::make_shared<const ChatTemplate>(ChatTemplate::load(config.model.directory));
  for (const std::string& text : chat_template->warnings()) terminal.warn(text);
  return std::make_unique<PromptEncoder>(std::move(tokenizer), std::move(chat_template),
                                         PromptEncoder::Options{.system_prompt = config.data.system_prompt,
                                                                .user_prompt = config.data.user_prompt,
                                                                .random_order = config.data.random_object_order,
                                                                .merge_size = patches.merge_size});
}

AdapterTargets target_options(const TunerConfig& tuner, const ModelDescription& model) {
  AdapterTargets options{.target_modules = tuner.target_modules,
                         .target_regex = tuner.target_regex,
                         .modules_to_save = tuner.modules_to_save,
                         .is_frozen = {}};
  options.is_frozen = [tuner, part_of = model.part_of](const std::string& parameter) {
    const ParameterPart part = part_of(parameter);
    return part == ParameterPart::kVit ? tuner.freeze_vit : part == ParameterPart::kAligner ? tuner.freeze_aligner : tuner.freeze_llm;
  };
  return options;
}

}  // namespace

VllmOptions vllm_options_of(const Config& config, const at::Device& device) {
  const VllmConfig& given = config.rollout.vllm;
  VllmOptions options{.python = given.python,
                      .tensor_parallel_size = given.tensor_parallel_size,
                      .world_size = world_from_environment().size,
                      .max_model_len = given.max_model_len.value_or(0),
                      .infer_batch_size = given.infer_batch_size.value_or(0),
                      .sleep_level = given.sleep_level,
                      .model_dir = config.model.directory,
                      .on_cpu = !device.is_cuda(),
                      .bfloat16 = dtype_of(config.model.torch_dtype, device) == at::kBFloat16,
                      .log_path = config.output.run_dir + "/vllm.log"};
  for (const auto& [name, value] : given.engine_args) {
    if (name == "gpu_memory_utilization") {
      options.memory_utilization = std::stod(value);
    } else if (name == "max_num_seqs") {
      options.max_num_seqs = std::stoi(value);
    } else {
      options.engine_args.emplace_back(name, value);
    }
  }
  return options;
}

Session::Session(const Config& config_, const std::string& device_, const SessionNeeds& needs, Terminal& terminal_)
    : config(config_),
      terminal(terminal_),
      device(check_first(config_, device_, needs)),
      tokenizer(Tokenizer::load(config_.model.directory)),
      coords(CoordVocab::from(*tokenizer, config_.model.directory)),
      vocab(AnswerVocab::from(*tokenizer, coords, config_.model.directory)),
      patches(PatchOptions::from_model_dir(config_.model.directory)),
      prompts(make_prompts(config_, tokenizer, patches, terminal_)) {
  const bool single_image = config.is_stage_2();
  const bool use_adapter = config.tuner.use_adapter && needs.train_data;
  // A mistyped target is found before data and weights are read; names are all it takes.
  if (use_adapter) {
    const ModelDescription description = describe_model(config.model.directory);
    select_targets(description, HfDir::open(config.model.directory)->names(), target_options(config.tuner, description));
  }
  if (needs.train_data)
    train_data = load_checked(config.data.train_jsonl, config.data.train_sample_limit, single_image, *tokenizer, patches);
  if (needs.val_data) val_data = load_checked(*config.data.val_jsonl, config.data.val_sample_limit, single_image, *tokenizer, patches);
  pixels = std::make_unique<PixelStore>(PixelStore::Options{.num_workers = config.data.num_workers, .patches = patches});

  VllmOptions vllm;
  if (needs.rollouts && config.rollout.backend == "vllm") {
    vllm = vllm_options_of(config, device);
    LongestPrompt longest;
    if (train_data) longest.look_at(*train_data, *prompts, patches);
    if (val_data) longest.look_at(*val_data, *prompts, patches);
    settle_model_len(vllm, longest.num_tokens, config.rollout.max_new_tokens, longest.where);
    make_directories(config.output.run_dir);  // of the engine's log
  }

  // Finds samples that are too long for a row before the model is loaded.
  if (train_data && config.pack.enabled && !config.is_stage_2()) stream_packing = make_stream_packing();
  const bool starts_at_base = needs.weights_dir.empty() || use_adapter;
  model = Model::load(starts_at_base ? config.model.directory : needs.weights_dir,
                      {.dtype = dtype_of(config.model.torch_dtype, device),
                       .device = device,
                       .gradient_checkpointing = config.optim.gradient_checkpointing});
  terminal.say(fmt::format("model {} ({}, {})", config.model.directory, model->dtype() == at::kBFloat16 ? "bfloat16" : "float32",
                           describe_device(device)));
  for (const std::string& name : model->unused_tensors())
    terminal.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
  if (use_adapter) make_adapter(needs.weights_dir);
  if (!needs.rollouts) return;
  const GenerateOptions generate = generate_options(config, read_stop_ids(config.model.directory, *tokenizer));
  offload = make_offload(needs.make_mover());
  OffloadScope offload_scope(offload.get());
  engine = make_engine(
      config.rollout.backend,
      {.model = model, .tokenizer = tokenizer, .pixels = [this](const ImageRef& image) { return pixels->get(image); }, .vllm = vllm},
      generate);
  offload_scope.restore();
  Examiner::Options options = examiner_options();
  options.stop_ids = generate.stop_ids;
  if (train_data) train_examiner = std::make_unique<Examiner>(*train_data, *prompts, *tokenizer, coords, *pixels, *engine, options);
  if (val_data) val_examiner = std::make_unique<Examiner>(*val_data, *prompts, *tokenizer, coords, *pixels, *engine, options);
}

void Session::make_adapter(const std::string& saved_dir) {
  const TunerConfig& tuner = config.tuner;
  std::vector<std::string> names;
  int64_t num_base_values = 0, num_values = 0;
  for (const NamedParameter& parameter : model->parameters()) {
    names.push_back(parameter.name);
    num_base_values += parameter.tensor.numel();
  }
  const AdapterSelection selection = select_targets(model->description(), names, target_options(tuner, model->description()));
  const bool all_linear = !tuner.target_regex && tuner.target_modules == std::vector<std::string>{"all-linear"};
  if (selection.num_frozen > 0 && !all_linear) {
    terminal.warn(
        fmt::format("{} modules that the targets name get no adapter: their group is frozen (tuner.freeze_*)", selection.num_frozen));
  }
  const LoraOptions lora{.rank = tuner.lora_rank, .alpha = tuner.lora_alpha, .dropout = tuner.lora_dropout, .use_dora = tuner.use_dora};
  const auto adapter =
      Adapter::create(*model, selection, {.lora = lora, .seed = config.cadence.seed, .base_model = config.model.directory});
  if (!saved_dir.empty()) adapter->set_values(read_peft_adapter(saved_dir), saved_dir);
  for (const NamedParameter& parameter : adapter->parameters()) num_values += parameter.tensor.numel();
  terminal.say(fmt::format("{} of rank {} on {} Linear layers: {} values are trained, {:.2f} % of the base model's {}",
                           tuner.use_dora ? "DoRA" : "LoRA", tuner.lora_rank, selection.modules.size(), num_values,
                           100.0 * static_cast<double>(num_values) / static_cast<double>(num_base_values), num_base_values));
}

Examiner::Options Session::examiner_options() const {
  const MatchConfig& match = config.match;
  return {.match = {.candidate_top_k = match.candidate_top_k,
                    .maskiou_gate = match.maskiou_gate,
                    .maskiou_resolution = match.maskiou_resolution,
                    .fp_cost = match.fp_cost,
                    .fn_cost = match.fn_cost},
          .ordering = config.data.random_object_order ? ObjectOrdering::kRandom : ObjectOrdering::kSorted,
          .seed = config.cadence.seed,
          .patches = patches,
          .backend = config.rollout.backend};
}

std::unique_ptr<StreamPacking> Session::make_stream_packing() const {
  const std::shared_ptr<const TeacherSource> source = teacher(*train_data);
  const StreamSamples samples{.num_samples = train_data->size(),
                              .encoded_len = [source](int64_t sample_idx, int64_t epoch) { return source->encoded_len(sample_idx, epoch); },
                              .vary_by_epoch = source->lengths_vary_by_epoch()};
  const StreamOptions options{.selector = packing_selector(config.pack.selector),
                              .packing_length = max_length(),
                              .packing_buffer = config.pack.buffer,
                              .min_fill_ratio = config.pack.min_fill_ratio,
                              .drop_last = config.pack.drop_last};
  return std::make_unique<StreamPacking>(samples, options, terminal);
}

std::unique_ptr<Offload> Session::make_offload(std::unique_ptr<TensorMover> mover) const {
  if (!config.pack.offload_model && !config.pack.offload_optimizer) return nullptr;
  if (!backend_holds_own_weights(config.rollout.backend)) {
    terminal.say(fmt::format("offload has no effect with rollout_backend {}: it generates with the training weights themselves",
                             config.rollout.backend));
    return nullptr;
  }
  if (!mover->is_on_device(model->parameters().front().tensor)) {
    terminal.say(fmt::format("offload has no effect on {}: training state is in host memory already", device.str()));
    return nullptr;
  }
  const auto parameters = [model = model] {
    std::vector<at::Tensor> tensors;
    for (const NamedParameter& parameter : model->parameters()) tensors.push_back(parameter.tensor);
    if (!model->adapter()) return tensors;
    for (const NamedParameter& parameter : model->adapter()->parameters()) {
      if (!model->parameter(parameter.name).defined()) tensors.push_back(parameter.tensor);  // others are the model's own
    }
    return tensors;
  };
  const auto warn = [&terminal = terminal](const std::string& text) { terminal.warn(text); };
  return std::make_unique<Offload>(
      Offload::Options{.model = config.pack.offload_model, .optimizer = config.pack.offload_optimizer, .warn = warn}, parameters,
      std::move(mover));
}

int Session::max_length() const { return static_cast<int>(config.model.global_max_length.value_or(0)); }

LossOptions Session::loss_options() const {
  const LossConfig& loss = config.loss;
  LossOptions options{.settings = {{"soft_ce_weight", loss.soft_ce_weight},
                                   {"w1_weight", loss.w1_weight},
                                   {"gate_weight", loss.gate_weight},
                                   {"temperature_coord", loss.temperature_coord},
                                   {"target_sigma", loss.target_sigma}},
                      .coord_token_ids = coords.ids()};
  if (loss.target_truncate) options.settings["target_truncate"] = *loss.target_truncate;
  return options;
}

RowModel Session::row_model() const {
  // Only a window that is used again has rows that come again.
  const std::shared_ptr<FeatureCache> kept = config.pack.m_steps > 1 ? std::make_shared<FeatureCache>() : nullptr;
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

std::unique_ptr<TeacherSource> Session::teacher(const Dataset& dataset, int row_tokens) const {
  return std::make_unique<TeacherSource>(dataset, *prompts, vocab, *pixels, examiner_options(),
                                         TeacherSource::Caps{.segment_tokens = max_length(), .row_tokens = row_tokens});
}

std::unique_ptr<Evaluation> Session::evaluation(bool teacher_forced, std::vector<double> extra_gates) const {
  if (!val_data) return nullptr;
  if (teacher_forced) val_teacher_ = teacher(*val_data);
  const Evaluation::TeacherLoss teacher_loss = [model = row_model(), options = loss_options()](const PackedRow& row) {
    return teacher_forced_loss(model, row, options);
  };
  const int batch_size = std::max(config.cadence.per_device_eval_batch_size, val_examiner ? config.rollout.generate_batch_size : 1);
  return std::make_unique<Evaluation>(val_examiner.get(), engine.get(), val_teacher_.get(), teacher_loss, val_data->size(),
                                      Evaluation::Options{.batch_size = batch_size,
                                                          .metric_for_best_model = config.cadence.metric_for_best_model,
                                                          .greater_is_better = config.cadence.greater_is_better,
                                                          .extra_gates = std::move(extra_gates),
                                                          .offload = offload.get()});
}

}  // namespace rematch
