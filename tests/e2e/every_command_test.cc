// Every command of `rematch --help`: something it does, and two mistakes that end with an error
// that says where and how to fix it.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "e2e/program.h"
#include "model/stock_checkpoint.h"

namespace rematch {
namespace {

/// A mistake: arguments, exit code, and a word of the error.
struct Mistake {
  std::string arguments;
  int exit_code;
  std::string says;
};

struct CommandCase {
  std::string name;
  std::string works;  ///< arguments with which it succeeds
  Mistake first, second;
  std::string input = "";  ///< standard input of all three
};

/// @param stock  model directory without coord tokens
std::vector<CommandCase> cases(const test::Program& program, const std::string& stock) {
  const std::string yaml =
      program.config("training: {max_steps: 1}\ncustom: {val_sample_limit: 2}\n");
  program.dir().write("typo.yaml", "extends: base.yaml\ntraining: {learning_rte: 1}\n");
  const std::string model = test::Program::model(), data = test::Program::golden("train.jsonl"),
                    image = test::Program::golden("images/0.png");
  const std::string lora = test::source_path("tests/golden/lora/lora");
  const Mistake no_config{"gone.yaml", 4, "gone.yaml"}, typo{"typo.yaml", 2, "learning_rate"};
  return {
      {"train", yaml, no_config, typo},
      {"eval", yaml, no_config, {yaml + " --set custom.val_jsonl=null", 2, "val_jsonl"}},
      {"check", yaml, no_config, typo},
      {"plan", model, {"gone", 4, "gone"}, {model + " --ranks 0", 2, "ranks"}},
      {"rollout", yaml + " --split val", typo, {yaml + " --split test", 2, "split"}},
      {"probe", yaml + " --samples 1", typo, {yaml + " --samples 0", 2, "samples"}},
      {"add-coord-tokens", stock + " coords", {"gone out2", 4, "gone"}, {model, 2, "OUT"}},
      {"merge",
       lora + " --model " + model + " --out merged",
       {"gone --out merged2", 4, "gone"},
       {lora, 2, "--out"}},
      {"doctor", "", no_config, {"--device tpu", 2, "tpu"}},
      {"stage",
       "parse --model " + model,
       {"prase --model " + model, 2, "prase"},
       {"parse --model gone", 4, "gone"},
       "{\"response_token_ids\": [1]}\n"},
      {"data",
       "check " + data,
       {"check gone.jsonl", 4, "gone.jsonl"},
       {"chekc " + data, 2, "check"}},
      {"init",
       model + " " + data + " --out first.yaml",
       {model + " gone.jsonl --out b.yaml", 4, "gone.jsonl"},
       {model, 2, "JSONL"}},
      {"predict",
       model + " " + image + " --max-new-tokens 4",
       {model + " gone.png", 4, "gone.png"},
       {model, 2, "IMAGE"}},
      {"compare", "out/scored out/scored", {"out/gone", 4, "gone"}, {"", 2, "RUN"}},
      {"report",
       "out/scored --out page.html",
       {"out/gone", 4, "gone"},
       {"out/scored --worst -1", 2, "worst"}},
      {"explain", "learning_rate", {"lerning_rate", 2, "learning_rate"}, {"", 2, "KEY"}},
  };
}

/// Names below "Subcommands:" in `rematch --help`.
std::set<std::string> listed_commands(const test::Program& program) {
  std::istringstream help(program.run("--help").out);
  std::set<std::string> names;
  bool within = false;
  for (std::string line; std::getline(help, line);) {
    if (line == "Subcommands:")
      within = true;
    else if (within && line.empty())
      break;
    else if (within && line.size() > 2 && line[2] != ' ')
      names.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

}  // namespace

TEST(EveryCommand, SucceedsOnceAndNamesTwoMistakes) {
  test::Program program;
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  const std::vector<CommandCase> all = cases(program, stock.path());
  ASSERT_EQ(program.run("eval run.yaml --set training.run_name=scored").exit_code, 0);
  std::set<std::string> tried;
  for (const auto& [name, works, first, second, input] : all) {
    SCOPED_TRACE(name);
    tried.insert(name);
    const test::ProcessResult good = program.run(name + " " + works, input);
    EXPECT_EQ(good.exit_code, 0) << good.err;
    for (const Mistake& mistake : {first, second}) {
      const test::ProcessResult bad = program.run(name + " " + mistake.arguments, input);
      EXPECT_EQ(bad.exit_code, mistake.exit_code) << mistake.arguments << "\n" << bad.err;
      EXPECT_NE(bad.err.find(mistake.says), std::string::npos) << bad.err;
      for (const char* part : {"error: ", "where: ", "fix:"})
        EXPECT_NE(bad.err.find(part), std::string::npos) << bad.err;
    }
  }
  EXPECT_EQ(tried, listed_commands(program));
}

}  // namespace rematch
