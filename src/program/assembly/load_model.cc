#include "program/assembly/load_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "engine/ranks/device.h"
#include "engine/ranks/frozen_shards.h"
#include "engine/ranks/phase.h"
#include "model/adapter.h"
#include "model/adapter_base.h"
#include "model/adapter_targets.h"
#include "model/checkpoint/peft.h"
#include "model/checkpoint/quantisation.h"
#include "model/coord_rows.h"
#include "model/families/family.h"
#include "model/nn/attention_choice.h"
#include "model/packed_linears.h"
#include "program/assembly/inputs_identity.h"
#include "program/assembly/job.h"

namespace rematch {
namespace {

constexpr const char* kCoordTokens = "coord_tokens";

// Tries the text of a token first, since digits may be a token.
int64_t find_token(const std::string& entry, const Tokenizer& tokenizer) {
  if (const std::optional<TokenId> id = tokenizer.token_id(entry)) return *id;
  int64_t id = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), id);
  if (error == std::errc() && end == entry.data() + entry.size() && id >= 0) return id;
  throw config_error({.error = fmt::format("`{}` is not a token", entry),
                      .where = "tuner.trainable_token_indices",
                      .what = "neither `coord_tokens`, nor an id, nor the text of a token",
                      .fix = "write `coord_tokens`, or ids and texts of the model's tokenizer"});
}

/// @param model_dir  directory of the tokenizer, for errors
std::vector<int64_t> token_ids(const Strings& entries, const Tokenizer& tokenizer,
                               const std::string& model_dir) {
  std::set<int64_t> ids;
  for (const std::string& entry : entries) {
    if (entry == kCoordTokens) {
      const CoordVocab coords = CoordVocab::from(tokenizer, model_dir);
      ids.insert(coords.ids().begin(), coords.ids().end());
    } else {
      ids.insert(find_token(entry, tokenizer));
    }
  }
  return {ids.begin(), ids.end()};
}

AdapterSelection select_adapter(const Model& model, const Settings& settings,
                                const Tokenizer& tokenizer) {
  AdapterTargets options{settings.tuner.targets};
  options.token_ids =
      token_ids(options.trainable_token_indices, tokenizer, settings.model.directory);
  options.is_frozen = frozen_parameters(model.description(), settings.tuner.freeze);
  Strings names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return select_targets(model.description(), names, options);
}

void warn_about_fresh_coords(const Model& model, const AdapterSelection& selection,
                             const CoordVocab& coords, Terminal& terminal) {
  const std::vector<int64_t> ids(coords.ids().begin(), coords.ids().end());
  const std::set<int64_t> trained(selection.token_ids.begin(), selection.token_ids.end());
  if (std::ranges::all_of(ids, [&](int64_t id) { return trained.count(id) != 0; })) return;
  const TextDescription& text = model.description().text;
  for (const std::string& name : {text.embedding + ".weight", text.head.module + ".weight"}) {
    const at::Tensor table = model.parameter(name);
    const Strings& saved = selection.saved_parameters;
    if (!table.defined() || contains(saved, name) || !rows_look_untrained(table, ids)) continue;
    terminal.warn(
        fmt::format("the rows of the coord tokens in {} were never trained, and this adapter does "
                    "not train them: set "
                    "`tuner.trainable_token_indices: [{}]`, or train the model in full first",
                    name, kCoordTokens));
    return;
  }
}

/// Attaches the configured adapter to the model. Warns when the rows of coord tokens were never
/// trained, and the adapter does not train them.
/// @param saved_dir  adapter directory with saved values; empty = a fresh adapter
void attach_adapter(Model& model, const Settings& settings, const AnswerFormat& format,
                    const std::string& saved_dir, Terminal& terminal) {
  const TunerSettings& tuner = settings.tuner;
  int64_t num_base_values = 0, num_values = 0;
  for (const NamedParameter& parameter : model.parameters())
    num_base_values += parameter.tensor.numel();
  const AdapterSelection selection = select_adapter(model, settings, format.tokenizer());
  if (format.coords() != nullptr)
    warn_about_fresh_coords(model, selection, *format.coords(), terminal);
  const bool all_linear =
      !tuner.targets.target_regex && tuner.targets.target_modules == Strings{"all-linear"};
  if (selection.num_frozen > 0 && !all_linear) {
    terminal.warn(
        fmt::format("{} targeted modules get no adapter: their part is frozen (tuner.freeze_*)",
                    selection.num_frozen));
  }
  AdapterBase base = describe_base(settings.model.directory);
  const auto adapter = Adapter::create(model, selection,
                                       {.lora = tuner.lora,
                                        .seed = settings.seed,
                                        .base_model = std::move(base.path),
                                        .base = {.weights_hash = std::move(base.weights_hash),
                                                 .config_hash = std::move(base.config_hash),
                                                 .packed = settings.model.quantisation()}});
  if (!saved_dir.empty()) adapter->set_values(read_peft_adapter(saved_dir), saved_dir);
  for (const NamedParameter& parameter : adapter->parameters())
    num_values += parameter.tensor.numel();
  terminal.say(fmt::format(
      "{} of rank {} on {} Linear layers: {} values are trained, {:.2f} % of the base model's {}",
      tuner.lora.use_dora ? "DoRA" : "LoRA", tuner.lora.rank, selection.modules.size(), num_values,
      100.0 * static_cast<double>(num_values) / static_cast<double>(num_base_values),
      num_base_values));
}

/// @param directory  of the weights
std::shared_ptr<Model> load_weights(const Job& job, const std::string& directory) {
  const ModelSettings& settings = job.settings().model;
  const bool shards = job.use == Use::kTrain && job.settings().optim.zero_stage == 3;
  std::shared_ptr<BlockWeights> blocks;
  if (shards && !job.group.is_alone())
    blocks = std::make_shared<FrozenShards>(job.group, job.device);
  std::shared_ptr<Model> model =
      Model::load(directory, {.dtype = dtype_on(job.device, settings.dtype),
                              .device = job.device,
                              .gradient_checkpointing = settings.gradient_checkpointing,
                              .four_bit = settings.quantisation(),
                              .blocks = std::move(blocks)});
  job.terminal.say(fmt::format("model     {} ({}, {})", settings.directory,
                               model->dtype() == at::kBFloat16 ? "bfloat16" : "float32",
                               describe_device(job.device)));
  if (model->num_packed() > 0) {
    job.terminal.say(fmt::format("4 bits    {} of {} Linear layers", model->num_packed(),
                                 model->linears().size()));
  }
  if (job.source.checkpoint.is_adapter) job.terminal.say("adapter   " + job.source.checkpoint.path);
  if (!job.device.is_cpu()) {
    const ModelDescription& parts = model->description();
    job.terminal.say("attention: " +
                     describe_attention(job.device, model->dtype(),
                                        {parts.text.head_dim, parts.vision.head_dim()}));
  }
  for (const std::string& name : model->unused_tensors())
    job.terminal.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
  return model;
}

/// Attaches the adapter that a command asks.
void attach_asked_adapter(Model& model, const Job& job) {
  const std::string& path = job.source.checkpoint.path;
  if (job.settings().backend == "vllm") {
    throw config_error({.error = "vLLM does not answer for an adapter here",
                        .where = "custom.extra.rollout_matching.rollout_backend",
                        .what = path + " is an adapter",
                        .fix = "use `native`, or merge it: rematch merge " + path + " --out DIR"});
  }
  const PeftAdapter adapter = read_peft_adapter(path);
  const std::string note = check_adapter_base({.adapter = adapter,
                                               .adapter_dir = path,
                                               .base_dir = job.settings().model.directory,
                                               .force_base = job.source.force_base});
  if (!note.empty())
    job.source.force_base ? job.terminal.warn(note) : job.terminal.say("note: " + note);
  Adapter::load(model, adapter, path);
}

std::shared_ptr<Model> load_here(const Job& job, const std::string& weights) {
  const Settings& settings = job.settings();
  const bool trains_adapter =
      settings.tuner.train_type == TrainType::kLora && job.use == Use::kTrain;
  const bool starts_at_base = weights.empty() || trains_adapter;
  std::shared_ptr<Model> model =
      load_weights(job, starts_at_base ? settings.model.directory : weights);
  if (trains_adapter) attach_adapter(*model, settings, *job.files.format, weights, job.terminal);
  if (job.source.checkpoint.is_adapter) attach_asked_adapter(*model, job);
  return model;
}

}  // namespace

void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer) {
  const std::shared_ptr<Model> model = Model::load(
      settings.model.directory, {.device = at::kMeta, .four_bit = settings.model.quantisation()});
  for (const std::string& name : select_adapter(*model, settings, tokenizer).saved_parameters) {
    const NamedParameter* parameter = model->find_parameter(name);
    if (parameter != nullptr && parameter->packed)
      refuse_packed_in_full(name, ErrorKind::kConfig, "tuner.modules_to_save");
  }
}

bool is_in_four_bits(const ModelSettings& model) {
  return model.load_in_4bit || stored_quantisation(model.directory);
}

void require_adapter_in_four_bits(const Settings& settings) {
  if (!is_in_four_bits(settings.model)) return;
  const std::string what = settings.model.load_in_4bit ? "model.load_in_4bit is true"
                                                       : "the checkpoint's weights are quantised";
  if (settings.tuner.train_type != TrainType::kLora) {
    throw config_error({.error = "a model in 4 bits cannot be trained in full",
                        .where = "tuner.train_type",
                        .what = what,
                        .fix = "set `tuner.train_type: lora`, or use weights in full precision"});
  }
  if (settings.optim.zero_stage == 3) {
    throw config_error({.error = "ZeRO stage 3 does not shard weights in 4 bits",
                        .where = "training.zero_stage",
                        .what = what,
                        .fix = "set `training.zero_stage: 2`, or use weights in full precision"});
  }
}

std::vector<NamedParameter> all_parameters(const Model& model) {
  std::vector<NamedParameter> parameters = model.parameters();
  if (!model.adapter()) return parameters;
  for (const NamedParameter& parameter : model.adapter()->parameters()) {
    if (!model.parameter(parameter.name).defined()) parameters.push_back(parameter);
  }
  return parameters;
}

std::shared_ptr<Model> load_model(const Job& job, const std::string& weights) {
  std::shared_ptr<Model> model;
  run_phase(job.group, "start", [&] {
    model = load_here(job, weights);
    meet_with_inputs(job, *model);
  });
  return model;
}

}  // namespace rematch
