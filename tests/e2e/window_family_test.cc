// The second family, from the stock directory to the merged adapter: what a user does with it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/stock_checkpoint.h"

namespace rematch {
namespace {

void expect_success(const test::ProcessResult& result) {
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
}

/// Lines of a rollout file without what two backends compute to 1e-5 only.
std::string without_probabilities(const std::string& lines) {
  std::istringstream stream(lines);
  std::string kept;
  for (std::string line; std::getline(stream, line);) {
    Json json = parse_json(line, "rollout");
    EXPECT_EQ(json["token_logprobs"].size(), json["response_token_ids"].size());
    json.erase("token_logprobs");
    json.erase("scores");
    kept += json.dump() + "\n";
  }
  return kept;
}

}  // namespace

TEST(WindowFamily, GoesFromTheStockDirectoryThroughBothStagesToAMergedAdapter) {
  const test::CheckpointCopy stock =
      test::stock_checkpoint(400, test::windows_tied(), "model.embed_tokens.weight");
  test::Program program;
  expect_success(program.run("add-coord-tokens " + stock.path() + " base"));
  EXPECT_EQ(HfDir::open(program.dir().file("base"))->shape("model.embed_tokens.weight"),
            (std::vector<int64_t>{1368, 32}));
  const std::string config =
      program.config("model: {model: base}\ntraining: {max_steps: 4, learning_rate: 1.0e-2}\n");
  expect_success(program.run("check " + config));
  expect_success(program.run("train " + config +
                             " --set custom.trainer_variant=sft --set training.run_name=one"));
  const std::string stage_1 = "out/one/checkpoint-4";
  EXPECT_EQ(HfDir::open(program.dir().file(stage_1))->names(),
            HfDir::open(test::windows_tied())->names());
  expect_success(program.run("train " + config + " --set model.model=" + stage_1 +
                             " --set training.run_name=two"));
  std::string answers;
  for (const std::string backend : {"hf", "native"}) {
    const std::string file = backend + ".jsonl";
    expect_success(program.run("rollout " + config +
                               " --set model.model=out/two/checkpoint-4 --out " + file +
                               " --set custom.extra.rollout_matching.rollout_backend=" + backend));
    const std::string found = without_probabilities(read_file(program.dir().file(file)));
    EXPECT_FALSE(found.empty());
    if (backend == "native") {
      EXPECT_EQ(found, answers);
    }
    answers = found;
  }
  expect_success(
      program.run("train " + config +
                  " --set tuner.train_type=lora --set tuner.trainable_token_indices=[coord_tokens] "
                  "--set training.run_name=rows"));
  expect_success(program.run("merge out/rows/checkpoint-4 --out merged"));
  EXPECT_EQ(HfDir::open(program.dir().file("merged"))->names(),
            HfDir::open(test::windows_tied())->names());
  expect_success(program.run("eval " + config + " --set model.model=merged"));
}

}  // namespace rematch
