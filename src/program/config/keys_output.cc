// Keys of training for outputs, cadence and packing. "(ms-swift)" and "(transformers)" name the
// program that has the same default.
#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec> directory_keys() {
  const std::string log_instead = "ignored; every step is in `logging.jsonl` of the run directory";
  const KeysOf key("training.", part<&Settings::output>);
  return {
      key.of<&OutputSettings::output_dir>(
          "parent of run directories, relative to the current directory (ms-swift)"),
      key.of<&OutputSettings::run_name>(
          "the run directory is output_dir/run_name (at most 200 bytes); null: "
          "output_dir itself"),
      key.of<&OutputSettings::add_version>(
          "puts `vN-YYYYMMDD-HHMMSS` before run_name (ms-swift: true)"),
      key.of<&OutputSettings::logging_dir>(
          "directory of TensorBoard events; null: `runs` in the run directory"),
      key.of<&OutputSettings::report_to>(
             "`tensorboard`, `wandb` (uses the `python3` on PATH; a warning if that has no "
             "wandb), `none` (ms-swift)")
          .one_of({"tensorboard", "none", "wandb", "swanlab"})
          .warns("=swanlab", log_instead),
  };
}

std::vector<KeySpec> evaluation_keys() {
  const KeysOf key("training.", part<&Settings::cadence>);
  const KeysOf evaluation("training.", part<&Settings::evaluation>);
  return {
      key.of<&CadenceSettings::logging_steps>("steps between log lines (ms-swift)").at_least(1),
      key.of<&CadenceSettings::logging_first_step>("logs step 1 too (ms-swift)"),
      key("eval_strategy", &CadenceSettings::eval_when,
          "null: like save_strategy if `custom.val_jsonl` is set, else no (ms-swift)")
          .null_by_default()
          .one_of({"no", "steps", "epoch"}),
      key.of<&CadenceSettings::eval_steps>(
             "optimizer steps between evaluations; null: save_steps (ms-swift)")
          .null_by_default()
          .at_least(1),
      evaluation
          .of<&EvaluationSettings::eval_on_start>(
              "evaluates before the first step, as the reference of the health line; null: only "
              "with stop_on_harm (transformers)")
          .null_by_default(),
      evaluation.of<&EvaluationSettings::stop_on_harm>(
          "ends the run when the health of an evaluation is worse than at the start; every "
          "new best is saved (docs/health.md)"),
      evaluation
          .of<&EvaluationSettings::early_stopping_patience>(
              "ends the run after so many evaluations in a row without a new best "
              "metric_for_best_model; every new best is saved; null: never (transformers)")
          .null_by_default()
          .at_least(1),
  };
}

std::vector<KeySpec> checkpoint_keys() {
  const KeysOf key("training.", part<&Settings::cadence>);
  const KeysOf checkpoint("training.", part<&Settings::checkpoints>);
  const KeysOf evaluation("training.", part<&Settings::evaluation>);
  return {
      key("save_strategy", &CadenceSettings::save_when,
          "when checkpoints are written (transformers)"),
      key.of<&CadenceSettings::save_steps>("optimizer steps between checkpoints (transformers)")
          .at_least(1),
      checkpoint
          .of<&CheckpointSettings::save_total_limit>(
              "checkpoints to keep; the best and the newest are never deleted; null: "
              "all (transformers)")
          .null_by_default()
          .at_least(1),
      checkpoint.of<&CheckpointSettings::save_only_model>(
          "saves checkpoints without training state (transformers)"),
      key.of<&CadenceSettings::save_last_epoch>("writes a checkpoint at the end of the run"),
      key.of<&CadenceSettings::save_delay_steps>("no checkpoint before this step").at_least(0),
      key.of<&CadenceSettings::save_delay_epochs>("no checkpoint before this epoch").at_least(0),
      evaluation.of<&EvaluationSettings::metric_for_best_model>(
          "stage 1: `eval_loss` (default), `eval_token_acc`; stage 2: `eval_rollout_f1` "
          "(default); both, with a `rollout_backend`: `eval_rollout_…`, such as "
          "`eval_rollout_f1_labels`"),
      evaluation
          .of<&EvaluationSettings::greater_is_better>(
              "null: true unless the metric's name ends in `loss` (transformers)")
          .null_by_default(),
      checkpoint
          .of<&CheckpointSettings::resume_from_checkpoint>("`latest` or a checkpoint directory")
          .null_is({"null", "false"}),
  };
}

std::vector<KeySpec> packing_keys() {
  const KeysOf key("training.", part<&Settings::pack>);
  return {
      key("packing", &PackSettings::enabled,
          "packs several segments into a row of up to `global_max_length` tokens (ms-swift)"),
      key("packing_buffer", &PackSettings::buffer, "most segments that may wait for a row")
          .at_least(1),
      key("packing_min_fill_ratio", &PackSettings::min_fill_ratio,
          "warns about rows with a lower fill")
          .within(0, 1)
          .above(0),
      key("packing_drop_last", &PackSettings::drop_last,
          "stage 1: drops an epoch's last row if its fill is below packing_min_fill_ratio; "
          "stage 2: only true"),
  };
}

}  // namespace

std::vector<KeySpec> output_keys() {
  return join_keys({directory_keys(), evaluation_keys(), checkpoint_keys(), packing_keys()});
}

}  // namespace rematch
