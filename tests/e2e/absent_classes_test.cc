// `custom.absent_classes`, as a user starts it.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "e2e/program.h"
#include "learn/augment/augmentation.h"
#include "learn/data/dataset.h"
#include "support/paths.h"

namespace rematch {
namespace {

using testing::HasSubstr;

/// The golden records with a prompt that lists their classes; `drawn`: as a training of epoch 0
/// sees it.
void write_lists(const test::Program& program) {
  std::string lists, drawn;
  for (const std::string& line : split(read_file(test::Program::golden("train.jsonl")), '\n')) {
    if (line.empty()) continue;
    Json record = parse_json(line, "train.jsonl");
    std::set<std::string> names;
    for (const Json& object : record["objects"]) names.insert(object["desc"].get<std::string>());
    if (names.empty()) names.insert("green box");
    record["prompt"] = "Find: " + join({names.begin(), names.end()}, ", ") + ".";
    for (Json& image : record["images"]) image = test::Program::golden(image.get<std::string>());
    lists += record.dump() + "\n";
  }
  program.dir().write("lists.jsonl", lists);
  Dataset data = Dataset::load(program.dir().file("lists.jsonl"), {});
  data.offer_classes();
  size_t i = 0;
  for (const std::string& line : split(lists, '\n')) {
    if (line.empty()) continue;
    Json record = parse_json(line, "lists.jsonl");
    const Sample shown =
        augment_sample(data.samples()[i++], {.absent_share = 1, .absent_most = 2}, 42, 0);
    EXPECT_NE(shown.prompt, record["prompt"].get<std::string>());
    record["prompt"] = shown.prompt;
    drawn += record.dump() + "\n";
  }
  program.dir().write("drawn.jsonl", drawn);
}

/// Trains and returns the weights.
/// @param custom  of the configuration, without its closing brace
std::string trained(const test::Program& program, const std::string& custom,
                    const std::string& training, int steps) {
  const test::ProcessResult result =
      program.run("train " + program.config(fmt::format(
                                 "training: {{max_steps: {}, seed: 42, {}}}\ncustom: {}}}\n", steps,
                                 training, custom)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), steps));
}

const std::string kDrawing = "{train_jsonl: lists.jsonl, absent_classes: {share: 1, most: 2}";

}  // namespace

TEST(AbsentClasses, ARunTrainsOnThePromptsThatWereDrawn) {
  for (const std::string stage : {", trainer_variant: sft", ""}) {
    test::Program by_key, by_file, without;
    for (const test::Program* program : {&by_key, &by_file, &without}) write_lists(*program);
    const std::string own = trained(by_key, kDrawing + stage, "", 2);
    EXPECT_TRUE(own == trained(by_file, "{train_jsonl: drawn.jsonl" + stage, "", 2)) << stage;
    EXPECT_FALSE(own == trained(without, "{train_jsonl: lists.jsonl" + stage, "", 2)) << stage;
  }
}

TEST(AbsentClasses, ARunResumesToTheBit) {
  const std::string packed =
      "packing: true, save_strategy: steps, save_steps: 4, lr_scheduler_type: constant, "
      "resume_from_checkpoint: latest";
  test::Program whole, resumed;
  write_lists(whole);
  write_lists(resumed);
  const std::string stage_1 = kDrawing + ", trainer_variant: sft";
  const std::string weights = trained(whole, stage_1, packed, 8);
  trained(resumed, stage_1, packed, 4);
  EXPECT_TRUE(weights == trained(resumed, stage_1, packed, 8));
}

TEST(AbsentClasses, AreRefusedWithoutAListAndShownByCheck) {
  test::Program program;
  const test::ProcessResult refused =
      program.run("check " + program.config("custom: {absent_classes: {share: 0.5}}\n"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no prompt to which absent classes can be added"));
  EXPECT_THAT(refused.err, HasSubstr("--prompt-classes"));
  write_lists(program);
  const std::string yaml = program.config("custom: " + kDrawing + "}\n");
  const test::ProcessResult checked = program.run("check " + yaml);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("absent classes 1 to 2 names"));
  const test::ProcessResult shown =
      program.run("data show lists.jsonl --out sheet.png --augment " + yaml);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
}

TEST(AbsentClasses, AreOfferedByInitAndMeasuredByProbe) {
  test::Program program;
  write_lists(program);
  const std::string offer = "  # absent_classes: {share: 0.5}";
  for (const std::string& records :
       {std::string("lists.jsonl"), test::Program::golden("train.jsonl")}) {
    const std::string out = records == "lists.jsonl" ? "lists.yaml" : "plain.yaml";
    ASSERT_EQ(
        program.run("init " + test::Program::model() + " " + records + " --out " + out).exit_code,
        0);
    const std::string yaml = read_file(program.dir().file(out));
    EXPECT_EQ(yaml.find(offer) != yaml.npos, records == "lists.jsonl") << yaml;
  }
  const std::string probe = "probe " + test::source_path("tests/shapes/model") +
                            " drawn.jsonl --samples 1 --json --set "
                            "custom.extra.rollout_matching.max_new_tokens=60";
  const test::ProcessResult probed = program.run(probe);
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_TRUE(parse_json(probed.out, "probe")["measured"]["absent_answered"].is_number())
      << probed.out;
}

}  // namespace rematch
