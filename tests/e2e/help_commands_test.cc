// Help for a user who does not know the program: help, init, mistyped commands.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(HelpCommands, HelpOfEveryCommandShowsTwoExamples) {
  test::Program program;
  for (const std::string name :
       {"train", "eval", "check", "rollout", "add-coord-tokens", "merge", "doctor", "stage",
        "predict", "compare", "report", "init", "explain", "data", "plan", "probe"}) {
    const test::ProcessResult result = program.run(name + " --help");
    EXPECT_EQ(result.exit_code, 0);
    const size_t examples = result.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos) << name;
    const size_t first = result.out.find("rematch " + name, examples);
    ASSERT_NE(first, std::string::npos) << name;
    EXPECT_TRUE(result.out.find("rematch " + name, first + 1) != std::string::npos) << name;
  }
}

TEST(HelpCommands, WithoutACommandAllAreListed) {
  test::Program program;
  const test::ProcessResult result = program.run("");
  EXPECT_EQ(result.exit_code, 2);
  for (const char* name : {"train", "data", "predict", "report"})
    EXPECT_TRUE(has(result.err, name)) << name;
}

TEST(HelpCommands, AMistypedCommandIsGuessed) {
  test::Program program;
  const test::ProcessResult result = program.run("trian my.yaml");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(has(result.err, "did you mean `rematch train`?")) << result.err;
  const test::ProcessResult inner = program.run("data chekc my.jsonl");
  EXPECT_EQ(inner.exit_code, 2);
  EXPECT_TRUE(has(inner.err, "did you mean `rematch data check`?")) << inner.err;
}

TEST(HelpCommands, InitWritesAConfigurationThatTrains) {
  test::Program program;
  const std::string arguments = "init " + test::Program::model() + " " +
                                test::Program::golden("train.jsonl") + " --val " +
                                test::Program::golden("val.jsonl");
  const test::ProcessResult result = program.run(arguments + " --stage2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string small =
      " --set training.max_steps=1 --set training.report_to=none --set "
      "training.effective_batch_size=4";
  EXPECT_EQ(program.run("check rematch.yaml").exit_code, 0);
  const test::ProcessResult trained = program.run("train rematch.yaml" + small);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  ASSERT_EQ(program.run(arguments + " --stage1 --out one.yaml").exit_code, 0);
  EXPECT_EQ(program.run("train one.yaml" + small).exit_code, 0);
}

TEST(HelpCommands, InitStartsWithStage1WhereCoordTokensWereNeverTrained) {
  test::Program program;
  const std::string arguments = " " + test::Program::golden("train.jsonl") + " --out ";
  const test::ProcessResult fresh =
      program.run("init " + test::Program::model() + arguments + "fresh.yaml");
  ASSERT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_TRUE(has(fresh.out, "stage 1, plain supervised training")) << fresh.out;
  EXPECT_TRUE(has(read_file(program.dir().file("fresh.yaml")), "trainer_variant: sft\n"));
  const test::ProcessResult trained =
      program.run("init " + test::source_path("demo/model") + arguments + "trained.yaml");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(read_file(program.dir().file("trained.yaml")),
                  "trainer_variant: rollout_matching_sft\n"));
}

TEST(HelpCommands, InitChoosesEpochsForTwoHundredSteps) {
  test::Program program;  // of 8 training records
  ASSERT_EQ(program
                .run("init " + test::Program::model() + " " + test::Program::golden("train.jsonl") +
                     " --val " + test::Program::golden("val.jsonl"))
                .exit_code,
            0);
  const std::string yaml = read_file(program.dir().file("rematch.yaml"));
  for (const char* part :
       {"# learning_rate: left out",
        "# 200 epochs of 8 samples in steps of 8: 200 optimizer steps.", "num_train_epochs: 200\n",
        "save_strategy: steps\n  save_steps: 50\n", "eval_strategy: steps\n"})
    EXPECT_TRUE(has(yaml, part)) << part << yaml;
  const test::ProcessResult checked = program.run("check rematch.yaml");
  EXPECT_TRUE(has(checked.out, "200 optimizer steps (1600 samples seen)")) << checked.out;
  EXPECT_FALSE(has(checked.out, "too few")) << checked.out;
}

TEST(HelpCommands, CommandsOfOtherProgramsAreAnswered) {
  test::Program program;
  EXPECT_TRUE(has(program.run("serve out").err, "vllm serve CHECKPOINT"));
  EXPECT_TRUE(has(program.run("resume out").err, "rematch train CONFIG --resume"));
  EXPECT_TRUE(has(program.run("data split a.jsonl --train 0.8").err, "did you mean --val?"));
}

TEST(HelpCommands, InitNamesTheFileToGiveAndTheDownload) {
  test::Program program;
  program.dir().write("data/val.jsonl", "{}\n");
  program.dir().write("data/train.jsonl", "{}\n");
  program.dir().write("data/train-part.jsonl", "{}\n");
  const test::ProcessResult directory = program.run("init " + test::Program::model() + " data");
  EXPECT_EQ(directory.exit_code, 2);
  EXPECT_TRUE(has(directory.err, "data/train.jsonl, data/val.jsonl")) << directory.err;
  const test::ProcessResult hub = program.run("init Someone/Model-2B data/train.jsonl");
  EXPECT_EQ(hub.exit_code, 4);
  EXPECT_TRUE(has(hub.err, "hf download Someone/Model-2B")) << hub.err;
}

TEST(HelpCommands, InitMeasuresTheValidationRecordsToo) {
  test::Program program;
  const std::string image = test::Program::golden("images/0.png");
  std::string objects = R"({"desc": "cat", "bbox_2d": [1, 2, 3, 4]})";
  program.dir().write(
      "short.jsonl",
      fmt::format(R"({{"images": ["{}"], "width": 64, "height": 64, "objects": [{}]}})", image,
                  objects) +
          "\n");
  for (int i = 0; i < 40; ++i) objects += R"(, {"desc": "cat", "bbox_2d": [1, 2, 3, 4]})";
  program.dir().write(
      "long.jsonl",
      fmt::format(R"({{"images": ["{}"], "width": 64, "height": 64, "objects": [{}]}})", image,
                  objects) +
          "\n");
  ASSERT_EQ(program.run("init " + test::Program::model() + " short.jsonl --val long.jsonl --stage1")
                .exit_code,
            0);
  const test::ProcessResult checked = program.run("check rematch.yaml");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

TEST(HelpCommands, InitOverwritesNothingAndNamesWhatIsMissing) {
  test::Program program;
  program.dir().write("rematch.yaml", "mine\n");
  const test::ProcessResult exists =
      program.run("init " + test::Program::model() + " " + test::Program::golden("train.jsonl"));
  EXPECT_EQ(exists.exit_code, 2);
  EXPECT_EQ(read_file(program.dir().file("rematch.yaml")), "mine\n");
  // A mistake in the arguments comes first.
  const std::string init = "init " + test::Program::model();
  EXPECT_EQ(program.run(init + " none.jsonl").exit_code, 4);
  EXPECT_EQ(program.run(init + " none.jsonl --out a.yaml").exit_code, 4);
}

TEST(HelpCommands, OptionsOfOtherProgramsAreAnsweredWithSet) {
  test::Program program;
  const std::string train = "train " + program.config();
  for (const auto& [typed, answer] : std::vector<std::pair<std::string, std::string>>{
           {"--max_steps 3", "did you mean --set training.max_steps=3?"},
           {"--lr 1e-4 --epochs=2",
            "did you mean --set training.learning_rate=1e-4 --set "
            "training.num_train_epochs=2?"},
           {"training.seed=1", "did you mean --set training.seed=1?"},
           {"--frobnicate_all 3", "see `rematch train --help`"}}) {
    const test::ProcessResult result = program.run(train + " " + typed);
    EXPECT_EQ(result.exit_code, 2) << typed;
    EXPECT_TRUE(has(result.err, answer)) << result.err;
    EXPECT_TRUE(has(result.err, "not expected: " + typed)) << result.err;
  }
}

TEST(HelpCommands, WordsOfOtherProgramsAreAnsweredWithOurs) {
  test::Program program;
  program.dir().write("a.jsonl", "{}\n");
  for (const auto& [typed, answer] : std::vector<std::pair<std::string, std::string>>{
           {"sft --model m", "did you mean `rematch train`?"},
           {"infer m", "did you mean `rematch predict`?"},
           {"export m", "did you mean `rematch merge`?"},
           {"help train", "did you mean `rematch train --help`?"},
           {"-v", "did you mean `rematch --version`?"},
           {"data merge a b", "unknown command `merge`"},
           {"data check", "see `rematch data check --help`"},
           {"train --config a.yaml", "give it without the option's name: `rematch train CONFIG`"},
           {"predict --model m --source p", "`rematch predict MODEL IMAGE`"},
           {"predict m p.jpg --conf 0.25", "did you mean --min-score?"},
           {"predict m p.jpg --save", "did you mean --draw?"},
           {"train a.yaml --resum", "did you mean --resume?"},
           {"eval m --nmae x", "see `rematch eval --help`"},
           {"predict m p.jpg --drw d", "did you mean --draw?"},
           {"init a.jsonl .", "the model is not a directory"},
           {"eval a.jsonl .", "this is a JSONL of records, not a configuration"},
           {"plan a.yaml --gpu-memory 24GB", "24GB is not a number of GiB"},
           {"train a.yaml --imgsz 640", "for 640 x 640 write 409600"},
           {"probe a.yaml --temperature nan",
            "did you mean --set custom.extra.rollout_matching.temperature=VALUE?"},
           {"train a.yaml --set training.seed 1", "use --set KEY=VALUE"},
           {"train . a.jsonl", "write a CONFIG first: rematch init MODEL a.jsonl"}}) {
    const test::ProcessResult result = program.run(typed);
    EXPECT_EQ(result.exit_code, 2) << typed;
    EXPECT_TRUE(has(result.err, answer)) << typed << "\n" << result.err;
  }
}

TEST(HelpCommands, WhatIsNotThereEndsEveryCommandWithOneCodeAndOneSentence) {
  test::Program program;
  program.dir().write("a.jsonl", "{}\n");
  for (const auto& [typed, thing] : std::vector<std::pair<std::string, std::string>>{
           {"train none.yaml", "configuration file"},
           {"check none.yaml", "configuration file"},
           {"plan none.yaml", "configuration file"},
           {"rollout none.yaml --out o", "configuration file"},
           {"eval nowhere", "model"},
           {"eval nowhere a.jsonl", "model"},
           {"probe nowhere a.jsonl", "model"},
           {"plan nowhere", "model"},
           {"init nowhere a.jsonl", "model"},
           {"add-coord-tokens nowhere o", "model"},
           {"eval Qwen/Qwen3-VL-2B a.jsonl", "model"},
           {"merge nowhere --out o", "adapter"},
           {"predict nowhere none.jpg", "image"},
           {"report nowhere", "run"},
           {"compare nowhere", "run"},
           {"data from-voc nowhere --out o", "file or directory"},
           {"data from-coco a.jsonl --images nowhere --out o", "directory of images"},
           {"data from-yolo . --images nowhere --out o", "directory of images"},
           {"data from-labelme nowhere --out o", "file or directory"}}) {
    const test::ProcessResult result = program.run(typed);
    EXPECT_EQ(result.exit_code, 4) << typed;
    EXPECT_TRUE(has(result.err, "error: the " + thing + " does not exist\n")) << typed << "\n"
                                                                              << result.err;
    EXPECT_TRUE(has(result.err, "what:  no file or directory has this name")) << result.err;
  }
  EXPECT_TRUE(has(program.run("eval Qwen/Qwen3-VL-2B a.jsonl").err,
                  "`hf download Qwen/Qwen3-VL-2B --local-dir "));
  for (const char* typed : {"data check none.jsonl", "data show none.jsonl --out s.png",
                            "init . none.jsonl", "eval none.jsonl --answers b --format qwen_json"})
    EXPECT_EQ(program.run(typed).exit_code, 4) << typed;
}

TEST(HelpCommands, ATerminalGetsHelpAndErrorsAtItsWidth) {
  test::Program program;
  for (const char* arguments : {"train --help", "data show --help", "explain qqqqqqqqqq"}) {
    const test::ProcessResult result =
        test::run_command("cd " + program.dir().path() + " && script -qec 'stty cols 72; " +
                          test::binary_path("bin/rematch") + " " + arguments + "' /dev/null");
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (has(line, "  rematch ")) continue;      // examples can be copied
      EXPECT_LE(line.size(), 72u + 20u) << line;  // color, and characters of several bytes
    }
  }
  EXPECT_FALSE(has(program.run("data show --help").out, "INT:INT"));
}

TEST(HelpCommands, ACommandThatOnlyAsksHasNoBatchOfTraining) {
  test::Program program;
  EXPECT_TRUE(has(program.run("eval my.yaml --batch-size 4").err,
                  "did you mean --set training.per_device_eval_batch_size="));
  EXPECT_TRUE(has(program.run("train my.yaml --batch-size 4").err,
                  "did you mean --set training.effective_batch_size=4?"));
}

}  // namespace rematch
