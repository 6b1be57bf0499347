// Runs whose answers are plain digits (BEHAVIOUR 19), as a user starts them.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;

void make_boxes(const test::Program& program) {
  const test::ProcessResult made =
      program.run("data boxes " + test::Program::golden("train.jsonl") + " --out boxes.jsonl");
  ASSERT_EQ(made.exit_code, 0) << made.err;
}

const std::string kDigits =
    "custom: {answer_format: qwen_json, train_jsonl: boxes.jsonl, val_jsonl: boxes.jsonl, ";

std::string weights_of(const test::Program& program, int step) {
  return read_file(
      fmt::format("{}/checkpoint-{}/adapter_model.safetensors", program.run_dir(), step));
}

/// The last line of logging.jsonl.
Json last_logged(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string line, last;
  while (std::getline(lines, line)) last = line;
  return parse_json(last, "logging.jsonl");
}

}  // namespace

// Packing with a carry buffer, reused windows and an adapter; rollouts of three tokens, so that
// most are incomplete.
TEST(DigitRun, ResumesToTheBitInStageTwo) {
  const std::string lines =
      "tuner: {train_type: lora, lora_rank: 4}\n"
      "training: {save_strategy: steps, save_steps: 2, packing: true, "
      "per_device_train_batch_size: 3, learning_rate: 1.0e-2, lr_scheduler_type: constant, "
      "resume_from_checkpoint: latest, ";
  const std::string rollouts =
      kDigits +
      "extra: {rollout_matching: {max_new_tokens: 40, rollout_backend: native, rollout_buffer: "
      "{enabled: true, m_steps: 2}}}}\n";
  const auto trained = [&](const test::Program& program, int steps) {
    const test::ProcessResult result = program.run(
        "train " + program.config(lines + fmt::format("max_steps: {}}}\n", steps) + rollouts));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  test::Program whole, resumed;
  make_boxes(whole);
  make_boxes(resumed);
  trained(whole, 6);
  trained(resumed, 2);
  trained(resumed, 6);
  EXPECT_EQ(weights_of(whole, 6), weights_of(resumed, 6));
  EXPECT_EQ(whole.log_without_times(), resumed.log_without_times());
  EXPECT_EQ(last_logged(whole).value("loss/coord", 0.0), 0) << "there are no coord slots";
}

TEST(DigitRun, TeachesNoisyNumbersInStageOne) {
  test::Program program;
  make_boxes(program);
  const test::ProcessResult result =
      program.run("train " + program.config("training: {max_steps: 2}\n" + kDigits +
                                            "trainer_variant: sft, coord_input_noise: 12}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(last_logged(program)["loss/ce"].get<double>(), 0);
}

// A checkpoint keeps the format; other commands answer and score without names.
TEST(DigitRun, TrainsAndScoresBoxesWithoutNames) {
  test::Program program;
  make_boxes(program);
  std::string nameless;  // the first records, with boxes only
  std::istringstream lines(read_file(program.dir().file("boxes.jsonl")));
  for (std::string line; nameless.size() < 2000 && std::getline(lines, line);) {
    Json record = parse_json(line, "boxes.jsonl");
    for (Json& object : record["objects"]) object.erase("desc");
    nameless += record.dump() + "\n";
  }
  program.dir().write("nameless.jsonl", nameless);
  const std::string custom =
      "custom: {answer_format: qwen_boxes, train_jsonl: nameless.jsonl, val_jsonl: "
      "nameless.jsonl, ";
  for (const std::string rest :
       {"trainer_variant: sft}\n", "extra: {rollout_matching: {max_new_tokens: 40}}}\n"}) {
    const test::ProcessResult result =
        program.run("train " + program.config("training: {max_steps: 2}\n" + custom + rest));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const std::string checkpoint = program.run_dir() + "/checkpoint-2";
  EXPECT_EQ(read_json_file(checkpoint + "/rematch_prompt.json")["answer_format"], "qwen_boxes");
  const test::ProcessResult scored =
      program.run("eval " + checkpoint +
                  " nameless.jsonl --set custom.extra.rollout_matching.max_new_tokens=40");
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
}

TEST(DigitRun, PolygonsAreRefusedWithTheCommandThatConvertsThem) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config("custom: {answer_format: qwen_json}\n"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("rematch data boxes"));
  EXPECT_THAT(result.err, HasSubstr("train.jsonl:1"));
}

// A checkpoint without coord tokens and without rematch_prompt.json, and no configuration.
TEST(DigitRun, AStockCheckpointIsAskedWithoutAConfiguration) {
  test::Program program;
  make_boxes(program);
  const std::string stock = program.dir().file("stock");
  make_directories(stock);
  for (const char* name : {"config.json", "model.safetensors", "preprocessor_config.json",
                           "tokenizer_config.json", "chat_template.jinja"}) {
    write_file_atomic(stock + "/" + name, read_file(test::Program::model() + "/" + name));
  }
  Json tokenizer = read_json_file(test::Program::model() + "/tokenizer.json");
  Json kept = Json::array();
  for (const Json& token : tokenizer["added_tokens"]) {
    if (!token["content"].get<std::string>().starts_with("<|coord_")) kept.push_back(token);
  }
  tokenizer["added_tokens"] = kept;
  write_file_atomic(stock + "/tokenizer.json", tokenizer.dump());

  const std::string length = " --set custom.extra.rollout_matching.max_new_tokens=16";
  for (const std::string command : {"eval", "rollout", "probe"}) {
    const test::ProcessResult result = program.run(command + " stock boxes.jsonl" + length);
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
  }
  const Json found = read_json_file(program.dir().file("output/stock/eval_results.json"));
  EXPECT_EQ(found["num_samples"], 8);
  const test::ProcessResult asked = program.run("eval stock");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, HasSubstr("rematch eval MODEL data/val.jsonl"));
  const test::ProcessResult init = program.run("init stock boxes.jsonl --out c.yaml");
  ASSERT_EQ(init.exit_code, 0) << init.err;
  EXPECT_THAT(read_file(program.dir().file("c.yaml")), HasSubstr("answer_format: qwen_json"));
  EXPECT_THAT(read_file(program.dir().file("c.yaml")), HasSubstr("object_ordering: own"));
  const test::ProcessResult trained = program.run(
      "train " + program.config("model: {model: stock}\ncustom: {train_jsonl: boxes.jsonl}\n"));
  EXPECT_EQ(trained.exit_code, 3) << "training does not guess";
  EXPECT_THAT(trained.err, HasSubstr("custom.answer_format"));
}

}  // namespace rematch
