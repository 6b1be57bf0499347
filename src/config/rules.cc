#include "config/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/full_match.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "config/prompt_file.h"
#include "model/families/family.h"
#include "observe/catalog.h"
#include "settings/loss.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// One run over the values; each rule is a short method.
class CrossRules {
 public:
  CrossRules(Values& values, const RuleContext& context, std::vector<Problem>& problems,
             std::vector<Warning>& warnings)
      : values_(values), context_(context), problems_(problems), warnings_(warnings) {}

  void run() {
    required_keys();
    debug_limits();
    lengths();
    dtype();
    model_directory();
    template_name();
    user_prompt();
    batch();
    learning_rates();
    apply_deepspeed_rules(values_, context_.source.root, problems_);
    adapter_targets();
    schedule();
    packing();
    rollout_buffer();
    offload();
    apply_target_rules(values_, stage_2(), warnings_);
    coord_loss();
    evaluation();
    apply_health_rules(values_, stage_2() || has_rollout_section(), problems_);
    if (variant_is_known()) best_metric();
  }

 private:
  void problem(std::string error, const std::string& key, std::string what, std::string fix) {
    problems_.push_back({std::move(error), values_.where(key), std::move(what), std::move(fix)});
  }
  void warn(std::string text, const std::string& key) {
    warnings_.push_back({std::move(text), values_.where(key)});
  }
  static std::string rollout(const char* name) { return kRolloutMatching + "." + name; }
  bool stage_2() const {
    return !values_.is_null("custom.trainer_variant") &&
           values_.text("custom.trainer_variant") == "rollout_matching_sft";
  }

  bool has_rollout_section() const {
    const Node* section = written(kRolloutMatching);
    return section && !section->is_null();
  }

  /// False when the key holds something that was refused: rules that depend on the stage would only
  /// add noise.
  bool variant_is_known() const {
    const Node* node = written("custom.trainer_variant");
    return !node || node->is_null() || values_.given("custom.trainer_variant");
  }

  const Node* written(const std::string& path) const {
    const Node* node = &context_.source.root;
    for (const std::string& key : split(path, '.')) {
      if (node) node = node->find(key);
    }
    return node;
  }

  void required_keys() {
    for (const KeySpec& spec : schema()) {
      if (!spec.required) continue;
      const Node* node = written(spec.path);
      if (node && !node->is_null() && !(node->is_scalar() && python_strip(node->scalar).empty()))
        continue;
      problems_.push_back({fmt::format("`{}` is required", spec.path),
                           node ? node->origin.text() : context_.config_path,
                           node ? "it is empty" : "neither a file nor --set sets it",
                           fmt::format("add it: {}", spec.help)});
    }
  }

  void debug_limits() {
    if (!values_.boolean("debug.enabled")) return;
    for (const auto& [from, to] :
         {std::pair{"debug.output_dir", "training.output_dir"},
          std::pair{"debug.train_sample_limit", "custom.train_sample_limit"},
          std::pair{"debug.val_sample_limit", "custom.val_sample_limit"}}) {
      if (values_.given(from))
        values_.derive(to, values_.json(from), fmt::format("{} ({})", from, values_.origin(from)));
    }
  }

  void lengths() {
    const std::string cap = "global_max_length";
    const std::vector<std::string> others = {"model.max_model_len", "template.max_length"};
    for (const std::string& other : others) {
      if (values_.is_null(cap) && values_.given(other))
        values_.derive(cap, values_.json(other), other);
    }
    if (values_.is_null(cap)) return;
    for (const std::string& other : others) {
      if (values_.given(other) && values_.integer(other) != values_.integer(cap)) {
        warn(fmt::format("`{}: {}` is not used: `{}: {}` limits segments and rows", other,
                         values_.integer(other), cap, values_.integer(cap)),
             other);
      }
      if (!values_.given(other) || values_.integer(other) != values_.integer(cap))
        values_.derive(other, values_.json(cap), cap);
    }
    const std::string engine = rollout("vllm.max_model_len");
    if (!values_.given(engine)) values_.derive(engine, values_.json(cap), cap);
  }

  void dtype() {
    if (values_.is_null("training.bf16") || !values_.boolean("training.bf16")) return;
    const std::string name = "model.torch_dtype";
    if (values_.given(name) && values_.text(name) == "float32") {
      problem("`training.bf16` and `model.torch_dtype` contradict each other", "training.bf16",
              fmt::format("bf16: true means bfloat16, but torch_dtype is float32 ({})",
                          values_.origin(name)),
              "remove one of the two");
    } else if (!values_.given(name) || values_.text(name) == "auto") {
      values_.derive(name, "bfloat16", "training.bf16");
    }
  }

  static bool looks_like_hub_id(const std::string& text) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() ||
        text.find('/', slash + 1) != std::string::npos)
      return false;
    if (text[0] == '.' || text[0] == '~') return false;
    return text.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") ==
           std::string::npos;
  }

  void model_directory() {
    if (values_.is_null("model.model")) return;
    const std::string name = values_.text("model.model");
    std::error_code ignored;
    const bool has_parent = fs::is_directory(fs::path(name).parent_path(), ignored);
    if (fs::is_directory(name, ignored) || has_parent || !looks_like_hub_id(name)) return;
    const std::string local = name.substr(name.find('/') + 1);
    problem(fmt::format("`model.model: {}` is not a directory", name), "model.model",
            "it looks like a Hugging Face hub id; models are not downloaded",
            fmt::format("run `hf download {} --local-dir {}` and set `model.model: {}`", name,
                        local, local));
  }

  void template_name() {
    const std::string name = values_.text("template.template");
    std::vector<std::string> titles;
    for (const Family& family : families()) {
      if (name == family.model_type) return;
      titles.push_back(fmt::format("`{}` ({})", family.model_type, family.title));
    }
    std::string found = "the model type could not be read from config.json";
    if (!values_.is_null("model.model")) {
      try {
        const Json config = read_json_file(join_path(values_.text("model.model"), "config.json"));
        if (config.is_object() && config.contains("model_type") &&
            config["model_type"].is_string()) {
          found = fmt::format("config.json says model_type {}",
                              config["model_type"].get<std::string>());
        }
      } catch (const UserError&) {
        // The directory is checked elsewhere; here its absence only shortens the message.
      }
    }
    problem(fmt::format("`template.template: {}` is not supported", name), "template.template",
            found,
            fmt::format("set `template.template` to the family of the checkpoint, one of {}",
                        join(titles, ", ")));
  }

  void user_prompt() {
    const std::string key = "custom.user_prompt";
    if (values_.is_null(key)) return;
    const std::string path = values_.text(key);
    if (path.size() < 4 || path.compare(path.size() - 4, 4, ".txt") != 0) return;
    try {
      values_.set(key, read_prompt_file(path), fmt::format("{} ({})", path, values_.origin(key)),
                  true);
    } catch (const UserError& error) {
      const Problem& found = error.problems().front();
      problem(found.error, key, found.what, found.fix);
    }
  }

  void batch() {
    const std::string steps = "training.gradient_accumulation_steps";
    const std::string effective = "training.effective_batch_size";
    if (values_.is_null(effective)) return;
    const int64_t per_step =
        values_.integer("training.per_device_train_batch_size") * context_.world_size;
    const int64_t wanted = values_.integer(effective);
    const int64_t count = std::max<int64_t>(1, wanted / per_step + (wanted % per_step != 0));
    if (values_.given(steps)) {
      warn(fmt::format("`{}: {}` is not used: `{}: {}` sets it to {}", steps,
                       values_.integer(steps), effective, wanted, count),
           steps);
    }
    if (count * per_step != wanted) {
      warn(fmt::format(
               "`{}: {}` becomes {}: a step has {} of {}{}", effective, wanted, count * per_step,
               counted(count * context_.world_size, "micro-batch", "micro-batches"),
               counted(per_step / context_.world_size, "sample"),
               context_.world_size == 1 ? "" : fmt::format(" over {} ranks", context_.world_size)),
           effective);
    }
    values_.derive(steps, count,
                   fmt::format("{} / (per_device_train_batch_size x {} rank{})", effective,
                               context_.world_size, context_.world_size == 1 ? "" : "s"));
  }

  void learning_rates() {
    const std::string base = "training.learning_rate";
    if (values_.is_null(base)) {
      const bool lora = values_.text("tuner.train_type") == "lora";
      values_.derive(base, lora ? 1e-4 : 1e-5,
                     lora ? "tuner.train_type: lora" : "tuner.train_type: full");
    }
    for (const auto& [rate, frozen] : {std::pair{"training.vit_lr", "tuner.freeze_vit"},
                                       std::pair{"training.aligner_lr", "tuner.freeze_aligner"}}) {
      if (values_.is_null(rate)) {
        values_.derive(rate, values_.json(base), base);
      } else if (values_.boolean(frozen)) {
        warn(fmt::format("`{}` has no effect: `{}` is true", rate, frozen), rate);
      }
    }
    if (values_.boolean("tuner.use_dora") && values_.text("tuner.train_type") == "full") {
      warn("`tuner.use_dora` has no effect: `tuner.train_type` is full", "tuner.use_dora");
    }
    if (values_.boolean("tuner.freeze_llm") && values_.boolean("tuner.freeze_vit") &&
        values_.boolean("tuner.freeze_aligner")) {
      problem("nothing is trainable", "tuner.freeze_llm",
              "freeze_llm, freeze_vit and freeze_aligner are all true",
              "set at least one of them to false");
    }
  }

  void adapter_targets() {
    const std::string regex = "tuner.target_regex", modules = "tuner.target_modules";
    if (values_.is_null(regex)) return;
    try {
      FullMatch(values_.text(regex), values_.where(regex));
    } catch (const UserError& error) {
      problems_.push_back(error.problems().front());
    }
    if (values_.given(modules))
      warn(fmt::format("`{}` has no effect: `{}` is given", modules, regex), modules);
  }

  void schedule() {
    const std::string type = values_.text("training.lr_scheduler_type");
    const std::string floor = "training.lr_scheduler_kwargs.min_lr";
    const std::string rate = "training.lr_scheduler_kwargs.min_lr_rate";
    const bool has_floor = !values_.is_null(floor), has_rate = !values_.is_null(rate);
    const bool with_floor = type == "cosine_with_min_lr" || type == "cosine_warmup_with_min_lr";
    if (with_floor && has_floor == has_rate) {
      problem(fmt::format("`lr_scheduler_type: {}` needs either min_lr or min_lr_rate", type),
              has_floor ? floor : "training.lr_scheduler_type",
              has_floor ? "both are given" : "neither is given",
              "set one of them under `training.lr_scheduler_kwargs`");
    }
    for (const std::string& key : {floor, rate}) {
      if (!with_floor && values_.given(key)) unused_kwarg(key, type);
    }
    const std::string warmup = "training.lr_scheduler_kwargs.warmup_lr_rate";
    if (type != "cosine_warmup_with_min_lr" && values_.given(warmup)) unused_kwarg(warmup, type);
    const std::string cycles = "training.lr_scheduler_kwargs.num_cycles";
    if (type.rfind("cosine", 0) != 0 && values_.given(cycles)) unused_kwarg(cycles, type);
  }

  void unused_kwarg(const std::string& key, const std::string& type) {
    problem(fmt::format("`{}` does not belong to this schedule", key), key,
            fmt::format("lr_scheduler_type is {}", type),
            "remove it, or choose `cosine_with_min_lr` or `cosine_warmup_with_min_lr`");
  }

  void packing() {
    const std::string key = "training.packing";
    if (!values_.boolean(key)) return;
    if (values_.is_null("global_max_length")) {
      problem("`training.packing: true` needs `global_max_length`", key, "a packed row has no cap",
              "set `global_max_length`, or `training.packing: false`");
    }
    if (stage_2() && !values_.boolean("training.packing_drop_last")) {
      problem("`training.packing_drop_last: false` is refused in stage 2",
              "training.packing_drop_last",
              "packing is carry-only: no extra steps flush the buffer at the end",
              "set `training.packing_drop_last: true`");
    }
    carry_buffer();
  }

  /// In carry mode every micro-batch joins the buffer at once: one that is larger than the buffer
  /// never fits.
  void carry_buffer() {
    const std::string buffer = "training.packing_buffer",
                      batch = "training.per_device_train_batch_size";
    if (!stage_2() || values_.text(rollout("post_rollout_pack_scope")) != "micro" ||
        values_.integer(batch) <= values_.integer(buffer))
      return;
    problem("`training.packing_buffer` is smaller than a micro-batch", buffer,
            fmt::format("{} segments are inserted together (`{}`), but at most {} may wait",
                        values_.integer(batch), batch, values_.integer(buffer)),
            fmt::format("lower `{}`, raise `{}`, or set `post_rollout_pack_scope: window`", batch,
                        buffer));
  }

  void rollout_buffer() {
    const std::string enabled = rollout("rollout_buffer.enabled"),
                      uses = rollout("rollout_buffer.m_steps");
    if (!values_.boolean(enabled)) {
      if (values_.given(uses) && values_.integer(uses) > 1)
        warn(fmt::format("`{}` has no effect: `{}` is false", uses, enabled), uses);
    } else if (!stage_2()) {
      warn(fmt::format("`{}` has no effect in stage 1", enabled), enabled);
    }
  }

  void offload() {
    const std::string enabled = rollout("offload.enabled"),
                      model = rollout("offload.offload_model"),
                      optimizer = rollout("offload.offload_optimizer");
    if (!values_.boolean(enabled) || values_.boolean(model) || values_.boolean(optimizer)) return;
    warn(fmt::format("`{}` has no effect: `{}` and `{}` are false", enabled, model, optimizer),
         enabled);
  }

  void coord_loss() {
    const std::string enabled = kCoordLosses + ".enabled";
    for (const CoordLossKey& one : kCoordLossKeys) {
      const std::string own = rollout(one.key.name), shared = kCoordLosses + "." + one.shared_name;
      if (one.is_weight && !values_.boolean(enabled) && !values_.given(shared))
        values_.derive(shared, 0.0, enabled + ": false");
      if (values_.is_null(own)) values_.derive(own, values_.json(shared), shared);
    }
  }

  void evaluation() {
    const std::string when = "training.eval_strategy";
    const std::string save = "training.save_strategy";
    const bool has_data = !values_.is_null("custom.val_jsonl");
    const bool best = values_.text(save) == "best";
    if (values_.is_null(when)) {
      if (!has_data)
        values_.derive(when, "no", "custom.val_jsonl: null");
      else if (best)
        values_.derive(when, "steps", "training.save_strategy: best");
      else
        values_.derive(when, values_.json(save), save);
    } else if (values_.text(when) != "no" && !has_data) {
      problem(fmt::format("`{}: {}` has no data", when, values_.text(when)), when,
              "`custom.val_jsonl` is not set",
              "set `custom.val_jsonl`, or `training.eval_strategy: no`");
    }
    if (best && values_.text(when) == "no") {
      problem("`training.save_strategy: best` needs evaluation", save,
              fmt::format("`{}` is no ({})", when, values_.origin(when)),
              "set `custom.val_jsonl` and `training.eval_strategy: steps`, or set "
              "`training.save_strategy: steps`");
    }
    if (values_.is_null("training.eval_steps"))
      values_.derive("training.eval_steps", values_.json("training.save_steps"),
                     "training.save_steps");
  }

  void best_metric() {
    const std::string key = "training.metric_for_best_model";
    const std::vector<std::string> legal =
        evaluation_metrics(!stage_2(), stage_2() || has_rollout_section());
    const std::string usual = stage_2() ? "eval_rollout_f1" : "eval_loss";
    if (values_.is_null(key)) {
      values_.derive(key, usual, stage_2() ? "stage 2" : "stage 1");
    } else {
      const std::string name = values_.text(key);
      const auto is_legal = [&](const std::string& text) {
        return std::find(legal.begin(), legal.end(), text) != legal.end();
      };
      if (!is_legal(name) && is_legal("eval_" + name)) {  // transformers accepts both spellings
        values_.set(key, "eval_" + name, values_.origin(key), true);
      } else if (!is_legal(name)) {
        const std::vector<std::string> near = near_names(name, legal, 1);
        // A stage-2 file often inherits stage 1's metric: name the one to use, not the one that is
        // spelt similarly.
        const bool inherited = name == "eval_token_acc" || name == "eval_loss" || near.empty();
        problem(fmt::format("`{}: {}` is not a metric of {}", key, name,
                            stage_2() ? "stage 2" : "stage 1"),
                key, fmt::format("metrics: {}", join(legal, ", ")),
                fmt::format("set `{}: {}`", key, inherited ? usual : near.front()));
      }
    }
    if (values_.is_null("training.greater_is_better")) {
      const std::string name = values_.text(key);
      const bool loss = name.size() >= 4 && name.compare(name.size() - 4, 4, "loss") == 0;
      values_.derive("training.greater_is_better", !loss, key);
    }
  }

  Values& values_;
  const RuleContext& context_;
  std::vector<Problem>& problems_;
  std::vector<Warning>& warnings_;
};

}  // namespace

void apply_cross_rules(Values& values, const RuleContext& context, std::vector<Problem>& problems,
                       std::vector<Warning>& warnings) {
  CrossRules(values, context, problems, warnings).run();
}

}  // namespace rematch
