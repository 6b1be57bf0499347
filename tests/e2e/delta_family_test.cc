// The family with the delta rule, from the stock directory to the merged adapter: what a user does
// with it.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/stock_checkpoint.h"

namespace rematch {
namespace {

void expect_exit_0(const test::ProcessResult& result) {
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Names, dtypes and the tensors of multi-token prediction are those of the source.
void expect_kept_tensors(const std::string& directory) {
  SCOPED_TRACE(directory);
  const auto source = HfDir::open(test::delta_tied()), saved = HfDir::open(directory);
  ASSERT_EQ(saved->names(), source->names());
  for (const std::string& name : source->names()) {
    EXPECT_EQ(saved->dtype(name), source->dtype(name)) << name;
    if (name.starts_with("mtp.")) {
      EXPECT_TRUE(at::equal(saved->tensor(name), source->tensor(name))) << name;
    }
  }
}

}  // namespace

// Acceptance (g) of Qwen3.5: also through save, merge and resume.
TEST(DeltaFamily, GoesFromTheStockDirectoryThroughBothStagesToAMergedAdapter) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400, test::delta_tied());
  test::Program program;
  const auto path = [&](const std::string& name) { return program.dir().file(name); };
  expect_exit_0(program.run("add-coord-tokens " + stock.path() + " base"));
  expect_kept_tensors(path("base"));
  const std::string config = program.config(
      "model: {model: base, torch_dtype: bfloat16}\n"
      "training: {max_steps: 4, learning_rate: 1.0e-2, save_steps: 2}\n");
  const std::string with_hf = " --set custom.extra.rollout_matching.rollout_backend=hf";
  expect_exit_0(program.run("check " + config + with_hf));
  expect_exit_0(program.run("train " + config +
                            " --set custom.trainer_variant=sft --set training.run_name=one"));
  expect_kept_tensors(path("out/one/checkpoint-4"));
  const Json prompt = read_json_file(path("out/one/checkpoint-4/rematch_prompt.json"));
  EXPECT_EQ(prompt["template_variables"]["enable_thinking"], false);
  const std::string second = "train " + config + with_hf +
                             " --set model.model=out/one/checkpoint-4 --set training.run_name=";
  expect_exit_0(program.run(second + "two"));
  expect_kept_tensors(path("out/two/checkpoint-4"));
  // A resumed run ends with the same bits.
  expect_exit_0(
      program.run(second + "again --set training.resume_from_checkpoint=out/two/checkpoint-2"));
  EXPECT_EQ(read_file(path("out/again/checkpoint-4/model.safetensors")),
            read_file(path("out/two/checkpoint-4/model.safetensors")));
  const std::string with_native = " --set custom.extra.rollout_matching.rollout_backend=native";
  expect_exit_0(program.run("train " + config + with_native +
                            " --set tuner.train_type=lora --set tuner.freeze_vit=true "
                            "--set training.packing=true --set training.run_name=adapter"));
  expect_exit_0(program.run("merge out/adapter/checkpoint-4 --out merged"));
  expect_kept_tensors(path("merged"));
  expect_exit_0(program.run("eval " + config + with_native + " --set model.model=merged"));
}

}  // namespace rematch
