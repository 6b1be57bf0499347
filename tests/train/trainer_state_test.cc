#include "learn/resume/trainer_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "state_text.h"
#include "support/capture.h"

namespace rematch {
namespace {

TrainerState full_state() {
  TrainerState state;
  state.progress.global_step = 120;
  state.progress.epoch = 1.0 / 3.0;
  state.max_steps = 300;
  state.num_train_epochs = 3;
  state.logging_steps = 5;
  state.eval_steps = 20;
  state.save_steps = 40;
  state.train_batch_size = 2;
  state.progress.best_metric = 0.1 + 0.2;
  state.progress.best_global_step = 100;
  state.progress.best_model_checkpoint = "runs/\"ä\"/checkpoint-100";
  state.progress.log_history.push_back(
      {.step = 5, .values = {{"loss", 1e-7}, {"rollout/f1", 2.0}, {"epoch", 0.1}}});
  state.progress.log_history.push_back(
      {.step = 8, .values = {{"eval_loss", 1.0}}, .eval_set = "4 records \"ä\""});
  state.progress.log_history.push_back(
      {.step = 10,
       .values = {{"loss", std::numeric_limits<double>::quiet_NaN()},
                  {"grad_norm", std::numeric_limits<double>::infinity()},
                  {"x", -std::numeric_limits<double>::infinity()}}});
  return state;
}

uint64_t bits_of(double value) { return std::isnan(value) ? 1 : std::bit_cast<uint64_t>(value); }

void expect_same_history(const TrainerState& a, const TrainerState& b) {
  ASSERT_EQ(a.progress.log_history.size(), b.progress.log_history.size());
  for (size_t i = 0; i < a.progress.log_history.size(); ++i) {
    EXPECT_EQ(a.progress.log_history[i].step, b.progress.log_history[i].step);
    EXPECT_EQ(a.progress.log_history[i].eval_set, b.progress.log_history[i].eval_set);
    ASSERT_EQ(a.progress.log_history[i].values.size(), b.progress.log_history[i].values.size());
    for (size_t k = 0; k < a.progress.log_history[i].values.size(); ++k) {
      EXPECT_EQ(a.progress.log_history[i].values[k].first,
                b.progress.log_history[i].values[k].first);
      EXPECT_EQ(bits_of(a.progress.log_history[i].values[k].second),
                bits_of(b.progress.log_history[i].values[k].second));
    }
  }
}

Problem problem_with(const std::string& text) {
  const UserError error =
      test::catch_user_error([&] { TrainerState::from_json(text, "trainer_state.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  return error.problems()[0];
}

}  // namespace

TEST(RunProgress, CountsTheEvaluationsAfterTheBestOverItsSet) {
  RunProgress progress;
  const auto evaluate = [&](int64_t step, double loss, const std::string& set) {
    progress.log_history.push_back(
        {.step = step, .values = {{"eval_loss", loss}}, .eval_set = set});
    if (progress.update_best(loss, false, step)) progress.best_of = {"eval_loss", false, set};
    progress.log_history.push_back({.step = step, .values = {{"loss", 1.0}}});
    return progress.evaluations_since_best();
  };
  EXPECT_EQ(progress.evaluations_since_best(), 0);
  EXPECT_EQ(evaluate(2, 3, "a"), 0);
  EXPECT_EQ(evaluate(4, 3, "a"), 1);
  EXPECT_EQ(evaluate(6, 4, "b"), 1);
  EXPECT_EQ(evaluate(8, 5, "a"), 2);
  EXPECT_EQ(evaluate(10, 2, "a"), 0);
}

TEST(RunProgress, TracksTheBestInTheGivenDirection) {
  RunProgress progress;
  EXPECT_TRUE(progress.update_best(0.5, true, 1));
  EXPECT_FALSE(progress.update_best(0.5, true, 2));
  EXPECT_TRUE(progress.update_best(0.6, true, 3));
  EXPECT_FALSE(progress.update_best(std::nan(""), true, 4));
  EXPECT_EQ(progress.best_global_step, 3);
  RunProgress loss;
  EXPECT_TRUE(loss.update_best(2.0, false, 1));
  EXPECT_TRUE(loss.update_best(1.0, false, 2));
  EXPECT_FALSE(loss.update_best(1.5, false, 3));
}

TEST(TrainerState, WritesTransformersFieldNames) {
  TrainerState state;
  state.progress.global_step = 7;
  state.progress.epoch = 0.5;
  state.progress.log_history.push_back({.step = 7, .values = {{"loss", 1.5}}});
  const Json json = parse_json(to_json(state), "trainer_state.json");
  for (const char* name : {"best_global_step",
                           "best_metric",
                           "best_model_checkpoint",
                           "epoch",
                           "eval_steps",
                           "global_step",
                           "is_hyper_param_search",
                           "is_local_process_zero",
                           "is_world_process_zero",
                           "log_history",
                           "logging_steps",
                           "max_steps",
                           "num_input_tokens_seen",
                           "num_train_epochs",
                           "save_steps",
                           "stateful_callbacks",
                           "total_flos",
                           "train_batch_size",
                           "trial_name",
                           "trial_params"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_EQ(json["log_history"][0]["loss"], 1.5);
  EXPECT_EQ(json["log_history"][0]["step"], 7);
}

TEST(TrainerState, RoundTrips) {
  const TrainerState expected = full_state();
  const TrainerState state = TrainerState::from_json(to_json(expected), "trainer_state.json");
  EXPECT_EQ(state.progress.global_step, expected.progress.global_step);
  EXPECT_EQ(bits_of(state.progress.epoch), bits_of(expected.progress.epoch));
  EXPECT_EQ(state.max_steps, expected.max_steps);
  EXPECT_EQ(state.num_train_epochs, expected.num_train_epochs);
  EXPECT_EQ(state.logging_steps, expected.logging_steps);
  EXPECT_EQ(state.eval_steps, expected.eval_steps);
  EXPECT_EQ(state.save_steps, expected.save_steps);
  EXPECT_EQ(state.train_batch_size, expected.train_batch_size);
  EXPECT_EQ(bits_of(*state.progress.best_metric), bits_of(*expected.progress.best_metric));
  EXPECT_EQ(state.progress.best_global_step, expected.progress.best_global_step);
  EXPECT_EQ(state.progress.best_model_checkpoint, expected.progress.best_model_checkpoint);
  expect_same_history(state, expected);
  EXPECT_EQ(to_json(state), to_json(expected));
}

TEST(TrainerState, RoundTripsAFreshState) {
  const TrainerState state = TrainerState::from_json(to_json(TrainerState()), "trainer_state.json");
  EXPECT_FALSE(state.progress.best_metric || state.progress.best_global_step ||
               state.progress.best_model_checkpoint);
  EXPECT_TRUE(state.progress.log_history.empty());
}

TEST(TrainerState, IsPrintedAsByPython) {
  for (const int64_t num_steps : {0, 1, 20000}) {
    TrainerState state;
    for (int64_t step = 1; step <= num_steps; ++step)
      state.progress.log_history.push_back(
          {.step = step, .values = {{"loss", 1.5}, {"epoch", 0.1}}});
    std::string text;
    int num_pieces = 0;
    print_trainer_state(state, [&](std::string_view piece) { text += piece, ++num_pieces; });
    const Json json = parse_json(text, "trainer_state.json");
    EXPECT_EQ(std::ssize(json["log_history"]), num_steps);
    EXPECT_TRUE(text == python_json(json, 2) + "\n") << num_steps;
    EXPECT_EQ(num_pieces > 3, num_steps > 1) << "a long history is never whole in memory";
  }
}

RC_GTEST_PROP(TrainerState, EveryDoubleComesBackBitForBit,
              (const std::vector<uint64_t>& patterns)) {
  TrainerState state;
  state.progress.log_history.push_back({.step = 1, .values = {}});
  for (size_t i = 0; i < patterns.size(); ++i) {
    state.progress.log_history[0].values.emplace_back("v" + std::to_string(i),
                                                      std::bit_cast<double>(patterns[i]));
  }
  for (const double value :
       {0.0, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 1e-5, 123456789012345680.0}) {
    state.progress.log_history[0].values.emplace_back(
        "c" + std::to_string(state.progress.log_history[0].values.size()), value);
  }
  const TrainerState again = TrainerState::from_json(to_json(state), "trainer_state.json");
  const auto& values = again.progress.log_history.at(0).values;
  RC_ASSERT(values.size() == state.progress.log_history[0].values.size());
  for (size_t i = 0; i < values.size(); ++i)
    RC_ASSERT(bits_of(values[i].second) == bits_of(state.progress.log_history[0].values[i].second));
}

TEST(TrainerState, ReadsWhatTransformersWritesAndMore) {
  Json json = parse_json(to_json(TrainerState()), "");
  json["eval_steps"] = 500.0;
  json["a_key_of_the_future"] = {{"x", 1}};
  json["stateful_callbacks"] = {{"TrainerControl", {{"args", {{"text", "NaN -Infinity \\"}}}}}};
  json.erase("best_global_step");
  const TrainerState state = TrainerState::from_json(json.dump(2), "trainer_state.json");
  EXPECT_EQ(state.eval_steps, 500);
  EXPECT_FALSE(state.progress.best_global_step);
}

TEST(TrainerState, WrongTypesAndMissingKeysAreNamed) {
  TrainerState state = full_state();
  state.progress.log_history.pop_back();  // its NaN is no JSON
  const Json good = parse_json(to_json(state), "");
  for (const char* key : {"global_step", "epoch", "max_steps", "num_train_epochs", "logging_steps",
                          "eval_steps", "save_steps", "train_batch_size", "log_history",
                          "best_metric", "best_global_step", "best_model_checkpoint"}) {
    Json json = good;
    json[key] = {{"x", 1}};
    EXPECT_EQ(problem_with(json.dump()).where, std::string("trainer_state.json: ") + key);
    json[key] = key == std::string("best_model_checkpoint") ? Json(1) : Json("x");
    EXPECT_EQ(problem_with(json.dump()).where, std::string("trainer_state.json: ") + key);
    if (std::string(key).rfind("best_", 0) == 0) continue;  // those may be absent
    json.erase(key);
    EXPECT_EQ(problem_with(json.dump()).what, "it is missing") << key;
  }
  for (const Json& history :
       {Json::parse(R"([1])"), Json::parse(R"([{"loss": 1.0}])"),
        Json::parse(R"([{"step": 1, "loss": "low"}])"), Json::parse(R"([{"step": 1.5}])"),
        Json::parse(R"([{"step": 1, "loss": null}])")}) {
    Json json = good;
    json["log_history"] = history;
    EXPECT_EQ(problem_with(json.dump()).where.rfind("trainer_state.json: log_history[0]", 0), 0u)
        << history.dump();
  }
  for (const char* key : {"eval_steps", "global_step"}) {
    Json json = good;
    json[key] = 0.5;
    EXPECT_EQ(problem_with(json.dump()).where, std::string("trainer_state.json: ") + key);
  }
  const std::string text = to_json(state);
  for (const std::string& broken :
       {std::string(), std::string("[]"), text.substr(0, text.size() / 2), text + "x",
        std::string("NaN"), std::string("\"\\")}) {
    EXPECT_EQ(problem_with(broken).error, "a trainer_state.json cannot be read") << broken;
  }
}

TEST(TrainerState, TheBestOfAnotherMetricOrSetIsKeptAndNotCompared) {
  const BestOf by_f1{"eval_rollout_f1", true, "set a"};
  for (const BestOf& now :
       {BestOf{"eval_rollout_duplicates", false, "set a"},
        BestOf{"eval_rollout_f1", false, "set a"}, BestOf{"eval_rollout_f1", true, "set b"}}) {
    TrainerState state;
    state.progress.update_best(0.57, true, 1);
    state.progress.best_of = by_f1;
    state.progress.best_model_checkpoint = "run/checkpoint-1";
    state = TrainerState::from_json(to_json(state), "trainer_state.json");
    EXPECT_FALSE(state.progress.reset_best(by_f1)) << "nothing has changed";
    EXPECT_EQ(state.progress.best_metric, 0.57);
    const std::optional<std::string> text = state.progress.reset_best(now);
    ASSERT_TRUE(text);
    EXPECT_NE(text->find("run/checkpoint-1 is kept"), std::string::npos) << *text;
    EXPECT_FALSE(state.progress.best_metric || state.progress.best_model_checkpoint);
    EXPECT_TRUE(state.progress.update_best(0.9, now.greater_is_better, 2));
    state = TrainerState::from_json(to_json(state), "trainer_state.json");
    EXPECT_EQ(state.progress.kept_checkpoints, std::vector<std::string>{"run/checkpoint-1"});
    EXPECT_EQ(state.progress.best_of, now);
  }
}

TEST(TrainerState, TheBestOfAnOlderFileStays) {
  TrainerState state;
  state.progress.update_best(0.57, true, 1);
  state = TrainerState::from_json(to_json(state), "trainer_state.json");
  EXPECT_FALSE(state.progress.reset_best({"eval_loss", false, "set a"}));
  EXPECT_EQ(state.progress.best_metric, 0.57);
}

}  // namespace rematch
