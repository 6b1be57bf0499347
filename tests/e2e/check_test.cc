// `rematch check`: what `train` would refuse, before anything is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/file.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

}  // namespace

TEST(Check, ReportsWhatItFoundAndWritesNothing) {
  test::Program program;
  const test::ProcessResult result = program.run("check " + program.config());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {"train_jsonl", "8 samples", "parameters", "memory", "`rematch train` can start"})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_FALSE(fs::exists(program.run_dir()));
  const test::ProcessResult help = program.run("check --help");
  for (const char* option : {"--device", "--ranks", "--json", "--config-only", "--gpu-memory"})
    EXPECT_THAT(help.out, HasSubstr(option));
}

TEST(Check, DecodesSomeImagesSinceATruncatedOneHasAGoodHeader) {
  test::Program program;
  EXPECT_THAT(program.run("check --json " + program.config()).out, HasSubstr("8 images decoded"));
  const std::string whole = read_file(test::Program::golden("images/0.png"));
  program.dir().write("cut.png", whole.substr(0, whole.size() / 2));
  program.dir().write("train.jsonl",
                      R"({"images": ["cut.png"], "width": 64, "height": 64, "objects": []})"
                      "\n");
  const std::string check = "check " + program.config() +
                            " --set custom.train_jsonl=train.jsonl --set data.on_bad_sample=";
  const test::ProcessResult refused = program.run(check + "stop");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("truncated"));
  const test::ProcessResult skipped = program.run(check + "skip");
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("truncated"));
}

TEST(Check, FitsAScreenAndShowsAllOnDemand) {
  test::Program program;
  // Short names: how many lines a warning takes must not depend on where the checkout is.
  fs::create_directory_symlink(test::Program::model(), program.dir().file("model"));
  fs::create_directory_symlink(test::Program::golden(""), program.dir().file("data"));
  const std::string config = program.config(
      "model: {model: model}\n"
      "custom: {train_jsonl: data/train.jsonl, val_jsonl: data/val.jsonl}\n");
  const std::string brief = program.run("check " + config).out;
  EXPECT_LE(std::count(brief.begin(), brief.end(), '\n'), 62) << brief;
  EXPECT_THAT(brief, Not(HasSubstr("vllm.swap_space")));
  EXPECT_THAT(brief, HasSubstr("other keys have their defaults (`--all`"));
  const std::string config_only = program.run("check --config-only " + config).out;
  EXPECT_THAT(config_only, HasSubstr("run directory "));
  EXPECT_THAT(program.run("check --all " + config).out, HasSubstr("vllm.swap_space"));
  EXPECT_THAT(program.run("check --all --config-only " + config).out, HasSubstr("vllm.swap_space"));
}

TEST(Check, CutsLongValuesAndNeverTheirOrigins) {
  test::Program program;
  const std::string config =
      program.config("training: {effective_batch_size: 4}\ncustom: {user_prompt: \"" +
                     std::string(90, 'p') + "\"}\n");
  const std::string brief = program.run("check --config-only " + config).out;
  EXPECT_THAT(brief, HasSubstr("from training.effective_batch_size\n"));
  EXPECT_THAT(brief, HasSubstr("ppp…  "));
  for (const std::string& line : split(brief, '\n')) {
    if (!line.starts_with("  ")) continue;
    EXPECT_LE(display_width(line), 80u) << line;
  }
}

TEST(Check, CountsStepsAndSamplesAndWarnsOfShortRuns) {
  test::Program program;  // 8 samples in steps of 4
  const std::string config = program.config();
  const auto check = [&](const std::string& set) {
    return program.run("check " + config + set).out;
  };
  const std::string two = check(" --set training.max_steps=3");
  EXPECT_THAT(two, HasSubstr("3 optimizer steps (12 samples seen)"));
  EXPECT_THAT(two, HasSubstr("too few to learn from; raise"));
  EXPECT_THAT(two, HasSubstr("training.max_steps"));
  const std::string epochs = check(
      " --set training.effective_batch_size=16 --set training.max_steps=-1 --set "
      "training.num_train_epochs=3");
  EXPECT_THAT(epochs, HasSubstr("3 optimizer steps (24 samples seen)"));
  EXPECT_THAT(epochs, HasSubstr("training.num_train_epochs"));
  EXPECT_THAT(check(" --set training.max_steps=400"), Not(HasSubstr("too few")));
}

TEST(Check, WarnsOfAWarmUpThatTheRunDoesNotReachTheEndOf) {
  test::Program program;
  const std::string config = program.config();
  const std::string warning = "training.warmup_steps is 3, and the run has 2 optimizer steps";
  for (const char* command : {"check ", "train "}) {
    const auto output = [&](const std::string& set) {
      const test::ProcessResult result = program.run(command + config + set);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      const std::string text = result.out + result.err;
      return std::regex_replace(text, std::regex("\\s+"), " ");  // `check` breaks long lines
    };
    const std::string text = output(" --set training.warmup_steps=3");
    EXPECT_THAT(text, HasSubstr(warning));
    EXPECT_EQ(text.find(warning), text.rfind(warning)) << text;
    EXPECT_THAT(output(" --set training.warmup_steps=2"), Not(HasSubstr("warmup_steps is")));
  }
}

TEST(Check, SaysWhichOfTwoSetsOfWeightsIsUsed) {
  test::Program program;
  fs::copy(test::Program::model(), program.dir().file("model"));
  program.dir().write("model/model.safetensors.index.json",
                      R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
  const test::ProcessResult result =
      program.run("check " + program.config() + " --set model.model=model --json");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("model/model.safetensors is used, as in transformers"));
}

TEST(Check, WarnsOfClassesInSeveralSpellings) {
  test::Program program;
  const std::string image = test::Program::golden("images/0.png");
  const auto records = [&](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names)
      text += R"({"images": [")" + image +
              R"("], "width": 64, "height": 64, "objects": [{"desc": ")" + name +
              R"(", "bbox_2d": [1, 2, 30, 40]}]})" + "\n";
    return text;
  };
  program.dir().write("train.jsonl", records({"cat", "cat", "Cat", "dog", "dog", "dog"}));
  program.dir().write("val.jsonl", records({"cat", "zebra", "DOG"}));
  const std::string out = program
                              .run("check " + program.config() +
                                   " --set training.eval_strategy=epoch --set "
                                   "custom.train_jsonl=train.jsonl --set "
                                   "custom.val_jsonl=val.jsonl")
                              .out;
  EXPECT_THAT(out, HasSubstr("2 classes in several spellings"));
  EXPECT_THAT(out, HasSubstr("; choose one"));
}

TEST(Check, NamesAllProblemsAtOnceAndTheDeviceFirst) {
  test::Program program;
  const std::string wrong =
      program.config() +
      " --set model.model=nowhere --set custom.train_jsonl=none.jsonl --device cuda:99";
  const test::ProcessResult result = program.run("check " + wrong);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.out, "");
  for (const char* part : {"nowhere", "none.jsonl"}) {
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_LT(result.err.find("cuda"), result.err.find(part));
  }
  const test::ProcessResult as_json = program.run("check --json " + wrong);
  EXPECT_EQ(as_json.exit_code, 4);
  const Json json = parse_json(as_json.out, "check");
  EXPECT_FALSE(json["ok"].get<bool>());
  EXPECT_EQ(json["problems"].size(), 3u) << as_json.out;
  EXPECT_EQ(program.run("check --config-only " + program.config() + " --set model.model=nowhere")
                .exit_code,
            0);
}

TEST(Check, RefusesWhatCannotFitBesideWhateverElseIsWrong) {
  test::Program program;
  const std::string wrong =
      program.config() + " --gpu-memory 0.001 --set custom.train_jsonl=none.jsonl";
  const test::ProcessResult result = program.run("check " + wrong);
  EXPECT_EQ(result.out, "");
  for (const char* part :
       {"none.jsonl", "this run cannot fit the device", "--gpu-memory 0.001", "parameters"})
    EXPECT_THAT(result.err, HasSubstr(part));
  const Json json = parse_json(program.run("check --json " + wrong).out, "check");
  EXPECT_EQ(json["problems"].size(), 2u);
  EXPECT_FALSE(json["plan"]["fits"].get<bool>());
}

TEST(Check, ReadsTheHeadersOfTheWeights) {
  test::Program program;
  fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
  Json config = parse_json(read_file(program.dir().file("model/config.json")), "config.json");
  config["text_config"]["num_hidden_layers"] =
      config["text_config"]["num_hidden_layers"].get<int>() + 1;
  program.dir().write("model/config.json", config.dump());
  const test::ProcessResult result =
      program.run("check " + program.config() + " --set model.model=model");
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr("layers"));
}

TEST(Check, RefusesTheTokenizerOfAnotherModel) {
  test::Program program;
  fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
  const auto expect_refused = [&](const char* what) {
    for (const char* command : {"check ", "train "}) {
      const test::ProcessResult result =
          program.run(command + program.config() + " --set model.model=model");
      EXPECT_EQ(result.exit_code, 3) << result.out;
      EXPECT_THAT(result.err, HasSubstr("the tokenizer belongs to another model"));
      EXPECT_THAT(result.err, HasSubstr(what));
    }
  };
  Json tokenizer = read_json_file(program.dir().file("model/tokenizer.json"));
  Json config = read_json_file(program.dir().file("model/config.json"));
  // An id that the embedding has no row for, of a coordinate that no record may hold.
  const int64_t vocab_size = config["text_config"]["vocab_size"].get<int64_t>();
  for (Json& token : tokenizer["added_tokens"]) {
    if (token["content"] == "<|coord_500|>") token["id"] = vocab_size;
  }
  program.dir().write("model/tokenizer.json", tokenizer.dump());
  expect_refused("its largest id is");
  config["image_token_id"] = config["image_token_id"].get<int>() + 1;
  program.dir().write("model/config.json", config.dump());
  expect_refused("its <|image_pad|> is");
}

TEST(Check, RefusesACheckpointThatTrainingWouldNotResume) {
  test::Program program;
  const std::string config =
      program.config("training: {max_steps: 1, save_strategy: steps, save_steps: 1}\n");
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const std::string resume =
      config + " --set training.max_steps=2 --set training.resume_from_checkpoint=latest";
  const test::ProcessResult same = program.run("check " + resume);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  for (const char* command : {"check ", "train "}) {
    const test::ProcessResult result = program.run(command + resume + " --set training.seed=43");
    EXPECT_EQ(result.exit_code, 3) << result.out;
    EXPECT_THAT(result.err,
                HasSubstr("the checkpoint belongs to another run: training.seed differs"));
  }
}

TEST(Check, JsonOutputHoldsThePlanAndTheConfiguration) {
  test::Program program;
  const test::ProcessResult result = program.run("check --json " + program.config());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "check");
  EXPECT_TRUE(json["ok"].get<bool>());
  EXPECT_GT(json["plan"]["peak_bytes"].get<int64_t>(), 0);
  EXPECT_EQ(json["config"]["model"]["model"], test::Program::model());
  EXPECT_TRUE(json["found"].contains("train_jsonl"));
}

}  // namespace rematch
