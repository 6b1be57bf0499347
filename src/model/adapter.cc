#include "model/adapter.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "model/packed_linears.h"

namespace rematch {
namespace {

constexpr uint64_t kRows = 0x726f7773;  // random stream of training rows

const char* const kA = ".lora_A.weight";
const char* const kB = ".lora_B.weight";
const char* const kMagnitude = ".lora_magnitude_vector";

BaseShape get_shapes(const Model& model) {
  return [&model](const std::string& name) -> std::optional<std::vector<int64_t>> {
    const at::Tensor parameter = model.parameter(name);
    if (!parameter.defined()) return std::nullopt;
    return parameter.sizes().vec();
  };
}

void refuse_packed(const Model& model, const std::string& parameter, ErrorKind kind,
                   const std::string& where) {
  const NamedParameter* found = model.find_parameter(parameter);
  if (found != nullptr && found->packed) refuse_packed_in_full(parameter, kind, where);
}

void refuse_shared(const Model& model, const std::string& parameter) {
  const NamedParameter* found = model.find_parameter(parameter);
  if (found == nullptr || !found->need) return;
  throw config_error(
      {.error = fmt::format("{} cannot be trained in full: ranks share it", parameter),
       .where = "tuner.modules_to_save",
       .what = "ZeRO stage 3 shards the frozen weights of all layers",
       .fix = "remove it from modules_to_save, or set `training.zero_stage: 2`"});
}

at::Tensor to_leaf(const at::Tensor& tensor, const at::Device& device) {
  return tensor.to(device).contiguous().set_requires_grad(true);
}

}  // namespace

void Adapter::attach(Model& model, Trained trained, const std::shared_ptr<Adapter>& self) {
  const TextDescription& text = model.description().text;
  for (const NamedParameter& parameter : model.parameters()) {
    const bool is_saved = contains(trained.saved, parameter.name);
    at::Tensor(parameter.tensor).set_requires_grad(is_saved);
    if (is_saved && model.tied() && parameter.name == text.embedding + ".weight") {
      tied_embedding_ = parameter.name;
      tied_head_ = text.head.module + ".weight";
    }
  }
  std::map<std::string, std::shared_ptr<const LinearAdapter>> by_module;
  for (auto& [module, tensors] : trained.layers) {
    const bool is_in_block = static_cast<bool>(model.find_parameter(module + ".weight")->need);
    const auto layer = std::make_shared<const LoraLinear>(module, options_.lora, std::move(tensors),
                                                          dropout_, /*keeps_merged=*/!is_in_block);
    layers_[module] = layer;
    by_module[module] = layer;
    parameters_.push_back({module + kA, layer->tensors().a_rI});
    parameters_.push_back({module + kB, layer->tensors().b_Or});
    if (options_.lora.use_dora)
      parameters_.push_back({module + kMagnitude, layer->tensors().magnitude_O});
  }
  for (auto& [module, rows] : trained.token_rows) {
    const auto tokens =
        std::make_shared<const TokenRows>(rows.token_ids, rows.rows_KH, text.vocab_size);
    token_rows_[module] = tokens;
    if (module != text.embedding) by_module[module] = tokens;
    parameters_.push_back({module + kTokenRows, rows.rows_KH});
  }
  for (const std::string& name : trained.saved)
    parameters_.push_back({name, model.parameter(name)});
  const auto embedding = token_rows_.find(text.embedding);
  model.attach(self, by_module, embedding == token_rows_.end() ? nullptr : embedding->second);
}

std::shared_ptr<Adapter> Adapter::create(Model& model, const AdapterSelection& selection,
                                         const Options& options) {
  REMATCH_CHECK(options.lora.rank >= 1 && !selection.modules.empty(),
                fmt::format("rank {}, {} modules", options.lora.rank, selection.modules.size()));
  const std::string& head = model.description().text.head.module;
  const bool has_head = contains(selection.modules, head);
  if (has_head && options.lora.dropout > 0) {
    // The loss calls the head in chunks, and on some positions twice.
    throw config_error(
        {.error = fmt::format("an adapter on {} cannot have dropout", head),
         .where = "tuner.lora_dropout",
         .what = fmt::format("lora_dropout is {}", options.lora.dropout),
         .fix = fmt::format("set `tuner.lora_dropout: 0`, or remove {} from the targets", head)});
  }
  for (const std::string& name : selection.saved_parameters) {
    refuse_packed(model, name, ErrorKind::kConfig, "tuner.modules_to_save");
    refuse_shared(model, name);
  }
  Trained trained{.layers = {}, .token_rows = {}, .saved = selection.saved_parameters};
  for (const std::string& module : selection.modules) {
    trained.layers.emplace_back(
        module, initial_lora(model.find_parameter(module + ".weight")->values(), options.lora,
                             module, options.seed));
  }
  for (const std::string& module : {model.description().text.embedding, head}) {
    if (selection.token_ids.empty() || (module == head && model.tied())) continue;
    const at::Tensor rows =
        TokenRows::initial(model.parameter(module + ".weight"), selection.token_ids);
    trained.token_rows.emplace_back(module, TokenRowTensors{selection.token_ids, rows});
  }
  std::shared_ptr<Adapter> adapter(new Adapter(options, selection.targets));
  adapter->attach(model, std::move(trained), adapter);
  return adapter;
}

std::shared_ptr<Adapter> Adapter::load(Model& model, const PeftAdapter& files,
                                       const std::string& where, uint64_t seed) {
  const PeftConfig& config = files.config;
  AdapterTensors tensors =
      sort_adapter_tensors(files, model.description(), get_shapes(model), where);
  if (tensors.unties) {
    throw data_error(
        {.error = "the adapter trains embedding and head separately, but the base model ties them",
         .where = where,
         .what = "tied weights are one matrix",
         .fix = "merge the adapter (`rematch merge`), which unties the model"});
  }
  Trained trained;
  for (const auto& [module, weights] : model.linears()) {
    const auto found = tensors.layers.find(module);
    if (found == tensors.layers.end()) continue;
    LoraTensors own{to_leaf(found->second.a_rI, model.device()),
                    to_leaf(found->second.b_Or, model.device()),
                    {}};
    if (config.use_dora) own.magnitude_O = to_leaf(found->second.magnitude_O, model.device());
    trained.layers.emplace_back(module, std::move(own));
  }
  for (auto& [module, rows] : tensors.token_rows) {
    trained.token_rows.emplace_back(
        module, TokenRowTensors{rows.token_ids, to_leaf(rows.rows_KH, model.device())});
  }
  for (const NamedParameter& parameter : model.parameters()) {
    const auto found = tensors.saved.find(parameter.name);
    if (found == tensors.saved.end()) continue;
    refuse_packed(model, parameter.name, ErrorKind::kData, where);
    const at::NoGradGuard no_grad;
    at::Tensor(parameter.tensor).copy_(found->second);
    trained.saved.push_back(parameter.name);
  }
  const Options options{.lora = {.rank = config.rank,
                                 .alpha = config.alpha,
                                 .dropout = config.dropout,
                                 .use_dora = config.use_dora},
                        .seed = seed,
                        .base_model = config.base_model,
                        .base = config.base};
  std::shared_ptr<Adapter> adapter(new Adapter(options, config.targets));
  adapter->attach(model, std::move(trained), adapter);
  return adapter;
}

void Adapter::set_values(const PeftAdapter& files, const std::string& where) {
  std::map<std::string, at::Tensor> values;
  for (const TensorEntry& entry : files.tensors) values[entry.name] = entry.tensor;
  values.erase(tied_head_);
  const auto fail = [&](const std::string& name, std::string what) {
    throw data_error({.error = "the saved adapter does not match this run",
                      .where = where,
                      .what = fmt::format("{}: {}", name, what),
                      .fix = "resume with the base model, rank and targets of the checkpoint"});
  };
  if (files.config.use_dora != options_.lora.use_dora)
    fail("use_dora", fmt::format("{} in the checkpoint", files.config.use_dora));
  if (files.config.alpha != options_.lora.alpha) {
    fail("lora_alpha",
         fmt::format("{} in the checkpoint, {} now", files.config.alpha, options_.lora.alpha));
  }
  const auto token_ids = [](const PeftTargets& targets) {
    std::vector<std::vector<int64_t>> ids;
    for (const PeftTokens& tokens : targets.trainable_tokens) ids.push_back(tokens.token_ids);
    return ids;
  };
  if (token_ids(files.config.targets) != token_ids(targets_))
    fail("trainable_token_indices", "different tokens in the checkpoint");
  for (const NamedParameter& parameter : parameters_) {
    const auto found = values.find(parameter.name);
    if (found == values.end()) fail(parameter.name, "missing from the checkpoint");
    if (found->second.sizes() != parameter.tensor.sizes()) {
      fail(parameter.name,
           fmt::format("{} in the checkpoint, {} now", c10::str(found->second.sizes()),
                       c10::str(parameter.tensor.sizes())));
    }
  }
  if (values.size() != parameters_.size())
    fail("tensors", fmt::format("{} in the checkpoint, {} now", values.size(), parameters_.size()));
  const at::NoGradGuard no_grad;
  for (const NamedParameter& parameter : parameters_)
    at::Tensor(parameter.tensor).copy_(values[parameter.name]);
}

PeftAdapter Adapter::files() const {
  PeftAdapter files;
  const LoraSettings& lora = options_.lora;
  files.config = {.base_model = options_.base_model,
                  .base = options_.base,
                  .rank = lora.rank,
                  .alpha = lora.alpha,
                  .dropout = lora.dropout,
                  .use_dora = lora.use_dora,
                  .targets = targets_};
  for (const NamedParameter& parameter : parameters_) {
    files.tensors.push_back({parameter.name, parameter.tensor.detach()});
    // PEFT stores a tied matrix under both names.
    if (parameter.name == tied_embedding_)
      files.tensors.push_back({tied_head_, parameter.tensor.detach()});
  }
  return files;
}

at::Tensor Adapter::merge(const NamedParameter& parameter) const {
  const auto rows = token_rows_.find(module_of(parameter.name));
  if (rows != token_rows_.end() && parameter.name.ends_with(".weight"))
    return rows->second->merge(parameter.tensor);
  const auto found = layers_.find(module_of(parameter.name));
  const bool is_weight = found != layers_.end() && parameter.name == found->first + ".weight";
  return is_weight
             ? merge_lora(parameter.values(), found->second->tensors(), found->second->scaling())
             : parameter.values();
}

bool Adapter::changes(const NamedParameter& parameter) const {
  const std::string module = module_of(parameter.name);
  return parameter.name == module + ".weight" && layers_.count(module) > 0;
}

RowScope Adapter::training_row(int64_t step, int64_t row) {
  REMATCH_CHECK(!dropout_->active);
  dropout_->row_key = random_key(kRows, options_.seed, step, row);
  return RowScope(std::shared_ptr<bool>(dropout_, &dropout_->active));
}

}  // namespace rematch
