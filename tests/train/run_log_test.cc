// What a run says on the terminal.
#include "train/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "train/evaluation_table.h"
#include "train/format_watch.h"
#include "train/train_bar.h"

namespace rematch {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A log on a terminal without a screen.
struct Said {
  explicit Said(bool rolls_out) {
    RunLog::Live live{.memory_bytes = [] { return int64_t{1} << 30; }};
    if (rolls_out)
      live.format = {.model_dir = "base", .train_jsonl = "data/train.jsonl", .max_new_tokens = 96};
    log.emplace(terminal, std::move(live));
    state.max_steps = 10;
  }
  void step(const MetricsBag& metrics) {
    ++state.global_step;
    log->step(state, metrics, true, 100);
  }

  std::ostringstream out, err;
  Terminal terminal{out, err, {}};
  std::optional<RunLog> log;
  TrainerState state;
};

/// A window of answers, all of one kind.
MetricsBag window(int num_answers, bool malformed, bool truncated) {
  MetricsBag bag;
  for (int i = 0; i < num_answers; ++i) {
    bag.add("rollout/parse_malformed", malformed ? 1 : 0);
    bag.add("rollout/parse_truncated", truncated ? 1 : 0);
  }
  return bag;
}

EvaluationResult evaluated(double precision, double f1) {
  return {.values = {{"eval_rollout_precision", precision},
                     {"eval_rollout_f1", f1},
                     {"eval_rollout_label_accuracy", 0.5},
                     {"eval_rollout_duplicates", 0.0},
                     {"eval_rollout_parse_truncated_rate", 0.0},
                     {"eval_rollout_parse_malformed_rate", 0.0},
                     {"eval_rollout_pred_per_gt", 1.0},
                     {"eval_rollout_pred_objects", 10000.0}}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST(RunLog, WarnsOnceWhenNoAnswerIsUsable) {
  Said run(true);
  run.step(window(40, true, false));
  run.step(window(40, true, false));
  EXPECT_THAT(
      run.err.str(),
      HasSubstr("warning: 40 of 40 answers are malformed:\n  this checkpoint has not learnt "
                "the format"));
  EXPECT_THAT(run.err.str(), HasSubstr("rematch init base data/train.jsonl --stage1"));
  EXPECT_EQ(count(run.err.str(), "answers are"), 1u);
  EXPECT_EQ(run.state.log_history[0].values.back().first, MetricName("epoch"));
  EXPECT_THAT(run.state.log_history[0].values,
              testing::Contains(std::pair(MetricName("health/unusable_answers"), 40.0)));
  EXPECT_THAT(run.state.log_history[1].values,
              Not(testing::Contains(std::pair(MetricName("health/unusable_answers"), 40.0))));
}

TEST(RunLog, AdvisesMoreTokensForTruncatedAnswers) {
  Said run(true);
  run.step(window(8, false, true));
  EXPECT_THAT(run.err.str(), HasSubstr("8 of 8 answers are cut off at max_new_tokens (96)"));
  EXPECT_THAT(run.err.str(), HasSubstr("raise custom.extra.rollout_matching.max_new_tokens"));
}

TEST(RunLog, DoesNotWarnWithAUsableAnswerOrInStage1) {
  Said good(true), stage_1(false);
  good.step(window(1, false, false));
  good.step(window(40, true, false));
  stage_1.step(window(40, true, false));
  EXPECT_THAT(good.err.str(), Not(HasSubstr("warning")));
  EXPECT_THAT(stage_1.err.str(), Not(HasSubstr("warning")));
}

TEST(FormatWatch, WaitsForEnoughAnswers) {
  FormatWatch watch({.model_dir = "m", .train_jsonl = "t", .max_new_tokens = 1});
  EXPECT_FALSE(watch.observe(2, 1, 1));
  EXPECT_FALSE(watch.observe(0, 0, 0));
  EXPECT_THAT(watch.observe(2, 2, 0).value(),
              HasSubstr("1 of 4 answers are cut off at max_new_tokens (1) and 3 are malformed"));
  EXPECT_FALSE(watch.observe(9, 9, 0));
}

TEST(RunLog, ShowsAnEvaluationAsATable) {
  Said run(false);
  EvaluationResult start = evaluated(0.5, 0.25);
  run.log->evaluation(run.state, start, 1000);
  run.state.global_step = 12;
  run.log->evaluation(run.state, evaluated(0.75, 0.5), 1000);
  EXPECT_EQ(evaluation_table({run.state.log_history[0]}, 12, evaluated(0.75, 0.5).values, ""),
            "evaluation after step 12\n"
            "            F1  precision\n"
            "-------------------------\n"
            "step 0   0.250      0.500\n"
            "step 12  0.500      0.750");
  EXPECT_THAT(run.err.str(), HasSubstr("evaluation after step 0\n"));
  EXPECT_THAT(run.err.str(),
              HasSubstr("step 12  0.500      0.750\nhealth: nothing in the answers"));
}

TEST(RunLog, ShowsFinalHealthOnce) {
  Said run(false);
  run.log->evaluation(run.state, evaluated(0.5, 0.25), 1000);
  run.state.global_step = 12;
  run.log->evaluation(run.state, evaluated(0.75, 0.5), 1000);
  run.log->note_final_health(run.state, 1000);
  EXPECT_EQ(count(run.err.str(), "health: "), 1u);
  run.state.global_step = 15;
  run.log->note_final_health(run.state, 1000);
  EXPECT_THAT(run.err.str(), HasSubstr("last evaluation:\nhealth: "));
}

TEST(RunLog, NamesTheBestCheckpointAtTheEnd) {
  const auto end = [](const TrainerState& state) {
    Said run(false);
    run.log->note_saved("out/run/checkpoint-24");
    run.log->note_done(state, 24, 12, "out/run");
    return run.err.str();
  };
  TrainerState state;
  EXPECT_THAT(end(state), Not(HasSubstr("best")));
  state.best_of = {"eval_loss", false, ""};
  state.update_best(11.55, false, 12);
  EXPECT_THAT(end(state), HasSubstr("best  after step 12 (eval_loss 11.55), which was not saved "
                                    "(training.save_strategy: best saves it)"));
  state.best_model_checkpoint = "out/run/checkpoint-12";
  EXPECT_THAT(end(state),
              HasSubstr("best  checkpoint-12 (eval_loss 11.55)\nnext: rematch report out/run\n"
                        "      rematch predict out/run IMAGES --draw drawn\n"));
  state.update_best(10, false, 20);
  EXPECT_THAT(end(state), HasSubstr("the best saved is checkpoint-12"));
  state.update_best(9, false, 0);
  EXPECT_THAT(end(state), HasSubstr("best  the start of the run (eval_loss 9)"));
}

TEST(TrainBar, KeepsFieldsOfUnmeasuredMetrics) {
  TrainBar bar(true, "GPU");
  const Progress first = bar.state(1, 4, {{"loss", 4.331}, {"rollout/f1", 0.404}}, 100, 1 << 30);
  const Progress reuse = bar.state(2, 4, {{"loss", 4.2}}, 0, 1 << 30);
  ASSERT_EQ(first.fields.size(), reuse.fields.size());
  EXPECT_EQ(first.fields[0].value, "4.33");
  EXPECT_EQ(reuse.fields[1].value, ".40");
  EXPECT_EQ(reuse.fields[5].name, "GPU");
  EXPECT_EQ(reuse.fields[5].value, "1.00 GiB");
}

TEST(TrainBar, NumbersFitTheirColumns) {
  for (const double value : {0.0, 1e-9, 0.0123, 0.5, 9.999, 99.99, 1234.5, 99999.7, 1e12})
    EXPECT_LE(short_number(value).size(), 5u) << value;
  EXPECT_EQ(short_number(1.2e-5), "1e-05");
  for (const double share : {0.0, 0.404, 0.996, 1.0}) EXPECT_EQ(short_share(share).size(), 3u);
  EXPECT_EQ(short_share(0.996), "1.0");
}

}  // namespace rematch
