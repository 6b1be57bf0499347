// Mixtures of files and augmentation: the same weights for any number of loader threads and after
// a resume in the middle of an epoch, to the bit.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kSteps = 5;

std::string files() {
  return fmt::format("train_jsonl: [{}, {{path: {}, weight: 1.5}}]",
                     test::Program::golden("train.jsonl"), test::Program::golden("val.jsonl"));
}

const char* const kAugment =
    "augment: {hflip: 0.5, crop: 0.4, color: 0.3, hflip_words: true}, dataloader_num_workers: ";

// @param training  more keys of that section
std::string lines(const std::string& custom, const std::string& training, int num_workers) {
  return fmt::format(
      "training: {{max_steps: {}, save_strategy: steps, save_steps: 1, save_total_limit: 9, "
      "packing: true, {}}}\ndata: {{{}{}}}\ncustom: {{{}, {}}}\n",
      kSteps, training, kAugment, num_workers, files(), custom);
}

std::string weights_of(const test::Program& program) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), kSteps));
}

void expect_same_bits(const std::string& custom, const std::string& training) {
  test::Program reference;
  const test::ProcessResult first =
      reference.run("train " + reference.config(lines(custom, training, 0)));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("training samples in an epoch"));
  const std::string weights = weights_of(reference), log = reference.log_without_times();
  for (const int num_workers : {1, 3}) {
    test::Program program;
    const test::ProcessResult result =
        program.run("train " + program.config(lines(custom, training, num_workers)));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(weights_of(program) == weights) << num_workers << " workers";
    EXPECT_EQ(program.log_without_times(), log);
  }
  for (int step = 3; step <= kSteps; ++step)
    fs::remove_all(fmt::format("{}/checkpoint-{}", reference.run_dir(), step));
  const test::ProcessResult resumed = reference.run(
      "train " + reference.config(lines(custom, training + ", resume_from_checkpoint: latest", 1)));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resuming after step 2"));
  EXPECT_TRUE(weights_of(reference) == weights) << "after a resume";
}

}  // namespace

TEST(SmallData, StageTwoGivesTheSameBitsForAnyWorkersAndAfterAResume) {
  expect_same_bits(
      "extra: {rollout_matching: {max_new_tokens: 24, temperature: 0.8, rollout_buffer: {enabled: "
      "true, m_steps: 2}}}",
      "per_device_train_batch_size: 3, gradient_accumulation_steps: 1");
}

TEST(SmallData, StageOneGivesTheSameBitsForAnyWorkersAndAfterAResume) {
  expect_same_bits("trainer_variant: sft, object_ordering: random",
                   "per_device_train_batch_size: 2, gradient_accumulation_steps: 1");
}

TEST(SmallData, AnotherWeightIsAnotherRun) {
  test::Program program;
  const std::string sft = "trainer_variant: sft";
  const test::ProcessResult first =
      program.run("train " + program.config(lines(sft, "seed: 1", 1)));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::string other = lines(sft, "seed: 1, resume_from_checkpoint: latest", 1);
  other.replace(other.find("weight: 1.5"), 11, "weight: 2.0");
  const test::ProcessResult resumed = program.run("train " + program.config(other));
  EXPECT_EQ(resumed.exit_code, 3) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("custom.train_jsonl (content)"));
}

TEST(SmallData, BadInputIsNamed) {
  test::Program program;
  const std::string train = test::Program::golden("train.jsonl"),
                    empty = program.dir().write("empty.jsonl", "\n"),
                    sided = program.dir().write(
                        "sided.jsonl", R"({"images": [")" + test::Program::golden("images") +
                                           R"(/x.png"], "width": 64, "height": 64, "objects": [)"
                                           R"({"desc": "left shoe", "bbox_2d": [1, 2, 3, 4]}]})");
  const auto fails = [&](const std::string& sections, const std::string& part) {
    for (const char* command : {"train ", "check "}) {
      const test::ProcessResult result = program.run(command + program.config(sections));
      EXPECT_NE(result.exit_code, 0) << sections;
      EXPECT_THAT(result.err + result.out, HasSubstr(part)) << command << sections;
    }
  };
  fails("custom: {train_jsonl: [" + train + ", " + train + "]}\n", "a file is listed twice");
  fails("custom: {train_jsonl: [" + train + ", " + empty + "]}\n", empty);
  fails("custom: {train_jsonl: [{path: " + train + ", weight: 0.01}]}\n", "too low to select");
  fails("custom: {train_jsonl: [{path: " + train + ", weight: 0}]}\n", "weight is out of range");
  fails(
      "custom: {train_jsonl: " + sided + "}\ndata: {augment: {hflip: 0.5}, on_bad_sample: skip}\n",
      "left shoe");
  fails("custom: {user_prompt: 'What is on the Left?'}\ndata: {augment: {hflip: 0.5}}\n",
        "custom.user_prompt");
}

}  // namespace rematch
