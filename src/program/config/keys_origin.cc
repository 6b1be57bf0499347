// Keys that files written for the origin bring and that do nothing here: each is ignored or refused
// with one message (docs/contract/ORIGIN_KEYS.md). Of `deepspeed`, the ZeRO stage is read.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "program/config/draft.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

constexpr const char* kNotOurs =
    "it is not part of this program: remove it, or set it to null or false";

/// Keys that share a state and a message; sections count with everything below them.
struct OriginKeys {
  KeyState state;
  const char* paths;  ///< separated by blanks
  const char* note;
};

constexpr OriginKeys kOriginKeys[] = {
    {KeyState::kIgnored, "deepspeed training.deepspeed",
     "only its ZeRO stage is read, as `training.zero_stage`"},
    {KeyState::kIgnored, "model.attn_impl", "device and dtype decide the attention implementation"},
    {KeyState::kIgnored, "tuner.use_swift_lora", "adapters are always saved in PEFT format"},
    {KeyState::kIgnored, "data.dataset data.val_dataset",
     "data comes from `custom.train_jsonl` and `custom.val_jsonl`"},
    {KeyState::kIgnored,
     "data.dataset_num_proc data.dataloader_pin_memory data.dataloader_persistent_workers",
     "native threads read records and images"},
    {KeyState::kIgnored, "training.save_safetensors", "weights are always safetensors"},
    {KeyState::kIgnored, "training.eval_packing", "evaluation is never packed"},
    {KeyState::kIgnored, "custom.coord_tokens.skip_bbox_norm", "coordinates are bins already"},
    {KeyState::kIgnored, "custom.dump_conversation_text custom.dump_conversation_path",
     "use `rematch rollout`, which writes the ids of each prompt"},
    {KeyState::kIgnored, "custom.instability_monitor custom.log_file custom.token_type_metrics",
     "logs are always written, and a non-finite loss always stops the run"},
    {KeyState::kIgnored, "custom.extra.rollout_backend_bench", "benchmarks are separate programs"},
    {KeyState::kIgnored, "custom.extra.rollout_matching.desc_monitor",
     "`rollout/f1_labels` scores the labels; `rematch rollout CONFIG` writes them"},
    {KeyState::kRefused, "training.packing_length",
     "use `global_max_length`, the limit of a segment and of a row"},
    {KeyState::kRefused, "training.packing_allow_single_long",
     "an oversize sample is an error: raise `global_max_length` or shorten the sample"},
    {KeyState::kRefused,
     "custom.visual_kd custom.fusion_config custom.augmentation_curriculum custom.bypass_prob "
     "custom.use_summary custom.summary_ratio",
     kNotOurs},
    {KeyState::kRefused, "custom.augmentation",
     "remove it; `data.augment` has `hflip`, `vflip`, `rot90`, `crop` and `color`"},
    {KeyState::kRefused, "custom.coord_offset",
     "the coordinate-offset adapter is not supported: set `enabled: false`"},
    {KeyState::kRefused, "custom.hard_sample_mining",
     "removed; to train on selected records, put only these into `custom.train_jsonl`"},
    {KeyState::kRefused, "custom.coord_loss custom.coord_expectation_metrics",
     "removed; its successor is `custom.coord_soft_ce_w1`, whose losses are logged"},
    {KeyState::kRefused, "custom.sample_limit",
     "removed; its successors are `custom.train_sample_limit` and `custom.val_sample_limit`"},
    {KeyState::kRefused, "custom.images_per_user_turn", "removed; a record holds one image"},
    {KeyState::kRefused, "custom.rollout_matching", "move it to `custom.extra.rollout_matching`"},
    {KeyState::kRefused, "quantization",
     "remove the section and set `model.load_in_4bit: true`, or choose `model.torch_dtype`"},
    {KeyState::kRefused, "rlhf",
     "RLHF is not supported: remove the section; `custom.trainer_variant: rollout_matching_sft` "
     "selects stage 2"},
    {KeyState::kRefused, "prompts", "use `template.system` and `custom.user_prompt`"},
};

/// DeepSpeed configurations that ms-swift knows by name; offloading is ignored.
constexpr std::pair<const char*, const char*> kZeroNames[] = {
    {"zero0", "0"}, {"zero1", "1"},         {"zero2", "2"},
    {"zero3", "3"}, {"zero2_offload", "2"}, {"zero3_offload", "3"}};

/// The text of the ZeRO stage in a DeepSpeed configuration; "" if it has none.
std::string stage_text(const Json& config) {
  const Json stage = config.is_object()
                         ? config.value(Json::json_pointer("/zero_optimization/stage"), Json())
                         : Json(config.type_name());
  return stage.is_null() ? "" : stage.dump();
}
std::string stage_text(const Node& config) {
  const Node* zero = config.find("zero_optimization");
  const Node* stage = zero == nullptr ? nullptr : zero->find("stage");
  if (config.is_map()) return stage == nullptr || stage->is_null() ? "" : shorten(*stage);
  const std::string& text = config.scalar;
  for (const auto& [name, number] : kZeroNames) {
    if (text == name) return number;
  }
  if (text.starts_with("{")) return stage_text(parse_json(text, config.origin.text()));
  return text.ends_with(".json") ? stage_text(read_json_file(text)) : "unknown";
}

/// Reads the ZeRO stage of a `deepspeed` key; nullopt if it has none.
/// @param node  a name, a file, a DeepSpeed configuration, or {enabled, config: one of these}
/// @throws UserError for a file that cannot be read and for any other value
std::optional<int64_t> read_zero_stage(const Node& node) {
  const Node* config = node.find("config");
  if (config != nullptr && config->is_null()) return std::nullopt;
  const std::string stage = stage_text(config == nullptr ? node : *config);
  if (stage.empty()) return std::nullopt;
  if (stage.size() == 1 && stage >= "0" && stage <= "3") return stage[0] - '0';
  throw config_error(
      {.error = "`deepspeed` has no ZeRO stage",
       .where = node.origin.text(),
       .what = "it is neither zero0, zero1, zero2 or zero3 nor a DeepSpeed configuration "
               "whose `zero_optimization.stage` is a number",
       .fix = "remove it and set `training.zero_stage: 0`, 1, 2 or 3"});
}

}  // namespace

std::vector<KeySpec> origin_keys() {
  std::vector<KeySpec> keys;
  for (const OriginKeys& row : kOriginKeys) {
    for (std::string& path : split(row.paths, ' ')) {
      KeySpec spec = plain_key(std::move(path), KeyType::kAny);
      spec.state = row.state;
      spec.note = row.note;
      keys.push_back(std::move(spec));
    }
  }
  return keys;
}

void apply_deepspeed_rules(Draft& config) {
  const std::string target = "training.zero_stage";
  std::string decided_by = config.is_given(target) ? target : "";
  for (const std::string key : {"deepspeed", "training.deepspeed"}) {
    const Node* node = config.find_written(key);
    if (node == nullptr || is_off(*node)) continue;
    const std::string where = node->origin.text();
    std::optional<int64_t> stage;
    try {
      stage = read_zero_stage(*node);
    } catch (const UserError& error) {
      config.problems.push_back(error.problems().front());
    }
    if (!stage) continue;
    if (decided_by.empty()) {
      config.derive(target, *stage, key);
      decided_by = key;
    } else if (config.integer(target) != *stage) {
      config.problems.push_back(
          {fmt::format("`{}` and `{}` contradict each other", key, decided_by), where,
           fmt::format("ZeRO stage {} here, {} there ({})", *stage, config.integer(target),
                       config.origin(target)),
           "remove one of the two"});
    }
  }
}

}  // namespace rematch
