#include "train/trainer_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rematch {

TEST(TrainerState, RemembersTheBestInTheAskedDirection) {
  TrainerState state;
  EXPECT_TRUE(state.update_best(0.5, true, 1));
  EXPECT_FALSE(state.update_best(0.5, true, 2));
  EXPECT_TRUE(state.update_best(0.6, true, 3));
  EXPECT_FALSE(state.update_best(std::nan(""), true, 4));
  EXPECT_EQ(state.best_global_step, 3);
  TrainerState loss;
  EXPECT_TRUE(loss.update_best(2.0, false, 1));
  EXPECT_TRUE(loss.update_best(1.0, false, 2));
  EXPECT_FALSE(loss.update_best(1.5, false, 3));
}

TEST(TrainerState, WritesTransformersFieldNames) {
  TrainerState state;
  state.global_step = 7;
  state.epoch = 0.5;
  state.log_history.push_back({.step = 7, .values = {{"loss", 1.5}}});
  const Json json = parse_json(state.to_json(), "trainer_state.json");
  for (const char* name : {"best_global_step", "best_metric", "best_model_checkpoint", "epoch", "eval_steps", "global_step", "is_hyper_param_search",
                           "is_local_process_zero", "is_world_process_zero", "log_history", "logging_steps", "max_steps",
                           "num_input_tokens_seen", "num_train_epochs", "save_steps", "stateful_callbacks", "total_flos", "train_batch_size",
                           "trial_name", "trial_params"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_EQ(json["log_history"][0]["loss"], 1.5);
  EXPECT_EQ(json["log_history"][0]["step"], 7);
}

}  // namespace rematch
