// Rules for batches, learning rates, adapters, the schedule and the name of the run.
#include <fmt/core.h>

#include <algorithm>

#include "base/full_match.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/draft.h"

namespace rematch {
namespace {

void derive_accumulation_steps(Draft& config) {
  const std::string steps = "training.gradient_accumulation_steps";
  const std::string effective = "training.effective_batch_size";
  if (config.is_null(effective)) return;
  const int64_t per_step =
      config.integer("training.per_device_train_batch_size") * config.world_size;
  const int64_t wanted = config.integer(effective);
  const int64_t count = std::max<int64_t>(1, wanted / per_step + (wanted % per_step != 0));
  if (config.is_given(steps)) {
    config.warn(fmt::format("`{}: {}` is not used: `{}: {}` sets it to {}", steps,
                            config.integer(steps), effective, wanted, count),
                steps);
  }
  if (count * per_step != wanted) {
    config.warn(
        fmt::format("`{}: {}` becomes {}: a step has {} of {}{}", effective, wanted,
                    count * per_step,
                    counted(count * config.world_size, "micro-batch", "micro-batches"),
                    counted(per_step / config.world_size, "sample"),
                    config.world_size == 1 ? "" : fmt::format(" over {} ranks", config.world_size)),
        effective);
  }
  config.derive(steps, count,
                fmt::format("{} / (per_device_train_batch_size x {} rank{})", effective,
                            config.world_size, config.world_size == 1 ? "" : "s"));
}

/// A rate that hardly ever learns is legal, but not silently.
void warn_of_learning_rate(Draft& config) {
  constexpr double kHighest = 1e-2, kOfFullTraining = 1e-5;
  const std::string key = "training.learning_rate";
  if (!config.is_given(key)) return;
  const double rate = config.number(key);
  const bool lora = config.text("tuner.train_type") == "lora";
  if (rate > kHighest) {
    config.warn(
        fmt::format("`{}: {}` is far above any usual rate ({}): it destroys a trained model", key,
                    rate, lora ? "1e-4 for an adapter" : "1e-5 for full training"),
        key);
  } else if (lora && rate > 0 && rate <= kOfFullTraining) {
    config.warn(fmt::format("`{}: {}` is a rate for full training: an adapter hardly learns from "
                            "it; leave it out for 1e-4",
                            key, rate),
                key);
  }
}

void apply_learning_rate_rules(Draft& config) {
  const std::string base = "training.learning_rate";
  const bool is_full = config.text("tuner.train_type") == "full";
  if (config.is_null(base))
    config.derive(base, is_full ? 1e-5 : 1e-4,
                  "tuner.train_type: " + config.text("tuner.train_type"));
  warn_of_learning_rate(config);
  for (const auto& [rate, frozen] : {std::pair{"training.vit_lr", "tuner.freeze_vit"},
                                     std::pair{"training.aligner_lr", "tuner.freeze_aligner"}}) {
    if (config.is_null(rate)) {
      config.derive(rate, config.value(base), base);
    } else if (config.boolean(frozen)) {
      config.warn_no_effect(rate, fmt::format("`{}` is true", frozen));
    }
  }
  // A file may keep them for other runs; who types one expects an adapter.
  for (const char* key :
       {"tuner.lora_rank", "tuner.lora_alpha", "tuner.lora_dropout", "tuner.target_modules",
        "tuner.target_regex", "tuner.modules_to_save", "tuner.trainable_token_indices"}) {
    if (is_full && config.is_given(key) && config.origin(key).starts_with("--set"))
      config.warn_no_effect(key, "`tuner.train_type` is full");
  }
  if (is_full && config.boolean("tuner.use_dora"))
    config.warn_no_effect("tuner.use_dora", "`tuner.train_type` is full");
  if (config.boolean("tuner.freeze_llm") && config.boolean("tuner.freeze_vit") &&
      config.boolean("tuner.freeze_aligner")) {
    config.problem("nothing is trainable", "tuner.freeze_llm",
                   "freeze_llm, freeze_vit and freeze_aligner are all true",
                   "set at least one of them to false");
  }
}

void check_adapter_targets(Draft& config) {
  const std::string regex = "tuner.target_regex", modules = "tuner.target_modules";
  if (config.is_null(regex)) return;
  try {
    FullMatch(config.text(regex), config.origin(regex));
  } catch (const UserError& error) {
    config.problems.push_back(error.problems().front());
  }
  if (config.is_given(modules)) config.warn_no_effect(modules, fmt::format("`{}` is given", regex));
}

void check_schedule(Draft& config) {
  const std::string kwargs = "training.lr_scheduler_kwargs.";
  const std::string floor = kwargs + "min_lr", rate = kwargs + "min_lr_rate";
  const std::string type = config.text("training.lr_scheduler_type");
  const bool warms_up = type == "cosine_warmup_with_min_lr";
  const bool with_floor = warms_up || type == "cosine_with_min_lr";
  const bool has_floor = !config.is_null(floor);
  if (with_floor && has_floor == !config.is_null(rate)) {
    config.problem(fmt::format("`lr_scheduler_type: {}` needs either min_lr or min_lr_rate", type),
                   has_floor ? floor : "training.lr_scheduler_type",
                   has_floor ? "both are given" : "neither is given",
                   "set one of them under `training.lr_scheduler_kwargs`");
  }
  for (const auto& [key, is_used] : {std::pair{floor, with_floor},
                                     {rate, with_floor},
                                     {kwargs + "warmup_lr_rate", warms_up},
                                     {kwargs + "num_cycles", type.starts_with("cosine")}}) {
    if (is_used || !config.is_given(key)) continue;
    config.problem(fmt::format("`{}` is not used by this schedule", key), key,
                   fmt::format("lr_scheduler_type is {}", type),
                   "remove it, or choose `cosine_with_min_lr` or `cosine_warmup_with_min_lr`");
  }
}

// Files of an evaluation are named after the run, with up to 50 bytes more, and a file system takes
// 255.
void check_run_name(Draft& config) {
  constexpr size_t kLongest = 200;
  const std::string key = "training.run_name";
  const Node* written = config.find_written(key);
  if (config.is_null(key)) {
    if (written != nullptr)
      config.warn(
          "`training.run_name` is empty: the run writes into `training.output_dir` itself, "
          "among the directories of other runs",
          key);
    return;
  }
  const std::string name = config.text(key);
  if (written != nullptr && name.find_first_not_of(" ./") == name.npos) {
    config.problems.push_back(
        {"`training.run_name` names no directory", written->origin.text(),
         name.empty() ? "it is empty" : fmt::format("it is `{}`", name),
         "give the run a name, as in `run_name: cards-1`: its logs and checkpoints go to "
         "output_dir/run_name"});
    return;
  }
  const Strings parts = split(name, '/');
  if (contains(parts, ".."))
    config.problem("`training.run_name` leaves `training.output_dir`", key, name,
                   "choose a name without `..`");
  for (const std::string& part : parts) {
    if (part.size() <= kLongest) continue;
    config.problem("`training.run_name` is too long for the name of a directory", key,
                   fmt::format("{} bytes, of at most {}", part.size(), kLongest),
                   "choose a shorter name");
  }
}

/// A shell would expand these; here they would name a directory `~`.
void check_output_dir(Draft& config) {
  const std::string key = "training.output_dir", path = config.text(key);
  if (config.is_given(key) &&
      (path.starts_with('~') || path.starts_with('$') || path.find("://") != path.npos))
    config.problem(fmt::format("`{}` is not a path", key), key, path, "write the whole path");
}

}  // namespace

void apply_shard_rules(Draft& config) {
  const std::string key = "training.zero_stage";
  if (config.integer(key) != 3) return;
  if (config.text("tuner.train_type") != "lora") {
    config.problem(
        "ZeRO stage 3 needs an adapter: it shards frozen weights only", key,
        "`tuner.train_type` is full, which trains all of them",
        "set `tuner.train_type: lora`, or `training.zero_stage: 2` (zero2), which shards "
        "optimizer state and gradients");
  }
  const bool evaluates = config.text("training.eval_strategy") != "no";
  const std::string backend = config.text(kRolloutMatching + ".rollout_backend");
  if (backend != "vllm" && (config.is_stage_2() || (evaluates && config.has_rollout_section()))) {
    config.problem(
        "ZeRO stage 3 has rollouts with `vllm` only", key,
        fmt::format("{} by `{}` from whole weights",
                    config.is_stage_2() ? "stage 2 answers" : "evaluations answer", backend),
        fmt::format("set `{}.rollout_backend: vllm`, or `training.zero_stage: 2`",
                    kRolloutMatching));
  }
}

void apply_training_rules(Draft& config) {
  derive_accumulation_steps(config);
  apply_learning_rate_rules(config);
  check_adapter_targets(config);
  check_schedule(config);
  check_run_name(config);
  check_output_dir(config);
}

}  // namespace rematch
