// Rules of evaluations, saving, the run directory and outputs.
#include "config/support.h"

namespace rematch {

using test::effective;
using test::kStage2;
using test::load_set;
using test::problem_of_set;
using test::stage2;
using test::warning_of;

TEST(Evaluation, FollowsSavingWhenThereAreData) {
  EXPECT_EQ(load_set({}).settings.cadence.eval_when, When::kNever);
  const Settings settings = load_set({"custom.val_jsonl=v.jsonl", "training.save_strategy=epoch",
                                      "training.save_steps=7"})
                                .settings;
  EXPECT_EQ(settings.cadence.eval_when, When::kEpoch);
  EXPECT_EQ(settings.cadence.eval_steps, 7);
  EXPECT_EQ(load_set({"custom.val_jsonl=v.jsonl", "training.save_strategy=best"})
                .settings.cadence.eval_when,
            When::kSteps);
  EXPECT_EQ(problem_of_set({"training.eval_strategy=steps"}).what, "`custom.val_jsonl` is not set");
}

TEST(Evaluation, SavingTheBestNeedsIt) {
  EXPECT_EQ(problem_of_set({"training.save_strategy=best"}).error,
            "`training.save_strategy: best` needs evaluation");
  EXPECT_EQ(problem_of_set({"training.save_strategy=best", "custom.val_jsonl=v.jsonl",
                            "training.eval_strategy=no"})
                .error,
            "`training.save_strategy: best` needs evaluation");
}

TEST(Evaluation, OfTheStartComesWithStoppingOnHarm) {
  const std::vector<std::string> base = {kStage2, "custom.val_jsonl=v.jsonl"};
  const auto with = [&](const std::string& more) {
    return load_set({base[0], base[1], more}).settings.evaluation;
  };
  EXPECT_FALSE(load_set(base).settings.evaluation.eval_on_start);
  EXPECT_TRUE(with("training.eval_on_start=true").eval_on_start);
  EXPECT_TRUE(with("training.stop_on_harm=true").eval_on_start);
  EXPECT_TRUE(with("training.stop_on_harm=true").stop_on_harm);
}

TEST(Evaluation, StoppingOnHarmNeedsItAndRollouts) {
  EXPECT_EQ(problem_of_set({kStage2, "training.stop_on_harm=true"}).error,
            "`training.stop_on_harm` needs evaluation");
  EXPECT_EQ(problem_of_set({"training.eval_on_start=true"}).error,
            "`training.eval_on_start` needs evaluation");
  EXPECT_EQ(problem_of_set({"custom.val_jsonl=v.jsonl", "training.stop_on_harm=true"}).error,
            "`training.stop_on_harm` needs rollouts");
  EXPECT_NO_THROW(load_set(
      {"custom.val_jsonl=v.jsonl", "training.stop_on_harm=true", stage2("max_new_tokens=5")}));
}

TEST(Evaluation, PatienceNeedsIt) {
  const std::string patience = "training.early_stopping_patience=3";
  EXPECT_EQ(problem_of_set({patience}).error,
            "`training.early_stopping_patience` needs evaluation");
  EXPECT_EQ(
      load_set({"custom.val_jsonl=v.jsonl", patience}).settings.evaluation.early_stopping_patience,
      3);
  EXPECT_EQ(load_set({"custom.val_jsonl=v.jsonl"}).settings.evaluation.early_stopping_patience, 0);
}

TEST(BestMetric, MustBeMeasuredInTheStage) {
  EXPECT_EQ(load_set({}).settings.evaluation.metric_for_best_model, "eval_loss");
  EXPECT_FALSE(load_set({}).settings.evaluation.greater_is_better);
  EXPECT_TRUE(load_set({"training.metric_for_best_model=eval_token_acc"})
                  .settings.evaluation.greater_is_better);
  EXPECT_FALSE(load_set({"training.metric_for_best_model=eval_token_acc",
                         "training.greater_is_better=false"})
                   .settings.evaluation.greater_is_better);
  EXPECT_EQ(
      load_set({"training.metric_for_best_model=loss"}).settings.evaluation.metric_for_best_model,
      "eval_loss");
  EXPECT_TRUE(load_set({kStage2}).settings.evaluation.greater_is_better);
  EXPECT_EQ(load_set({kStage2, "training.metric_for_best_model=eval_rollout_recall"})
                .settings.evaluation.metric_for_best_model,
            "eval_rollout_recall");
  EXPECT_NO_THROW(
      load_set({"training.metric_for_best_model=eval_rollout_f1", stage2("max_new_tokens=5")}));
  EXPECT_EQ(problem_of_set({"training.metric_for_best_model=eval_rollout_f1"}).error,
            "`training.metric_for_best_model: eval_rollout_f1` is not a metric of stage 1");
}

TEST(BestMetric, AnInheritedOneOfStage1IsToldItsSuccessor) {
  const Problem problem =
      problem_of_set({kStage2, "training.metric_for_best_model=eval_token_acc"});
  EXPECT_EQ(problem.fix, "set `training.metric_for_best_model: eval_rollout_f1`");
  EXPECT_EQ(problem_of_set({kStage2, "training.metric_for_best_model=eval_rollout_recal"}).fix,
            "set `training.metric_for_best_model: eval_rollout_recall`");
}

TEST(Debug, ReplacesTheValuesThatAreGiven) {
  const std::vector<std::string> base = {
      "training.output_dir=out", "custom.train_sample_limit=100", "custom.val_sample_limit=50",
      "debug={enabled: true, output_dir: dbg, train_sample_limit: 3}"};
  const Settings settings = load_set(base).settings;
  EXPECT_EQ(settings.output.run_dir, "dbg");
  EXPECT_EQ(settings.data.train_sample_limit, 3);
  EXPECT_EQ(settings.data.val_sample_limit, 50);
  std::vector<std::string> off = base;
  off.push_back("debug.enabled=false");
  EXPECT_EQ(load_set(off).settings.data.train_sample_limit, 100);
}

TEST(RunDirectory, IsOutputDirAndRunName) {
  EXPECT_EQ(load_set({"training.output_dir=o", "training.run_name=r"}).settings.output.run_dir,
            "o/r");
  EXPECT_EQ(load_set({"training.output_dir=o"}).settings.output.run_dir, "o");
  EXPECT_EQ(load_set({"training.output_dir=o", "training.run_name=r"}).settings.output.logging_dir,
            "o/r/runs");
  EXPECT_EQ(
      load_set({"training.output_dir=o", "training.logging_dir=/tb"}).settings.output.logging_dir,
      "/tb");
}

TEST(RunDirectory, AVersionCountsUp) {
  const test::TempDir dir;
  EXPECT_THAT(run_directory({.output_dir = dir.path(), .add_version = true, .run_name = "r"}),
              testing::MatchesRegex(dir.path() + "/v0-[0-9]+-[0-9]+/r"));
  dir.write("v3-20250101-000000/r/x", "");
  dir.write("v11-20250101-000000/r/x", "");
  dir.write("version-x/r/x", "");
  dir.write("v99999999999999-x/r/x", "");
  EXPECT_THAT(run_directory({.output_dir = dir.path(), .add_version = true}),
              testing::MatchesRegex(dir.path() + "/v12-[0-9]{8}-[0-9]{6}"));
  EXPECT_EQ(run_directory({.output_dir = dir.path(), .run_name = ""}), dir.path());
}

TEST(RunDirectory, GoingOnTakesTheNewestVersionThatHoldsACheckpointOfTheRun) {
  const test::TempDir dir;
  const OutputSettings output{.output_dir = dir.path(), .add_version = true, .run_name = "r"};
  EXPECT_THAT(run_directory(output, true), testing::HasSubstr("/v0-"))
      << "nothing there: a new one";
  dir.write("v0-20250101-000000/r/checkpoint-4/trainer_state.json", "{}");
  dir.write("v2-20250101-000000/r/checkpoint-9/trainer_state.json", "{}");
  dir.write("v5-20250101-000000/other/checkpoint-9/trainer_state.json", "{}");
  EXPECT_EQ(run_directory(output, true), dir.path() + "/v2-20250101-000000/r");
  EXPECT_EQ(load_set({"training.resume_from_checkpoint=true"})
                .settings.checkpoints.resume_from_checkpoint,
            "latest")
      << "transformers' spelling";
}

TEST(ReportTo, SaysWhetherTensorboardIsWanted) {
  EXPECT_TRUE(load_set({}).settings.output.reports_to("tensorboard"));
  EXPECT_FALSE(load_set({"training.report_to=none"}).settings.output.reports_to("tensorboard"));
  EXPECT_FALSE(load_set({"training.report_to=[]"}).settings.output.reports_to("tensorboard"));
  EXPECT_FALSE(load_set({"training.report_to=wandb"}).settings.output.reports_to("tensorboard"));
  EXPECT_TRUE(load_set({"training.report_to=[tensorboard, wandb]"})
                  .settings.output.reports_to("tensorboard"));
  EXPECT_TRUE(
      load_set({"training.report_to=[tensorboard, wandb]"}).settings.output.reports_to("wandb"));
  EXPECT_TRUE(load_set({"training.report_to=wandb"}).warnings.empty());
  const ConfigResult result = load_set({"training.report_to=swanlab"});
  EXPECT_NE(warning_of(result).text.find("logging.jsonl"), std::string::npos);
  EXPECT_EQ(problem_of_set({"training.report_to=mlflow"}).error,
            "`training.report_to` cannot be `mlflow`");
}

// spec: vllm-02 vllm-04
TEST(RolloutBackend, IsTheDefaultUntilChosenAndSaysWhere) {
  const std::string key = stage2("rollout_backend");
  const ConfigResult plain = load_set({kStage2});
  EXPECT_EQ(plain.settings.backend, "vllm");
  EXPECT_EQ(effective(plain, key).origin, "default");
  EXPECT_FALSE(plain.settings.rollouts);
  const ConfigResult hf = load_set({stage2("rollout_backend=hf")});
  EXPECT_EQ(hf.settings.backend, "hf");
  EXPECT_EQ(effective(hf, key).origin, "--set custom.extra.rollout_matching.rollout_backend");
  EXPECT_TRUE(hf.settings.rollouts);
}

}  // namespace rematch
