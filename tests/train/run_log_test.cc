// Lines of a run on the terminal.
#include "learn/train/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "learn/train/evaluation_table.h"
#include "learn/train/format_watch.h"
#include "learn/train/train_bar.h"

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
  void step(const MetricsBag& metrics, bool log_due = true) {
    ++state.progress.global_step;
    log->step(state, metrics, log_due, 100);
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

/// A step of two samples; `loss` differs from step to step.
MetricsBag step_of(double loss, double num_fn, double forward_s) {
  MetricsBag bag;
  bag.add("loss", loss);
  bag.add("learning_rate", loss / 100);
  for (int sample = 0; sample < 2; ++sample) {
    bag.add("rollout/fn", num_fn);
    bag.add("rollout/matched", 1);
    bag.add("rollout/valid_pred_objects", loss);
    bag.add("rollout/gt_objects", 2);
    bag.add("rollout/gen_new_tokens", 10 * loss);
    bag.add("time/forward_s", forward_s);
  }
  return bag;
}

double logged(const TrainerState& state, size_t line, const char* name) {
  for (const auto& [key, value] : state.progress.log_history.at(line).values) {
    if (key == MetricName(name)) return value;
  }
  return std::nan("");
}

TEST(RunLog, ALineHoldsTheStepsSinceTheOneBefore) {
  Said run(false);
  run.step(step_of(4, 1, 0.5), /*log_due=*/false);
  run.step(step_of(2, 0, 0.25), /*log_due=*/false);
  run.step(step_of(3, 5, 0));
  run.step(step_of(7, 2, 1));
  ASSERT_EQ(run.state.progress.log_history.size(), 2u);
  EXPECT_EQ(run.state.progress.log_history[0].step, 3);
  EXPECT_EQ(logged(run.state, 0, "loss"), 3.0) << "a mean, as transformers logs it";
  EXPECT_EQ(logged(run.state, 0, "rollout/fn"), 12.0) << "counters add up";
  EXPECT_EQ(logged(run.state, 0, "rollout/precision"), 6.0 / 18) << "sums are divided";
  EXPECT_EQ(logged(run.state, 0, "rollout/gen_new_tokens_p90"), 40.0) << "of all samples";
  EXPECT_EQ(logged(run.state, 0, "time/forward_s"), 0.5) << "seconds a step";
  EXPECT_EQ(logged(run.state, 0, "learning_rate"), 0.03) << "of the last step";
  EXPECT_EQ(logged(run.state, 1, "loss"), 7.0) << "the line before is not counted again";
  EXPECT_EQ(logged(run.state, 1, "rollout/fn"), 4.0);
}

TEST(RunLog, AResumedRunLogsTheStepsBeforeIt) {
  Said whole(false), resumed(false);
  whole.step(step_of(4, 1, 0.5), false);
  whole.step(step_of(2, 0, 0.25), false);
  const std::string saved = to_wire(whole.log->interval());
  resumed.state.progress.global_step = 2;
  resumed.log->restore(from_wire<LogInterval>(saved));
  for (Said* run : {&whole, &resumed}) run->step(step_of(3, 5, 0));
  EXPECT_EQ(resumed.state.progress.log_history[0].values,
            whole.state.progress.log_history[0].values);
}

TEST(RunLog, WarnsOnceWhenNoAnswerIsUsable) {
  Said run(true);
  run.step(window(40, true, false));
  run.step(window(40, true, false));
  EXPECT_THAT(
      run.err.str(),
      HasSubstr("warning: no answer of 40 can be read: 40 are malformed:\n  this checkpoint "
                "has not learnt "
                "the format, and `target_policy: append` cannot\n  teach it"));
  EXPECT_THAT(run.err.str(), HasSubstr("rematch init base data/train.jsonl --stage1"));
  EXPECT_EQ(count(run.err.str(), "can be read"), 1u);
  EXPECT_EQ(run.state.progress.log_history[0].values.back().first, MetricName("epoch"));
  EXPECT_THAT(run.state.progress.log_history[0].values,
              testing::Contains(std::pair(MetricName("health/unusable_answers"), 40.0)));
  EXPECT_THAT(run.state.progress.log_history[1].values,
              Not(testing::Contains(std::pair(MetricName("health/unusable_answers"), 40.0))));
}

TEST(RunLog, AdvisesMoreTokensForTruncatedAnswers) {
  Said run(true);
  run.step(window(8, false, true));
  EXPECT_THAT(run.err.str(), HasSubstr("no answer of 8 can be read: 8 are cut off.\n"));
  EXPECT_THAT(run.err.str(),
              HasSubstr("raise custom.extra.rollout_matching.max_new_tokens, which is 96"));
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
  EXPECT_FALSE(watch.observe({.answers = 2, .malformed = 1, .truncated = 1}));
  EXPECT_FALSE(watch.observe({}));
  EXPECT_THAT(watch.observe({.answers = 2, .malformed = 2}).value(),
              HasSubstr("no answer of 4 can be read: 3 are malformed, 1 are cut off"));
  EXPECT_FALSE(watch.observe({.answers = 9, .malformed = 9}));
}

TEST(FormatWatch, KnowsAnswersOfAnotherFormat) {
  FormatWatch watch({.model_dir = "m", .train_jsonl = "t", .max_new_tokens = 1});
  EXPECT_THAT(watch.observe({.answers = 8, .truncated = 1, .dropped = 40}).value(),
              HasSubstr("no answer of 8 can be read: 1 are cut off, none of their 40 entries is "
                        "an object of this answer format:\n  this checkpoint has not "
                        "learnt the format"));
  FormatWatch good({.model_dir = "m", .train_jsonl = "t", .max_new_tokens = 1});
  EXPECT_FALSE(good.observe({.answers = 8, .with_object = 1, .dropped = 40}));
  FormatWatch empty({.model_dir = "m", .train_jsonl = "t", .max_new_tokens = 1});
  EXPECT_FALSE(empty.observe({.answers = 8})) << "empty scenes are answers";
}

TEST(RunLog, EstimatesTheTimeOfALongRunAfterItsFirstSteps) {
  for (const double step_s : {0.1, 3.0}) {
    Said run(false);
    run.state.max_steps = 405;
    for (int i = 0; i < 8; ++i) {
      MetricsBag bag;
      bag.add("time/step_s", i == 0 ? 500 : step_s);
      run.step(bag);
    }
    if (step_s < 1) {
      EXPECT_THAT(run.err.str(), Not(HasSubstr("about"))) << "less than a minute";
    } else {
      EXPECT_THAT(run.err.str(), HasSubstr("about 20 min for the 400 steps left (3.00 s each)"));
      EXPECT_EQ(count(run.err.str(), "about"), 1u);
    }
  }
}

TEST(FormatWatch, KnowsThatRewriteTeachesTheFormat) {
  FormatWatch watch({.model_dir = "m",
                     .train_jsonl = "t",
                     .max_new_tokens = 1,
                     .kind = advice::Training::Kind::kRewrite});
  const std::string text = watch.observe({.answers = 4, .malformed = 4}).value();
  EXPECT_THAT(text, HasSubstr("`target_policy: rewrite` teaches it"));
  EXPECT_THAT(text, Not(HasSubstr("Stop")));
}

TEST(RunLog, SaysInStage1ThatNoAnswerCanBeReadYet) {
  for (const bool all : {true, false}) {
    Said run(false);
    EvaluationResult result = evaluated(0, 0);
    for (auto& [name, value] : result.values) {
      if (name == "eval_rollout_parse_malformed_rate") value = all ? 0.75 : 0.5;
      if (name == "eval_rollout_parse_truncated_rate") value = 0.25;
    }
    result.values.emplace_back("eval_rollout_sample_valid_pred_rate", 0);
    run.log->evaluation(run.state.progress, result, 8);
    if (all) {
      EXPECT_THAT(run.err.str(), HasSubstr("no answer of 8 can be read: 6 are malformed, 2 are "
                                           "cut off"));
    } else {
      EXPECT_THAT(run.err.str(), Not(HasSubstr("can be read")));
    }
  }
}

TEST(RunLog, SaysInStage1ThatTheAnswersAreOfAnotherFormat) {
  Said run(false);
  EvaluationResult result = evaluated(0, 0);
  result.values.emplace_back("eval_rollout_sample_valid_pred_rate", 0);
  result.values.emplace_back("eval_rollout_parse_dropped_invalid", 70);
  run.log->evaluation(run.state.progress, result, 8);
  EXPECT_THAT(run.err.str(),
              HasSubstr("no answer of 8 can be read: none of their 70 entries is an object of "
                        "this answer format"));
}

TEST(RunLog, ShowsAnEvaluationAsATable) {
  Said run(false);
  EvaluationResult start = evaluated(0.5, 0.25);
  run.log->evaluation(run.state.progress, start, 1000);
  run.state.progress.global_step = 12;
  run.log->evaluation(run.state.progress, evaluated(0.75, 0.5), 1000);
  EXPECT_EQ(
      evaluation_table({run.state.progress.log_history[0]}, 12, evaluated(0.75, 0.5).values, ""),
      "evaluation after step 12\n"
      "         gate F1  gate P  malformed\n"
      "-----------------------------------\n"
      "step 0     0.250   0.500      0.000\n"
      "step 12    0.500   0.750      0.000");
  EXPECT_THAT(run.err.str(), HasSubstr("evaluation after step 0\n"));
  EXPECT_THAT(run.err.str(), HasSubstr("0.500   0.750      0.000\nhealth: nothing in the answers"));
}

TEST(RunLog, NamesTheBestCheckpointAtTheEnd) {
  const auto end = [](const RunProgress& progress) {
    Said run(false);
    run.log->note_saved("out/run/checkpoint-24");
    run.log->note_done(
        progress, {.num_steps = 24, .seconds = 12, .run_dir = "out/run", .has_validation = true});
    return run.err.str();
  };
  RunProgress progress;
  EXPECT_THAT(end(progress), Not(HasSubstr("best")));
  progress.best_of = {"eval_loss", false, ""};
  progress.update_best(11.55, false, 12);
  EXPECT_THAT(end(progress), HasSubstr("best  after step 12 (loss 11.550), which was not saved "
                                       "(training.save_strategy: best saves it)"));
  progress.best_model_checkpoint = "out/run/checkpoint-12";
  EXPECT_THAT(end(progress),
              HasSubstr("best  checkpoint-12 (loss 11.550)\nnext: rematch eval out/run\n"
                        "      rematch report out/run\n"
                        "      rematch predict out/run IMAGES --draw drawn\n"));
  progress.update_best(10, false, 20);
  EXPECT_THAT(end(progress), HasSubstr("the best saved is checkpoint-12"));
  progress.update_best(9, false, 0);
  EXPECT_THAT(end(progress), HasSubstr("best  the start of the run (loss 9.000)"));
}

TEST(RunLog, NamesTheBestScoreAsTheTableDoes) {
  Said run(false);
  RunProgress progress;
  progress.best_of = {"eval_rollout_f1", true, ""};
  progress.update_best(0.7097, true, 0);
  run.log->note_done(progress, {.num_steps = 1, .run_dir = "out/run"});
  EXPECT_THAT(run.err.str(), HasSubstr("best  the start of the run (gate F1 0.710)"));
}

TEST(RunLog, AdvisesOnlyWhatTheRunCanDoAtTheEnd) {
  const auto end = [](bool has_validation, bool has_saved) {
    Said run(false);
    if (has_saved) run.log->note_saved("out/run/checkpoint-24");
    run.log->note_done({}, {.run_dir = "out/run", .has_validation = has_validation});
    return run.err.str();
  };
  EXPECT_THAT(end(false, true), HasSubstr("next: rematch eval out/run JSONL\n"));
  EXPECT_THAT(end(true, false), HasSubstr("next: rematch report out/run\n"));
  EXPECT_THAT(end(true, false), Not(HasSubstr("rematch eval")));
}

TEST(RunLog, ReportsTheTimeOfAStepWithoutEvaluations) {
  Said run(false);
  MetricsBag metrics;
  metrics.add("time/step_s", 0.5);
  run.log->step(run.state, metrics, false, 100);
  run.log->note_done({}, {.num_steps = 1, .seconds = 20, .run_dir = "out/run"});
  EXPECT_THAT(run.err.str(),
              HasSubstr("done: 1 step in 20 s, 0.50 s a step without evaluations and saves"));
}

TEST(TrainBar, KeepsFieldsOfUnmeasuredMetrics) {
  TrainBar bar(true, "GPU", 0.3);
  const Progress first = bar.state(1, 4, {{"loss", 4.331}, {"rollout/f1", 0.404}}, 100, 1 << 30);
  const Progress reuse = bar.state(2, 4, {{"loss", 4.2}}, 0, 1 << 30);
  ASSERT_EQ(first.fields.size(), reuse.fields.size());
  EXPECT_EQ(first.fields[0].value, "4.33");
  EXPECT_EQ(reuse.fields[1].value, ".40");
  EXPECT_EQ(reuse.fields[1].name, "F1@.3");
  EXPECT_EQ(reuse.fields[5].name, "GPU");
  EXPECT_EQ(reuse.fields[5].value, "1.00 GiB");
}

TEST(TrainBar, NumbersFitTheirColumns) {
  for (const double value : {0.0, 1e-9, 0.0123, 0.5, 9.999, 99.99, 1234.5, 99999.7, 1e12})
    EXPECT_LE(short_number(value).size(), 5u) << value;
  EXPECT_EQ(short_number(1.2e-5), "1e-05");
  EXPECT_EQ(short_rate(0.002), "2.0e-03");
  EXPECT_EQ(short_rate(1.24e-5), "1.2e-05");
  for (const double share : {0.0, 0.404, 0.996, 1.0}) EXPECT_EQ(short_share(share).size(), 3u);
  EXPECT_EQ(short_share(0.996), "1.0");
}

}  // namespace rematch
