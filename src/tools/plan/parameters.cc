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

// Marks the parameters of blocks.
class MarkedBlocks : public BlockWeights {
 public:
  size_t hold(const std::vector<at::Tensor>&, const Read&) override { return 0; }
  void need(size_t) override {}
  void meet() override {}
};

// Adds up the trained values of parameters and adapters.
struct Trained {
  const ModelDescription& model;
  TrainedParameters sums;

  void add(const std::string& name, int64_t num_values, int64_t TrainedParameters::* all,
           int64_t TrainedParameters::* text) {
    const ParameterPart part = model.part_of(name);
    sums.*all += num_values;
    if (part == ParameterPart::kLlm) sums.*text += num_values;
    sums.reaches_mergers = sums.reaches_mergers || part != ParameterPart::kLlm;
  }
  void add_packed(const ParameterSize& parameter) {
    sums.num_packed += parameter.num_values;
    sums.packed_bytes += parameter.packed_bytes;
    sums.largest_packed = std::max(sums.largest_packed, parameter.num_values);
  }
  void add_full(const ParameterSize& parameter) {
    sums.full.insert(parameter.name);
    add(parameter.name, parameter.num_values, &TrainedParameters::num_full,
        &TrainedParameters::num_full_text);
    const bool is_embedding = parameter.name == model.text.embedding + ".weight";
    sums.trains_embedding = sums.trains_embedding || is_embedding;
    sums.trains_head = sums.trains_head || parameter.name == model.text.head.module + ".weight" ||
                       (is_embedding && model.tie_word_embeddings);
  }
};

}  // namespace

std::vector<ParameterSize> parameter_sizes(const ModelDescription& model,
                                           const std::optional<FourBitSettings>& four_bit) {
  const auto shapes = Model::without_weights(
      model,
      {.device = at::kMeta, .four_bit = four_bit, .blocks = std::make_shared<MarkedBlocks>()});
  std::vector<ParameterSize> sizes;
  for (const NamedParameter& parameter : shapes->parameters())
    sizes.push_back({parameter.name, parameter.tensor.numel(),
                     parameter.packed ? parameter.packed->num_bytes() : 0,
                     static_cast<bool>(parameter.need)});
  return sizes;
}

TrainedParameters trained_parameters(const ModelDescription& model, const TunerSettings& tuner,
                                     const std::optional<FourBitSettings>& four_bit) {
  Trained trained{model, {}};
  const std::vector<ParameterSize> parameters = parameter_sizes(model, four_bit);
  ParameterCounts& counts = trained.sums.counts;
  std::set<std::string> packed;
  for (const ParameterSize& parameter : parameters) {
    counts.total += parameter.num_values;
    if (parameter.is_in_block) trained.sums.num_in_blocks += parameter.num_values;
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
    trained.add(linear.module, num_values, &TrainedParameters::num_adapter,
                &TrainedParameters::num_adapter_text);
    if (packed.count(linear.module + ".weight") == 0)
      trained.sums.num_adapted += linear.num_inputs * linear.num_outputs;
  }
  trained.add(model.text.embedding, num_token_row_values(model, tuner.targets),
              &TrainedParameters::num_adapter, &TrainedParameters::num_adapter_text);
  const std::set<std::string> saved(selection.saved_parameters.begin(),
                                    selection.saved_parameters.end());
  for (const ParameterSize& parameter : parameters) {
    if (saved.count(parameter.name) == 0) continue;
    if (parameter.packed_bytes > 0)
      refuse_packed_in_full(parameter.name, ErrorKind::kConfig, "tuner.modules_to_save");
    trained.add_full(parameter);
  }
  return trained.sums;
}

}  // namespace rematch
