// Stage 1 with training.packing through the program: the data stream is packed, whole samples only.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

constexpr int64_t kNumScenes = 8;
// Two or three of the golden scenes fill a row. With three waiting at a time the third epoch takes
// a row more than the others.
constexpr const char* kThreeEpochs =
    "global_max_length: 2240\n"
    "custom: {trainer_variant: sft}\n"
    "training: {packing: true, packing_buffer: 3, max_steps: -1, num_train_epochs: 3, "
    "per_device_train_batch_size: 1, "
    "gradient_accumulation_steps: 1, learning_rate: 1.0e-3, save_strategy: \"no\"";

std::vector<Json> logged_steps(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::vector<Json> steps;
  for (std::string line; std::getline(lines, line);) {
    Json logged = parse_json(line, "logging.jsonl");
    if (logged.contains("loss")) steps.push_back(std::move(logged));
  }
  return steps;
}

double sum_of(const std::vector<Json>& steps, const char* name) {
  double sum = 0;
  for (const Json& step : steps) sum += step.at(name).get<double>();
  return sum;
}

Json final_state(const test::Program& program, size_t num_steps) {
  const std::string path =
      program.run_dir() + "/checkpoint-" + std::to_string(num_steps) + "/trainer_state.json";
  return parse_json(read_file(path), path);
}

}  // namespace

TEST(StageOnePacking, TakesThePlannedStepsAndTrainsEverySampleOnceAnEpoch) {
  test::Program program;
  const test::ProcessResult result = program.run(
      "train " + program.config(std::string(kThreeEpochs) + ", packing_drop_last: false}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> steps = logged_steps(program);
  std::vector<double> segments_of_epoch(3, 0.0);
  std::vector<int> epoch_steps(3, 0);
  for (const Json& step : steps) {
    const auto epoch = static_cast<size_t>(std::ceil(step.at("epoch").get<double>()) - 1);
    ASSERT_LT(epoch, 3u);
    segments_of_epoch[epoch] += step.at("packing/post_rollout_segments").get<double>();
    ++epoch_steps[epoch];
    EXPECT_LE(step.at("packing/post_rollout_fill").get<double>(), 1.0);
  }
  EXPECT_EQ(segments_of_epoch, (std::vector<double>(3, kNumScenes)));
  EXPECT_EQ(epoch_steps, (std::vector<int>{3, 3, 4}));
  EXPECT_EQ(steps.back().at("epoch"), 3.0);
  const Json state = final_state(program, steps.size());
  EXPECT_EQ(state["max_steps"], steps.size());
  EXPECT_EQ(state["global_step"], steps.size());
  EXPECT_NE(result.err.find(std::to_string(steps.size()) + " optimizer steps"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("left out"), std::string::npos) << result.err;
}

TEST(StageOnePacking, TellsHowManySamplesDropLastLeftOut) {
  test::Program program;
  const test::ProcessResult result = program.run(
      "train " + program.config(std::string(kThreeEpochs) + ", packing_drop_last: true}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // The third epoch's last row holds one scene, a third of it.
  EXPECT_EQ(sum_of(logged_steps(program), "packing/post_rollout_segments"), 3.0 * kNumScenes - 1);
  EXPECT_NE(result.err.find("1 samples of 3 epochs were dropped"), std::string::npos) << result.err;
}

TEST(StageOnePacking, AStepTakesBatchSizeTimesAccumulationRows) {
  test::Program program;
  const std::string config =
      program.config(std::string(kThreeEpochs) + ", packing_drop_last: false}\n") +
      " --set training.per_device_train_batch_size=2 --set training.gradient_accumulation_steps=2";
  const test::ProcessResult result = program.run("train " + config);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> steps = logged_steps(program);
  ASSERT_EQ(steps.size(), 3u);  // of 3, 3 and 4 rows
  for (const Json& step : steps) EXPECT_EQ(step.at("packing/post_rollout_segments"), kNumScenes);
}

TEST(StageOnePacking, PartOfAnEpochTakesPartOfItsSteps) {
  test::Program program;
  const std::string config =
      program.config(std::string(kThreeEpochs) + ", packing_drop_last: false}\n");
  const test::ProcessResult result =
      program.run("train " + config + " --set training.num_train_epochs=1.5");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> steps = logged_steps(program);
  ASSERT_EQ(steps.size(), 5u);  // 3, and half of 3 rounded up
  EXPECT_DOUBLE_EQ(steps.back().at("epoch").get<double>(), 5.0 / 3.0);
}

TEST(StageOnePacking, TwoRunsGiveTheSameBitsWhateverTheWorkers) {
  std::string weights[2];
  for (int i = 0; i < 2; ++i) {
    test::Program program;
    const std::string workers = "data: {dataloader_num_workers: " + std::to_string(3 * i) + "}\n";
    const std::string config = program.config(std::string(kThreeEpochs) + "}\n" + workers);
    const test::ProcessResult result = program.run("train " + config);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    weights[i] = read_file(program.run_dir() + "/checkpoint-" +
                           std::to_string(logged_steps(program).size()) + "/model.safetensors");
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(StageOnePacking, GoesOnFromTheMiddleOfAnEpochAsIfNeverStopped) {
  test::Program program;
  const std::string config =
      program.config(std::string(kThreeEpochs) + ", packing_drop_last: false}\n") +
      " --set training.save_strategy=steps --set training.save_steps=5";
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const std::string last = program.run_dir() + "/checkpoint-10",
                    weights = read_file(last + "/model.safetensors");
  const auto segments = sum_of(logged_steps(program), "packing/post_rollout_segments");
  std::filesystem::remove_all(last);
  const std::string resumed = "train " + config +
                              " --set training.resume_from_checkpoint=" + program.run_dir() +
                              "/checkpoint-5";
  const test::ProcessResult refused = program.run(resumed + " --set training.packing_buffer=4");
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("packing of the data stream differs"), std::string::npos)
      << refused.err;
  const test::ProcessResult result = program.run(resumed);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(last + "/model.safetensors"), weights);
  EXPECT_EQ(sum_of(logged_steps(program), "packing/post_rollout_segments"), segments);
}

TEST(StageOnePacking, EvaluationDoesNotPack) {
  // Evaluated before anything is learnt: the same numbers packed and un-packed.
  std::string evaluated[2];
  for (int i = 0; i < 2; ++i) {
    test::Program program;
    const std::string packing = i == 0 ? "false" : "true";
    const std::string config =
        program.config("custom: {trainer_variant: sft}\ntraining: {packing: " + packing + "}\n");
    const test::ProcessResult result = program.run("eval " + config);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    Json json =
        parse_json(read_file(program.run_dir() + "/eval_results.json"), "eval_results.json");
    ASSERT_TRUE(json.contains("eval_loss"));
    json.erase("eval_runtime");
    json.erase("eval_samples_per_second");
    evaluated[i] = json.dump();
  }
  EXPECT_EQ(evaluated[0], evaluated[1]);
}

TEST(StageOnePacking, ASampleLongerThanARowIsAnErrorBeforeTheModelIsLoaded) {
  test::Program program;
  const std::string config = program.config(std::string(kThreeEpochs) + "}\n");
  const test::ProcessResult result = program.run("train " + config + " --set global_max_length=64");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("line 1 ("), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("cap 64"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("model "), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(program.run_dir() + "/logging.jsonl"));
}

}  // namespace rematch
