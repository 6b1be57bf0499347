// An adapter whose base model changes after its training.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/tiny_checkpoint.h"
#include "program/assembly/ask.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// An adapter trained on the link `last` of a run that has one checkpoint.
struct TrainedOnALink {
  TrainedOnALink() {
    fs::create_directories(program.dir().file("first"));
    fs::copy(test::Program::model(), program.dir().file("first/checkpoint-1"));
    fs::create_directory_symlink("checkpoint-1", program.dir().file("first/last"));
    const test::ProcessResult trained =
        program.run("train " + program.config("model: {model: first/last}\n"
                                              "tuner: {train_type: lora, lora_rank: 2}\n"
                                              "training: {max_steps: 1, learning_rate: 1.0e-2}\n"));
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
  }
  /// The run `first` continues: the link leads to other weights.
  void go_on() const {
    fs::copy(other.path(), program.dir().file("first/checkpoint-2"));
    fs::remove(program.dir().file("first/last"));
    fs::create_directory_symlink("checkpoint-2", program.dir().file("first/last"));
  }
  /// The directory of the base gets other weights.
  void replace_base() const {
    fs::copy_file(other.file("model.safetensors"),
                  program.dir().file("first/checkpoint-1/model.safetensors"),
                  fs::copy_options::overwrite_existing);
  }
  std::string answers() const {
    const test::ProcessResult result = program.run("rollout out/run" + val + " --out r.jsonl");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_file(program.dir().file("r.jsonl"));
  }

  static test::CheckpointCopy changed_model() {
    test::CheckpointCopy copy(test::Program::model());
    copy.tensor("model.language_model.norm.weight").mul_(-1);
    copy.write_weights();
    return copy;
  }

  test::Program program;
  test::CheckpointCopy other = changed_model();
  std::string val = " " + test::Program::golden("val.jsonl");
};

}  // namespace

TEST(MovedBase, AnAdapterOnALinkKeepsTheCheckpointThatItWasTrainedOn) {
  const TrainedOnALink trained;
  const std::string before = trained.answers();
  trained.go_on();
  EXPECT_EQ(trained.answers(), before);
  EXPECT_EQ(read_json_file(trained.program.run_dir() +
                           "/checkpoint-1/adapter_config.json")["base_model_name_or_path"],
            "first/checkpoint-1");
  EXPECT_EQ(trained.program.run("merge out/run --out merged").exit_code, 0);
}

TEST(MovedBase, EveryCommandRefusesOtherWeightsUnlessForced) {
  const TrainedOnALink trained;
  trained.replace_base();
  const std::string image = " " + test::Program::golden("images") + "/0.png";
  const std::vector<std::string> commands{
      "predict out/run" + image + " --max-new-tokens 4",
      "predict first/checkpoint-1" + image + " --adapter out/run --max-new-tokens 4",
      "eval out/run" + trained.val,
      "rollout out/run" + trained.val + " --out r.jsonl",
      "probe out/run" + trained.val + " --samples 1",
      "merge out/run --out merged",
      "merge out/run --model first/checkpoint-1 --out merged"};
  for (const std::string& command : commands) {
    const test::ProcessResult refused = trained.program.run(command);
    EXPECT_EQ(refused.exit_code, 3) << command << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("trained on a base model with other weights")) << command;
    EXPECT_THAT(refused.err, HasSubstr("--force-base"));
    const test::ProcessResult forced = trained.program.run(command + " --force-base");
    EXPECT_EQ(forced.exit_code, 0) << command << forced.err;
    EXPECT_THAT(forced.err,
                HasSubstr("warning: --force-base: first/checkpoint-1 has other weights"))
        << command;
    fs::remove_all(trained.program.dir().file("merged"));
  }
}

// A score is the share of objects that were right with the weights of the training.
TEST(MovedBase, ScoresStayWithTheWeightsThatTheyWereMeasuredOn) {
  const TrainedOnALink trained;
  const std::string scores = trained.program.run_dir() + "/checkpoint-1/rematch_scores.json";
  const auto write_scores = [&](int step) {
    write_file_atomic(scores,
                      fmt::format(R"({{"eval_set": "", "step": {}, "points": [[0.5, 1]]}})", step));
  };
  const auto merged_has_scores = [&](const std::string& options) {
    fs::remove_all(trained.program.dir().file("merged"));
    const test::ProcessResult merged = trained.program.run("merge out/run --out merged" + options);
    EXPECT_EQ(merged.exit_code, 0) << merged.err;
    const bool has = fs::exists(trained.program.dir().file("merged/rematch_scores.json"));
    EXPECT_NE(has, merged.err.find("measured with other weights") != std::string::npos);
    return has;
  };
  write_scores(1);
  EXPECT_TRUE(merged_has_scores(""));
  write_scores(0);
  EXPECT_FALSE(merged_has_scores(""));
  trained.replace_base();
  write_scores(1);
  EXPECT_FALSE(merged_has_scores(" --force-base"));
}

// `eval` keeps no scores of others, and `predict` gives none.
TEST(MovedBase, AForcedBaseAndAnotherPackingAreOtherWeights) {
  JobSource source;
  ModelSettings& model = source.config.settings.model;
  EXPECT_TRUE(has_own_weights(source));
  source.force_base = true;
  EXPECT_FALSE(has_own_weights(source));
  source = {.checkpoint = {.packed = FourBitSettings{}}};
  EXPECT_FALSE(has_own_weights(source)) << "--set model.load_in_4bit=false";
  model.load_in_4bit = true;
  EXPECT_TRUE(has_own_weights(source));
  model.four_bit.use_double_quant = true;
  EXPECT_FALSE(has_own_weights(source));
}

TEST(MovedBase, AnAdapterWithoutARecordIsUsedWithANote) {
  const TrainedOnALink trained;
  fs::remove(trained.program.run_dir() + "/checkpoint-1/rematch_base.json");
  for (const char* command : {"merge out/run --out merged", "eval out/run"}) {
    const test::ProcessResult result =
        trained.program.run(command + (*command == 'e' ? trained.val : ""));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("note: out/run/checkpoint-1 has no rematch_base.json"));
    EXPECT_THAT(result.err, Not(HasSubstr("warning: --force-base")));
  }
}

}  // namespace rematch
