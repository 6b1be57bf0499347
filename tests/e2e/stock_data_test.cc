// Records with their own prompts, and the commands between records and stock data, as a user
// starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kOwnText = "Find the small red shapes.";

Json stock_record(const std::string& image) {
  return {{"messages",
           {{{"role", "user"}, {"content", "<image>Find the cats."}},
            {{"role", "assistant"},
             {"content", R"([{"bbox_2d": [10, 20, 600, 700], "label": "cat"}])"}}}},
          {"images", {image}}};
}

// The golden records of a split, with absolute images and their own prompts.
std::string with_prompts(const test::Program& program, const std::string& name,
                         const std::string& prompt) {
  std::string lines;
  for (const std::string& line : split(read_file(test::Program::golden(name)), '\n')) {
    if (line.empty()) continue;
    Json record = parse_json(line, name);
    record["images"][0] = test::Program::golden(record["images"][0].get<std::string>());
    record["prompt"] = prompt;
    lines += record.dump() + "\n";
  }
  return program.dir().write(name, lines);
}

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (!line.empty()) lines.push_back(parse_json(line, path));
  }
  return lines;
}

}  // namespace

TEST(OwnPrompts, ARolloutAsksEachRecordsOwnText) {
  const test::Program program;
  const std::string own = with_prompts(program, "val.jsonl", kOwnText);
  const std::string yaml = program.config();
  const std::string usual = " --set 'custom.user_prompt=" + std::string(kOwnText) + "'";
  const auto roll_out = [&](const std::string& name, const std::string& settings) {
    const test::ProcessResult result =
        program.run("rollout " + yaml + " --split val --out " + name + settings);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return lines_of(program.dir().file(name));
  };
  const std::vector<Json> plain = roll_out("plain.jsonl", ""),
                          common = roll_out("common.jsonl", usual),
                          each = roll_out("each.jsonl", " --set custom.val_jsonl=" + own);
  ASSERT_EQ(each.size(), common.size());
  ASSERT_FALSE(each.empty());
  for (size_t i = 0; i < each.size(); ++i) {
    EXPECT_EQ(each[i]["prompt_token_ids"], common[i]["prompt_token_ids"]);
    EXPECT_EQ(each[i]["response_token_ids"], common[i]["response_token_ids"]);
    EXPECT_NE(each[i]["prompt_token_ids"], plain[i]["prompt_token_ids"]);
    EXPECT_EQ(each[i]["prompt"], kOwnText);
    EXPECT_FALSE(plain[i].contains("prompt"));
  }
}

TEST(OwnPrompts, BothStagesTrainOnThem) {
  for (const char* stage :
       {"custom: {trainer_variant: sft}\ntraining: {packing: true}\nglobal_max_length: 2048\n",
        "custom: {trainer_variant: rollout_matching_sft}\n"}) {
    const test::Program common, each, plain;
    const auto train = [&](const test::Program& program, const std::string& settings) {
      const test::ProcessResult result = program.run("train " + program.config(stage) + settings);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return program.log_without_times();
    };
    const std::string log =
        train(common, " --set 'custom.user_prompt=" + std::string(kOwnText) + "'");
    EXPECT_EQ(
        train(each, " --set custom.train_jsonl=" + with_prompts(each, "train.jsonl", kOwnText)),
        log);
    EXPECT_NE(train(plain, ""), log);
  }
}

TEST(OwnPrompts, AnotherPromptIsOtherData) {
  const test::Program program;
  const std::string data = with_prompts(program, "train.jsonl", kOwnText);
  const std::string run = "train " + program.config("custom: {trainer_variant: sft}\n") +
                          " --set custom.train_jsonl=" + data +
                          " --set training.max_steps=1 --set training.save_strategy=steps"
                          " --set training.save_steps=1";
  ASSERT_EQ(program.run(run).exit_code, 0);
  with_prompts(program, "train.jsonl", "Find the large blue shapes.");
  const test::ProcessResult resumed =
      program.run(run + " --set training.resume_from_checkpoint=latest");
  EXPECT_EQ(resumed.exit_code, 3) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("custom.train_jsonl (content)"));
}

TEST(OwnPrompts, BadOnesAreNamedWithTheirLine) {
  const test::Program program;
  const std::string data = with_prompts(program, "train.jsonl", " ");
  const test::ProcessResult checked = program.run("data check " + data);
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.out, HasSubstr("line 1: \"prompt\" is blank"));
  const test::ProcessResult trained =
      program.run("train " + program.config() + " --set custom.train_jsonl=" + data);
  EXPECT_EQ(trained.exit_code, 3);
  EXPECT_THAT(trained.err, HasSubstr("train.jsonl:2"));
}

TEST(StockData, TheCommandThatAnErrorNamesReadsTheFile) {
  const test::Program program;
  program.dir().write("stock.jsonl", stock_record(test::Program::golden("images/0.png")).dump());
  const test::ProcessResult result = program.run("data check stock.jsonl");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("from-qwen"));
  const test::ProcessResult read = program.run("data from-qwen stock.jsonl --out data");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("wrote data/stock.jsonl: 1 image, 1 box"));
  EXPECT_EQ(program.run("data check data/stock.jsonl").exit_code, 0);
  EXPECT_EQ(lines_of(program.dir().file("data/stock.jsonl"))[0]["prompt"], "Find the cats.");
}

TEST(StockData, WhatIsLeftOutIsOnTheTerminal) {
  const test::Program program;
  const std::string good = stock_record(test::Program::golden("images/0.png")).dump();
  program.dir().write("stock.jsonl", good + "\n{\"text\": \"x\"}\nnot json\n");
  const test::ProcessResult read = program.run("data from-qwen stock.jsonl --out data");
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out,
              testing::StartsWith("left out 2 of 3 records: 2 × a record that cannot be read\n"));
  EXPECT_THAT(read.out, HasSubstr("stock.jsonl:2"));
}

TEST(StockData, RecordsGoOutAndComeBack) {
  const test::Program program;
  fs::create_directory(program.dir().file("data"));
  fs::copy(test::Program::golden("images"), program.dir().file("data/images"));
  program.dir().write("data/mixed.jsonl", read_file(test::Program::golden("train.jsonl")));
  const test::ProcessResult refused =
      program.run("data to-qwen data/mixed.jsonl --out data/stock.jsonl");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("rematch data boxes data/mixed.jsonl --out NEW"));
  ASSERT_EQ(program.run("data boxes data/mixed.jsonl --out data/boxes.jsonl").exit_code, 0);
  const test::ProcessResult out = program.run("data to-qwen data/boxes.jsonl --out stock.jsonl");
  ASSERT_EQ(out.exit_code, 0) << out.err;
  EXPECT_THAT(out.out, HasSubstr("wrote stock.jsonl: 8 conversations"));
  const test::ProcessResult back =
      program.run("data from-qwen stock.jsonl --out data --split again");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  const std::vector<Json> before = lines_of(program.dir().file("data/boxes.jsonl")),
                          after = lines_of(program.dir().file("data/again.jsonl"));
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i]["objects"], before[i]["objects"]);
    EXPECT_EQ(after[i]["images"], before[i]["images"]);
    EXPECT_FALSE(after[i].contains("prompt"));
  }
}

TEST(StockData, ASplitIsTheSameEachTime) {
  const test::Program program;
  with_prompts(program, "train.jsonl", kOwnText);
  const test::ProcessResult first = program.run("data split train.jsonl --val 0.25 --seed 3");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("wrote train-train.jsonl: 6 records, 6 images"));
  EXPECT_THAT(first.out, HasSubstr("wrote train-val.jsonl: 2 records, 2 images\nnext: rematch init "
                                   "MODEL train-train.jsonl --val train-val.jsonl\n"));
  const std::string val = read_file(program.dir().file("train-val.jsonl"));
  const test::ProcessResult again = program.run("data split train.jsonl --val 0.25 --seed 3");
  EXPECT_THAT(again.out, HasSubstr("replaced train-train.jsonl: 6 records, 6 images\n"
                                   "replaced train-val.jsonl: 2 records, 2 images\n"));
  // They would all draw the same records.
  for (const char* seed : {"-1", "99999999999999999999"})
    EXPECT_EQ(program.run(std::string("data split train.jsonl --seed ") + seed).exit_code, 2);
  EXPECT_EQ(read_file(program.dir().file("train-val.jsonl")), val);
  EXPECT_EQ(program.run("data check train-val.jsonl").exit_code, 0);
  for (const char* share : {"0", "1", "nan", "-1"})
    EXPECT_EQ(program.run(std::string("data split train.jsonl --val ") + share).exit_code, 2)
        << share;
}

}  // namespace rematch
