// `custom.object_ordering: own`: learned from answers, kept with the checkpoint.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "e2e/program.h"
#include "model/vision/image.h"
#include "tools/draw/canvas.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kFromLeft =
    R"({"name": "from left to right", "weights": [-1000, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        "agreement": 0.95, "sorted_agreement": 0.5, "pairs": 900, "found": true})";

std::string order_lines(const std::string& order, const std::string& more = "") {
  return "training: {max_steps: 4, save_strategy: steps, save_steps: 1, packing: true, "
         "resume_from_checkpoint: latest}\ncustom: {trainer_variant: sft, object_ordering: " +
         order + more + "}\ntemplate: {system: List the objects as JSON.}\n";
}

std::string checkpoint(const test::Program& program, int step) {
  return fmt::format("{}/checkpoint-{}", program.run_dir(), step);
}

std::string last_weights(const test::Program& program) {
  return read_file(checkpoint(program, 4) + "/model.safetensors");
}

test::ProcessResult trained(const test::Program& program, const std::string& text) {
  test::ProcessResult result = program.run("train " + program.config(text));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

/// A copy of the model that says how it answers.
std::string model_from_left(const test::Program& program) {
  const std::string model = program.dir().file("model");
  fs::copy(test::Program::model(), model, fs::copy_options::recursive);
  program.dir().write("model/rematch_order.json", kFromLeft);
  return "model: {model: " + model + "}\n";
}

/// A checkpoint that knows the golden scenes, and `num_copies` of their records.
std::string many_shapes(const test::Program& program, int num_copies) {
  std::string records;
  for (int copy = 0; copy < num_copies; ++copy)
    records += read_file(test::Program::golden("train.jsonl"));
  const std::string folder = program.dir().file("records");
  fs::create_directories(folder);
  fs::copy(test::Program::golden("images"), folder + "/images");
  program.dir().write("records/train.jsonl", records);
  return "model: {model: " + test::source_path("tests/shapes/model") +
         "}\ntemplate: {system: List the objects as JSON.}\n"
         "custom: {object_ordering: own, user_prompt: Find every shape., train_jsonl: " +
         folder +
         "/train.jsonl, extra: {rollout_matching: {rollout_backend: native, max_new_tokens: "
         "160}}}\n";
}

/// A picture with boxes of the truth and of answers.
void expect_sheet(const std::string& path) {
  const Image sheet = load_image(path);
  const auto count = [&](const Rgb& color) {
    int64_t pixels = 0;
    for (size_t i = 0; i < sheet.rgb.size(); i += 3)
      pixels +=
          sheet.rgb[i] == color.r && sheet.rgb[i + 1] == color.g && sheet.rgb[i + 2] == color.b;
    return pixels;
  };
  EXPECT_GT(count(kTruthColor), 1000);
  EXPECT_GT(count(kPredictionColor), 1000);
}

}  // namespace

TEST(OwnOrder, IsSortedWhereAnswersHaveNone) {
  test::Program sorted, own;
  trained(sorted, order_lines("sorted"));
  EXPECT_THAT(trained(own, order_lines("own")).err,
              HasSubstr("order     none found in the answers"));
  EXPECT_TRUE(last_weights(own) == last_weights(sorted));
}

TEST(OwnOrder, OfTheCheckpointIsTaughtAndKept) {
  test::Program sorted, own;
  trained(sorted, order_lines("sorted"));
  const std::string model = model_from_left(own);
  EXPECT_THAT(trained(own, model + order_lines("own")).err,
              HasSubstr("order     from left to right"));
  EXPECT_FALSE(last_weights(own) == last_weights(sorted));
  EXPECT_THAT(read_file(checkpoint(own, 4) + "/rematch_order.json"), HasSubstr("left to right"));

  const std::string weights = last_weights(own);
  for (const int step : {3, 4}) fs::remove_all(checkpoint(own, step));
  fs::remove(own.dir().file("model/rematch_order.json"));  // the run has its own
  EXPECT_THAT(trained(own, model + order_lines("own")).err, HasSubstr("resuming after step 2"));
  EXPECT_TRUE(last_weights(own) == weights) << "after a resume";

  const test::ProcessResult stage_2 =
      trained(own, "model: {model: " + checkpoint(own, 4) +
                       "}\ntraining: {run_name: two}\ncustom: {object_ordering: own, extra: "
                       "{rollout_matching: {target_policy: rewrite, rewrite_order: own}}}\n");
  EXPECT_THAT(stage_2.err, HasSubstr("order     from left to right"));
  const test::ProcessResult eval = own.run("eval " + checkpoint(own, 4));
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
}

TEST(OwnOrder, IsLearnedFromAnswersToTrainingPictures) {
  test::Program program;
  const test::ProcessResult result = trained(program, many_shapes(program, 40));
  EXPECT_THAT(result.err, HasSubstr("from the top, as `sorted`, 1.00 of"));
  EXPECT_THAT(read_file(checkpoint(program, 2) + "/rematch_order.json"), HasSubstr("true"));
  expect_sheet(program.run_dir() + "/order.png");
}

TEST(OwnOrder, ProbeDrawsTruthAndAnswers) {
  test::Program program;
  const std::string config = program.config(many_shapes(program, 1));
  const test::ProcessResult probed = program.run("probe " + config + " --samples 1 --sheet a.png");
  EXPECT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_THAT(probed.err, HasSubstr("drawn in a.png"));
  expect_sheet(program.dir().file("a.png"));
  const test::ProcessResult refused = program.run("probe " + config + " --sheet " + config);
  EXPECT_EQ(refused.exit_code, 2) << "would replace the configuration";
}

// A picture that two ranks answer, or none, changes the number of pairs in the file.
TEST(OwnOrder, TwoRanksShareTheAnswersAndGiveTheBitsOfOne) {
  const auto trained_by = [](int num_ranks) {
    test::Program program;
    const std::string config =
        program.config(many_shapes(program, 20) +
                       "training: {exact_ranks: true, per_device_train_batch_size: 1}\n");
    const test::ProcessResult result = test::run_command(fmt::format(
        "cd {} && export OMP_NUM_THREADS=1 && exec {} --no-python --nproc-per-node {} {} train {} "
        "--set training.gradient_accumulation_steps={}",
        program.dir().path(), test::source_path(".venv/bin/torchrun"), num_ranks,
        test::binary_path("bin/rematch"), config, 2 / num_ranks));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return std::pair(read_file(checkpoint(program, 2) + "/rematch_order.json"),
                     read_file(checkpoint(program, 2) + "/model.safetensors"));
  };
  const auto one = trained_by(1), two = trained_by(2);
  EXPECT_THAT(one.first, HasSubstr("\"found\": true"));
  EXPECT_EQ(two.first, one.first);
  EXPECT_TRUE(two.second == one.second) << "other weights";
}

TEST(OwnOrder, ASheetNumbersTheObjectsAsTrainingTeachesThem) {
  test::Program program;
  program.dir().write(
      "two.jsonl",
      fmt::format(R"({{"images": ["{}"], "width": 64, "height": 64, "objects": [{}, {}]}})",
                  test::Program::golden("images/0.png"),
                  R"({"desc": "right", "bbox_2d": [500, 2, 900, 300]})",
                  R"({"desc": "left", "bbox_2d": [3, 400, 300, 900]})") +
          "\n");
  const std::string model = model_from_left(program);
  const auto sheet = [&](const std::string& ordering, const std::string& said) {
    const std::string config = program.config(
        model + "custom: {train_jsonl: two.jsonl, object_ordering: " + ordering + "}\n");
    const test::ProcessResult shown =
        program.run("data show two.jsonl --out sheet.png --augment " + config);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("numbers: " + said));
    return read_file(program.dir().file("sheet.png"));
  };
  const std::string from_top = sheet("sorted", "from the top\n");
  EXPECT_FALSE(sheet("own", "from left to right, 0.95 of 900 pairs") == from_top);
  fs::remove(program.dir().file("model/rematch_order.json"));
  EXPECT_TRUE(sheet("own", "from the top until training learns its own\n") == from_top);
}

TEST(OwnOrder, ADamagedFileIsNamed) {
  test::Program program;
  const std::string model = model_from_left(program);
  program.dir().write("model/rematch_order.json", "{\"name\": \"x\"}");
  const test::ProcessResult result =
      program.run("train " + program.config(model + order_lines("own")));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rematch_order.json"));
}

}  // namespace rematch
