#include "tools/plan/parameters.h"

#include <algorithm>
#include <memory>

#include "model/adapter_targets.h"
#include "model/model.h"
#include "model/nn/block_weights.h"
#include "model/packed_linears.h"

namespace rematch {
namespace {

// Values of the token rows (embedding and head) that an adapter trains. There is no tokenizer here:
// every entry except `coord_tokens` counts as one token.
int64_t num_token_row_values(const ModelDescription& model, const AdapterTargetSettings& targets) {
  int64_t num_tokens = 0;
  for (const std::string& entry : targets.trainable_token_indices)
    num_tokens += entry == "coord_tokens" ? 1000 : 1;
  return num_tokens * model.text.hidden_size * (model.tie_word_embeddings ? 1 : 2);
}

// Finds the values of the largest block.
class LargestBlock : public BlockWeights {
 public:
  size_t hold(const std::vector<at::Tensor>& tensors, const Read&) override {
    int64_t size = 0;
    for (const at::Tensor& tensor : tensors) size += tensor.numel();
    num_values = std::max(num_values, size);
    return 0;
  }
  void need(size_t) override {}
  void meet() override {}
  int64_t num_values = 0;
};

// Adds up the trained values of parameters and adapters.
struct Trained {
  const ModelDescription& model;
  TrainedParameters sums;

  void add(const std::string& name, int64_t num_values, int64_t& all) {
    const bool is_text = model.part_of(name) == ParameterPart::kLlm;
    all += num_values;
    if (is_text) sums.num_text += num_values;
    sums.reaches_mergers |= !is_text;
  }
  void add_packed(const ParameterSize& parameter) {
    sums.num_packed += parameter.num_values;
    sums.packed_bytes += parameter.packed_bytes;
    sums.largest_packed = std::max(sums.largest_packed, parameter.num_values);
  }
  void add_full(const ParameterSize& parameter) {
    sums.full.insert(parameter.name);
    add(parameter.name, parameter.num_values, sums.num_full);
    const bool is_embedding = parameter.name == model.text.embedding + ".weight";
    sums.trains_embedding |= is_embedding;
    sums.trains_head |= parameter.name == model.text.head.module + ".weight" ||
                        (is_embedding && model.tie_word_embeddings);
  }
  /// Adds up what ranks can share, once all trained parameters are known.
  void share(const std::vector<ParameterSize>& parameters, bool shares_tables) {
    int64_t layer = 0, largest = 0;
    for (const ParameterSize& parameter : parameters) {
      const std::string module = module_of(parameter.name);
      const bool is_table = module == model.text.embedding || module == model.text.head.module;
      if (is_table ? !shares_tables || sums.full.contains(parameter.name) ||
                         sums.adapted.contains(module)
                   : parameter.largest_block == 0)
        continue;
      sums.num_in_blocks += parameter.num_values;
      layer = std::max(layer, parameter.largest_block);
      largest = std::max({largest, layer, parameter.num_values});
    }
    sums.num_whole = layer + largest;
  }
};

}  // namespace

std::vector<ParameterSize> parameter_sizes(const ModelDescription& model,
                                           const std::optional<FourBitSettings>& four_bit) {
  const auto blocks = std::make_shared<LargestBlock>();
  const auto shapes =
      Model::without_weights(model, {.device = at::kMeta, .four_bit = four_bit, .blocks = blocks});
  std::vector<ParameterSize> sizes;
  for (const NamedParameter& parameter : shapes->parameters())
    sizes.push_back({parameter.name, parameter.tensor.numel(),
                     parameter.packed ? parameter.packed->num_bytes() : 0,
                     parameter.need ? blocks->num_values : 0});
  return sizes;
}

TrainedParameters trained_parameters(const ModelDescription& model, const TunerSettings& tuner,
                                     const std::optional<FourBitSettings>& four_bit) {
  Trained trained{model, {}};
  const auto parameters = parameter_sizes(model, four_bit);
  ParameterCounts& counts = trained.sums.counts;
  std::set<std::string> packed;
  for (const ParameterSize& parameter : parameters) {
    counts.total += parameter.num_values;
    if (parameter.packed_bytes > 0) {
      packed.insert(parameter.name);
      trained.add_packed(parameter);
    }
    (model.part_of(parameter.name) == ParameterPart::kLlm ? counts.text : counts.vision) +=
        parameter.num_values;
  }
  AdapterTargets targets{tuner.targets};
  targets.is_frozen = frozen_parameters(model, tuner.freeze);
  if (tuner.train_type == TrainType::kFull) {
    for (const ParameterSize& parameter : parameters) {
      if (!targets.is_frozen(parameter.name)) trained.add_full(parameter);
    }
    return trained.sums;
  }
  Strings names;
  for (const ParameterSize& parameter : parameters) names.push_back(parameter.name);
  const AdapterSelection selection = select_targets(model, names, targets);
  trained.sums.adapted = {selection.modules.begin(), selection.modules.end()};
  for (const LinearDescription& linear : model.linears()) {
    if (trained.sums.adapted.count(linear.module) == 0) continue;
    const int64_t num_values = tuner.lora.rank * (linear.num_inputs + linear.num_outputs) +
                               (tuner.lora.use_dora ? linear.num_outputs : 0);
    trained.add(linear.module, num_values, trained.sums.num_adapter);
    if (packed.count(linear.module + ".weight") == 0)
      trained.sums.num_adapted += linear.num_inputs * linear.num_outputs;
  }
  trained.add(model.text.embedding, num_token_row_values(model, tuner.targets),
              trained.sums.num_adapter);
  for (const ParameterSize& parameter : parameters) {
    if (!contains(selection.saved_parameters, parameter.name)) continue;
    if (parameter.packed_bytes > 0)
      refuse_packed_in_full(parameter.name, ErrorKind::kConfig, "tuner.modules_to_save");
    trained.add_full(parameter);
  }
  trained.share(parameters, tuner.targets.trainable_token_indices.empty());
  return trained.sums;
}

}  // namespace rematch
