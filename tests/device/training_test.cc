// Whole trainings with the model on a device that is not the CPU: what they log and save equals
// what the CPU logs and saves.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/add_coord_tokens.h"
#include "model/checkpoint/safetensors.h"
#include "model/stock_checkpoint.h"
#include "program/assembly/run.h"
#include "program/cli/cmd_eval.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

constexpr double kTolerance = 1e-6;
// Tolerance of gradient norms, float32 sums over all parameters.
constexpr double kNormTolerance = 1e-5;

/// One training in this process.
struct Training {
  explicit Training(std::string lines) : lines_(std::move(lines)) {}

  void run(const std::string& device, const std::vector<std::string>& more = {}) {
    // AdamW divides by the size of a gradient: with its default epsilon the rounding of one that
    // ought to be zero would be a whole step.
    std::vector<std::string> overrides{"training.output_dir=" + program_.dir().file("out"),
                                       "training.adam_epsilon=1e-4"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    std::ostringstream out, err;
    Terminal terminal(out, err, {});
    run_training(load_config(program_.config(lines_), overrides),
                 {.device = device, .terminal = terminal});
    said_ = out.str() + err.str();
  }
  const std::string& said() const { return said_; }
  /// Numbers of logging.jsonl, but for what a clock decides.
  std::vector<std::map<std::string, double>> log() const {
    std::vector<std::map<std::string, double>> lines;
    std::istringstream text(program_.log_without_times());
    for (std::string line; std::getline(text, line);) {
      const Json values = parse_json(line, "logging.jsonl");
      lines.emplace_back();
      for (const auto& item : values.items()) {
        if (item.value().is_number()) lines.back()[item.key()] = item.value().get<double>();
      }
    }
    return lines;
  }
  std::shared_ptr<SafetensorsFile> weights(const std::string& file) const {
    return SafetensorsFile::open(program_.run_dir() + "/" + file);
  }
  const test::Program& program() const { return program_; }

 private:
  test::Program program_;
  std::string lines_, said_;
};

void expect_equal(const Training& found, const Training& wanted, const std::string& weights) {
  const auto found_log = found.log(), wanted_log = wanted.log();
  ASSERT_EQ(found_log.size(), wanted_log.size());
  for (size_t i = 0; i < wanted_log.size(); ++i) {
    ASSERT_EQ(found_log[i].size(), wanted_log[i].size()) << "line " << i;
    for (const auto& [name, value] : wanted_log[i]) {
      const double tolerance = name == "grad_norm" ? kNormTolerance : kTolerance;
      EXPECT_NEAR(found_log[i].at(name), value, tolerance * std::max(1.0, std::abs(value)))
          << name << ", line " << i;
    }
  }
  const auto found_weights = found.weights(weights), wanted_weights = wanted.weights(weights);
  ASSERT_EQ(found_weights->names(), wanted_weights->names());
  for (const std::string& name : wanted_weights->names()) {
    EXPECT_LT(
        (found_weights->tensor(name) - wanted_weights->tensor(name)).abs().max().item<double>(),
        kTolerance)
        << name;
  }
}

void compare(const std::string& lines, const std::string& weights) {
  test::pretend_device();
  Training here(lines), there(lines);
  here.run("cpu");
  there.run(test::kPretendName);
  expect_equal(there, here, weights);
  EXPECT_NE(there.said().find("attention: SDPA by groups of lengths for heads of 16"),
            std::string::npos)
      << there.said();
}

/// `rematch eval` in this process.
struct Evaluated {
  Evaluated(const std::string& lines, const std::string& device) {
    const test::Program program;
    EvalArguments arguments;
    arguments.asked.model = program.config(lines);
    arguments.asked.overrides = {"training.output_dir=" + program.dir().file("out")};
    arguments.device = device;
    run_eval(arguments);
    const Json results =
        parse_json(read_file(program.run_dir() + "/eval_results.json"), "eval_results.json");
    for (const auto& item : results.items()) {
      if (item.value().is_number() && item.key().find("time") == std::string::npos &&
          item.key().find("per_s") == std::string::npos)
        scores[item.key()] = item.value().get<double>();
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(program.run_dir())) {
      if (entry.path().string().ends_with(".samples.jsonl"))
        answers = read_file(entry.path().string());
    }
  }
  std::map<std::string, double> scores;
  std::string answers;  ///< of every sample; empty without rollouts
};

const char* const kStage2 =
    "training: {packing: true, learning_rate: 1.0e-4, max_steps: 3, eval_strategy: steps, "
    "eval_steps: 3, save_strategy: steps, save_steps: "
    "1}\n"
    "custom: {extra: {rollout_matching: {post_rollout_pack_scope: window, rollout_buffer: "
    "{enabled: true, m_steps: 2}}}}\n";

}  // namespace

TEST(DeviceTraining, StageOneWithPackingAndEvaluationEqualsTheCpu) {
  compare(
      "training: {packing: true, packing_drop_last: false, learning_rate: 1.0e-4, eval_strategy: "
      "steps, eval_steps: 2}\n"
      "custom: {trainer_variant: sft}\n",
      "checkpoint-2/model.safetensors");
}

TEST(DeviceTraining, StageTwoWithHfPackingAndBufferEqualsTheCpu) {
  compare(kStage2, "checkpoint-3/model.safetensors");
}

TEST(DeviceTraining, StageTwoWithNativeAndDoraEqualsTheCpu) {
  compare(
      "tuner: {train_type: lora, use_dora: true, lora_rank: 3, lora_alpha: 6, lora_dropout: 0, "
      "target_modules: [all-linear]}\n"
      "training: {learning_rate: 1.0e-4, eval_strategy: steps, eval_steps: 2, "
      "gradient_checkpointing: true}\n"
      "custom: {extra: {rollout_matching: {rollout_backend: native}}}\n",
      "checkpoint-2/adapter_model.safetensors");
}

TEST(DeviceTraining, StageTwoWithNativeAndLoraEqualsTheCpu) {
  compare(
      // A device draws its own dropout masks (device/lora_test compares those).
      "tuner: {train_type: lora, lora_rank: 3, lora_alpha: 6, lora_dropout: 0, target_modules: "
      "[all-linear]}\n"
      "training: {packing: true, learning_rate: 1.0e-4}\n"
      "custom: {extra: {rollout_matching: {rollout_backend: native}}}\n",
      "checkpoint-2/adapter_model.safetensors");
}

TEST(DeviceTraining, AFamilyThatAttendsInWindowsEqualsTheCpu) {
  const test::CheckpointCopy stock =
      test::stock_checkpoint(400, test::windows_tied(), "model.embed_tokens.weight");
  const test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("base"), /*untie=*/false);
  compare("model: {model: " + dir.file("base") + "}\ntraining: {learning_rate: 1.0e-4}\n",
          "checkpoint-2/model.safetensors");
}

TEST(DeviceEval, AnswersAndScoresAreThoseOfTheCpu) {
  test::pretend_device();
  for (const std::string lines :
       {"custom: {extra: {rollout_matching: {rollout_backend: native}}}\n",
        "custom: {trainer_variant: sft}\n"}) {
    const Evaluated here(lines, "cpu"), there(lines, test::kPretendName);
    EXPECT_EQ(there.answers, here.answers);
    ASSERT_EQ(there.scores.size(), here.scores.size());
    for (const auto& [name, value] : here.scores)
      EXPECT_NEAR(there.scores.at(name), value, kTolerance * std::max(1.0, std::abs(value)))
          << name;
  }
}

TEST(DeviceTraining, AResumedRunEndsWithTheBitsOfAnUninterruptedOne) {
  test::pretend_device();
  Training whole(kStage2), parts(kStage2);
  whole.run(test::kPretendName);
  parts.run(test::kPretendName);
  for (const char* later : {"/checkpoint-2", "/checkpoint-3"})
    std::filesystem::remove_all(parts.program().run_dir() + later);
  parts.run(test::kPretendName, {"training.resume_from_checkpoint=latest"});
  EXPECT_EQ(parts.program().log_without_times(), whole.program().log_without_times());
  for (const char* file :
       {"checkpoint-3/model.safetensors", "checkpoint-3/training_state/optimizer.safetensors"}) {
    EXPECT_TRUE(read_file(parts.program().run_dir() + "/" + file) ==
                read_file(whole.program().run_dir() + "/" + file))
        << file;
  }
}

}  // namespace rematch
