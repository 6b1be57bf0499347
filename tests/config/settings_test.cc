// Every honoured key reaches a field: two legal values of it give two different settings.
#include "base/settings/settings.h"

#include <map>
#include <set>

#include "config/support.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

using Overrides = std::vector<std::string>;

/// Keys with a single legal value, or whose legal values mean the same.
const std::set<std::string> kWithoutChoice = {"template.template",
                                              "custom.extra.rollout_matching.match_policy",
                                              "tuner.lora_bias",
                                              "training.optimizer",
                                              "training.fp16",
                                              "custom.emit_norm",
                                              "custom.json_format",
                                              "custom.coord_tokens.enabled",
                                              "custom.val_sample_with_replacement",
                                              kRolloutMatching + ".decode_mode",
                                              kRolloutMatching + ".vllm.mode",
                                              kRolloutMatching + ".vllm.enable_lora"};

/// Other keys that a key needs before it has an effect, by the beginning of its path.
const std::map<std::string, Overrides> kCompany = {
    {"debug.", {"debug.enabled=true"}},
    {"debug.enabled", {"debug.output_dir=elsewhere"}},
    {"training.packing", {"global_max_length=4096"}},
    {"training.eval_strategy", {"custom.val_jsonl=v.jsonl"}},
    {"training.eval_on_start", {"custom.val_jsonl=v.jsonl"}},
    {"training.stop_on_harm", {"custom.val_jsonl=v.jsonl"}},
    {"training.early_stopping_patience", {"custom.val_jsonl=v.jsonl"}},
    {"training.save_strategy", {"custom.val_jsonl=v.jsonl"}},
    {"training.lr_scheduler_kwargs.min_lr", {"training.lr_scheduler_type=cosine_with_min_lr"}},
    {"training.lr_scheduler_kwargs.warmup_lr_rate",
     {"training.lr_scheduler_type=cosine_warmup_with_min_lr",
      "training.lr_scheduler_kwargs.min_lr_rate=0.1"}},
};

Overrides company_of(const std::string& path) {
  const auto exact = kCompany.find(path);
  if (exact != kCompany.end()) return exact->second;
  for (const auto& [beginning, overrides] : kCompany) {
    if (path.rfind(beginning, 0) == 0) return overrides;
  }
  return {};
}

std::vector<std::string> values_of(const KeySpec& spec) {
  if (spec.path == "training.metric_for_best_model")
    return {"eval_runtime", "eval_samples_per_second"};
  if (spec.path == "training.lr_scheduler_type") return {"linear", "cosine"};
  if (!spec.choices.empty()) return spec.choices;
  switch (spec.type) {
    case KeyType::kBool: return {"true", "false"};
    case KeyType::kInteger:
      return spec.in_range(5) ? std::vector<std::string>{"4", "5"}
                              : std::vector<std::string>{"1", "2"};
    case KeyType::kNumber: return {"0.25", "0.5"};
    default: return {"one", "two"};
  }
}

/// True when two of the key's legal values give different settings in that stage.
bool counts(const KeySpec& spec, const std::string& stage) {
  std::vector<Settings> seen;
  for (const std::string& value : values_of(spec)) {
    Overrides overrides = company_of(spec.path);
    if (spec.path != "custom.trainer_variant")
      overrides.push_back("custom.trainer_variant=" + stage);
    overrides.push_back(spec.path + "=" + value);
    try {
      seen.push_back(test::load_set(overrides).settings);
    } catch (const UserError&) {
      continue;  // not legal in this company
    }
  }
  return std::any_of(seen.begin(), seen.end(),
                     [&](const Settings& settings) { return !(settings == seen.front()); });
}

}  // namespace

TEST(Settings, EveryHonouredKeyReachesAField) {
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured || kWithoutChoice.count(spec.path) > 0) continue;
    EXPECT_TRUE(counts(spec, "sft") || counts(spec, "rollout_matching_sft")) << spec.path;
  }
}

}  // namespace rematch
