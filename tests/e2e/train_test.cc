#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

struct Outcome {
  std::string weights;
  std::string log;
};

Outcome train(const std::string& lines) {
  test::Program program;
  const test::ProcessResult result = program.run("train " + program.config(lines));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return {read_file(program.run_dir() + "/checkpoint-2/model.safetensors"),
          program.log_without_times()};
}

}  // namespace

TEST(Train, StageTwoWritesLogsAndACheckpointThatHoldsEveryFileOfTheModel) {
  test::Program program;
  const test::ProcessResult result = program.run("train " + program.config());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja", "preprocessor_config.json",
                           "generation_config.json", "model.safetensors", "trainer_state.json"}) {
    EXPECT_TRUE(std::filesystem::exists(program.run_dir() + "/checkpoint-2/" + name)) << name;
  }
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json logged = parse_json(line, "logging.jsonl");
  for (const char* name : {"loss", "grad_norm", "learning_rate", "epoch", "loss/ce", "loss/coord",
                           "rollout/f1", "rollout/gt_objects", "rollout/encoded_len_mean",
                           "time/rollout_generate_s", "time/forward_s", "time/step_s"}) {
    EXPECT_TRUE(logged.contains(name)) << name;
  }
  EXPECT_TRUE(std::filesystem::exists(program.run_dir() + "/args.json"));
  EXPECT_NE(read_file(program.run_dir() + "/checkpoint-2/model.safetensors"),
            read_file(test::Program::model() + "/model.safetensors"));
}

TEST(Train, TwoRunsGiveTheSameBits) {
  const Outcome first = train("");
  const Outcome second = train("");
  EXPECT_EQ(first.weights, second.weights);
  EXPECT_EQ(first.log, second.log);
}

TEST(Train, TheNumberOfDataWorkersChangesNothing) {
  const Outcome none = train("data: {dataloader_num_workers: 0}\n");
  const Outcome four = train("data: {dataloader_num_workers: 4}\n");
  EXPECT_EQ(none.weights, four.weights);
  EXPECT_EQ(none.log, four.log);
}

TEST(Train, TheNativeEngineTrainsAsTheOracleDoes) {
  const std::string lines = "training: {max_steps: 2, eval_strategy: steps, eval_steps: 1}\n";
  const Outcome oracle =
      train(lines + "custom: {extra: {rollout_matching: {max_new_tokens: 40}}}\n");
  const Outcome native =
      train(lines +
            "custom: {extra: {rollout_matching: {max_new_tokens: 40, rollout_backend: native, "
            "native: {max_num_seqs: 3, kv_cache_gib: 0.001}}}}\n");
  EXPECT_EQ(native.weights, oracle.weights) << "equal rollouts, equal steps";
  EXPECT_EQ(native.log, oracle.log);
}

TEST(Train, GradientCheckpointingChangesNoBit) {
  const Outcome plain = train("");
  for (const std::string value : {"true", "selective"}) {
    const Outcome lean = train("training: {gradient_checkpointing: " + value + "}\n");
    EXPECT_TRUE(lean.weights == plain.weights) << value;
    EXPECT_EQ(lean.log, plain.log) << value;
  }
}

// spec: microbatch-01
TEST(Train, SamplingGivesTheSameRolloutsWhateverTheGenerateBatch) {
  const auto rollouts = [](int batch_size) {
    test::Program program;
    const std::string config = program.config(
        "custom: {extra: {rollout_matching: {temperature: 0.8, rollout_generate_batch_size: " +
        std::to_string(batch_size) + "}}}\n");
    const test::ProcessResult result =
        program.run("rollout " + config + " --split train --out rollouts.jsonl");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(read_file(program.dir().file("rollouts.jsonl")));
    std::vector<Json> ids;
    for (std::string line; std::getline(lines, line);)
      ids.push_back(parse_json(line, "rollouts.jsonl").at("response_token_ids"));
    return ids;
  };
  const std::vector<Json> one = rollouts(1);
  EXPECT_GT(one.size(), 4u);
  EXPECT_EQ(rollouts(4), one);
}

TEST(Train, StageOneLowersItsLossOnTheScenes) {
  test::Program program;
  const std::string config = program.config(
      "custom: {trainer_variant: sft}\ntraining: {max_steps: 30, learning_rate: 5.0e-3, "
      "eval_strategy: steps, eval_steps: 15}\n");
  const test::ProcessResult result = program.run("train " + config);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string line;
  std::vector<double> losses, eval_losses;
  while (std::getline(lines, line)) {
    const Json logged = parse_json(line, "log");
    if (logged.contains("loss")) losses.push_back(logged["loss"]);
    if (logged.contains("eval_loss")) eval_losses.push_back(logged["eval_loss"]);
  }
  ASSERT_EQ(losses.size(), 30u);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
  ASSERT_EQ(eval_losses.size(), 2u);
  EXPECT_LT(eval_losses[1], eval_losses[0]);
}

TEST(Train, ShareOfTheWindowsRollsOutAndTheOthersTeachTheTruth) {
  for (const std::string tuner : {"", "tuner: {train_type: lora}\n"}) {
    test::Program program;
    const test::ProcessResult result = program.run(
        "train " +
        program.config(
            tuner +
            "training: {max_steps: 5}\ncustom: {coord_input_noise: 5, extra: {rollout_matching: "
            "{target_policy: rewrite, rollout_share: 0.4}}}\n"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
    std::vector<int> rolled_out;
    for (std::string line; std::getline(lines, line);) {
      const Json logged = parse_json(line, "log");
      rolled_out.push_back(logged["rollout/is_rollout"].get<int>());
      for (const char* name :
           {"rollout/f1", "rollout/f1_labels", "rollout/duplicates", "time/rollout_generate_s"}) {
        EXPECT_EQ(logged.contains(name), rolled_out.back() == 1) << name;
      }
      EXPECT_GT(logged["loss/coord"].get<double>(), 0);
    }
    EXPECT_EQ(rolled_out, (std::vector<int>{0, 0, 1, 0, 1})) << "floor(0.4 (w + 1)) > floor(0.4 w)";
  }
}

TEST(Train, NoiseOnCoordinatesIsOfTrainingAndTheSameEveryTime) {
  const std::string stage_1 = "custom: {trainer_variant: sft, coord_input_noise: ";
  const std::string evaluate =
      "}\ntraining: {learning_rate: 0, weight_decay: 0, eval_strategy: steps, eval_steps: 2}\n";
  const Outcome noisy = train(stage_1 + "12}\n"), again = train(stage_1 + "12}\n"),
                plain = train(stage_1 + "0}\n");
  EXPECT_EQ(noisy.weights, again.weights);
  EXPECT_NE(noisy.weights, plain.weights);
  const auto eval_loss = [](const std::string& log) {
    const size_t at = log.find("\"eval_loss\":");
    return log.substr(at, log.find(',', at) - at);
  };
  EXPECT_EQ(eval_loss(train(stage_1 + "12" + evaluate).log),
            eval_loss(train(stage_1 + "0" + evaluate).log));
}

TEST(Train, KeepsTheBestCheckpointWhenSavingByBest) {
  test::Program program;
  const std::string config = program.config(
      "custom: {trainer_variant: sft}\n"
      "training: {max_steps: 6, learning_rate: 5.0e-3, eval_strategy: steps, eval_steps: 2, "
      "save_strategy: best, metric_for_best_model: "
      "eval_loss, save_total_limit: 1}\n");
  const test::ProcessResult result = program.run("train " + config);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json state = parse_json(read_file(program.run_dir() + "/checkpoint-6/trainer_state.json"),
                                "trainer_state.json");
  EXPECT_EQ(state["best_global_step"], 6);
  EXPECT_FALSE(std::filesystem::exists(program.run_dir() + "/checkpoint-2"));
}

TEST(Train, PatienceEndsARunAndCountsOnWhenItResumes) {
  test::Program program;
  const std::string config = program.config(
      "custom: {trainer_variant: sft}\n"
      "training: {max_steps: 8, learning_rate: 0, eval_strategy: steps, eval_steps: 1, "
      "save_strategy: \"no\", early_stopping_patience: 2}\n");
  const test::ProcessResult whole = program.run("train " + config);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string stopped =
      "stopped after step 3 of 8 (training.early_stopping_patience: 2 evaluations without a new "
      "best)\n";
  EXPECT_NE(whole.err.find(stopped), std::string::npos) << whole.err;
  EXPECT_NE(whole.err.find("best  checkpoint-1 "), std::string::npos) << whole.err;
  EXPECT_TRUE(std::filesystem::exists(program.run_dir() + "/checkpoint-3"));
  std::filesystem::remove_all(program.run_dir());
  const std::string two = " --set training.max_steps=2";
  ASSERT_EQ(program.run("train " + config + two).exit_code, 0);
  const test::ProcessResult resumed = program.run("train " + config + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("stopped after step 3 of 8"), std::string::npos) << resumed.err;
}

TEST(Train, AnInterruptSavesTheStateAndExits130) {
  test::Program program;
  const std::string config =
      program.config("training: {max_steps: 100000, save_strategy: \"no\"}\n");
  const std::string log = program.run_dir() + "/logging.jsonl";
  const test::ProcessResult result =
      test::run_command("cd " + program.dir().path() + " && " + test::binary_path("bin/rematch") +
                        " train " + config + " & pid=$!; " + "for i in $(seq 2000); do [ -s " +
                        log + " ] && break; sleep 0.1; done; kill -INT $pid; wait $pid");
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("saving after this step; once more: stop at once"), std::string::npos)
      << result.err;
  bool has_checkpoint = false;
  for (const auto& entry : std::filesystem::directory_iterator(program.run_dir())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find(".tmp"), std::string::npos);
    has_checkpoint =
        has_checkpoint || (name.rfind("checkpoint-", 0) == 0 &&
                           std::filesystem::exists(entry.path() / "model.safetensors"));
  }
  EXPECT_TRUE(has_checkpoint);
}

}  // namespace rematch
