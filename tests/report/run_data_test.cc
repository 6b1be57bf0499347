#include "report/report_fixture.h"
#include "tools/report/score_table.h"

namespace rematch {

TEST_F(ReportTest, ReadsTheFilesOfARun) {
  const std::vector<RunData> all = runs();
  EXPECT_EQ(all[1].name, "after");
  EXPECT_EQ(all[1].log.size(), 2u);
  EXPECT_EQ(all[1].setting("training.seed"), "7");
  ASSERT_EQ(all[1].evaluations.size(), 1u);
  EXPECT_EQ(all[1].evaluations[0].per_class[0].name, "cat");
  EXPECT_FALSE(all[1].evaluations[0].samples_path.empty());
  EXPECT_EQ(read_run(directory_.file("before/eval_results.json")).evaluations.size(), 1u);
}

TEST_F(ReportTest, RunsOfTheSameNameAreDistinguishedByTheirPaths) {
  std::filesystem::create_directories(directory_.file("other"));
  std::filesystem::copy(directory_.file("after"), directory_.file("other/after"),
                        std::filesystem::copy_options::recursive);
  const std::vector<RunData> all =
      read_runs({directory_.file("after"), directory_.file("other/after")});
  EXPECT_NE(all[0].name, all[1].name);
}

TEST_F(ReportTest, ADirectoryThatIsNoRunIsAnError) {
  EXPECT_EQ(test::catch_user_error([&] { read_run(directory_.file("none")); }).kind(),
            ErrorKind::kEnvironment);
  std::filesystem::create_directories(directory_.file("empty"));
  EXPECT_EQ(test::catch_user_error([&] { read_run(directory_.file("empty")); }).kind(),
            ErrorKind::kData);
  directory_.write("before/eval/model.json", "{]");
  EXPECT_EQ(test::catch_user_error([&] { read_run(directory_.file("before")); }).kind(),
            ErrorKind::kData);
}

TEST_F(ReportTest, ReadsTheWholeLinesOfATornLog) {
  const std::string log = directory_.file("after/logging.jsonl"), whole = read_file(log);
  using namespace std::string_literals;
  for (const std::string& rest : {"{\"step\": 3, \"lo"s, "\0\0\0"s, "{\"st\0\0\n"s}) {
    directory_.write("after/logging.jsonl", whole + rest);
    const RunData run = read_run(directory_.file("after"));
    EXPECT_EQ(run.log.size(), 2u);
    ASSERT_EQ(run.warnings.size(), 1u);
    EXPECT_TRUE(has(run.warnings[0], "2 whole lines")) << run.warnings[0];
  }
  directory_.write("after/logging.jsonl", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(read_run(directory_.file("after")).log.size(), 2u);
  EXPECT_TRUE(read_run(directory_.file("after")).warnings.empty());
  directory_.write("after/logging.jsonl", "{]\n" + whole);
  const UserError error = test::catch_user_error([&] { read_run(directory_.file("after")); });
  EXPECT_TRUE(has(error.problems()[0].fix, "remove this line")) << error.what();
}

TEST_F(ReportTest, StepsAndNamesOfAnotherTypeAreLeftOut) {
  const std::string whole = read_file(directory_.file("after/logging.jsonl"));
  directory_.write("after/logging.jsonl",
                   whole + "{\"step\": \"7\"}\n{\"step\": null}\n{\"step\": 1e300}\n[1]\n");
  const RunData run = read_run(directory_.file("after"));
  EXPECT_EQ(run.log.size(), 2u);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(has(run.warnings[0], "left out: 4")) << run.warnings[0];
  directory_.write("x.json",
                   R"({"eval_rollout_f1": 1, "per_class": [{"name": 7}, {"name": null}]})");
  EXPECT_TRUE(read_run(directory_.file("x.json")).evaluations[0].per_class.empty());
}

TEST_F(ReportTest, WeightsThatAreNoCheckpointOfTheRunKeepTheirName) {
  const std::string own = read_file(directory_.file("after/eval/checkpoint-2.json"));
  const auto names = [&] {
    const std::vector<RunData> all = read_runs({directory_.file("after")});
    Strings list;
    for (const NamedEvaluation& one : list_evaluations(all)) list.push_back(one.name);
    return list;
  };
  EXPECT_EQ(names(), (Strings{"after"}));
  for (const char* name : {"a-longer-name", "checkpoint-2-other-weights", "checkpoint-10"})
    directory_.write(std::string("after/eval/") + name + ".json", own);
  EXPECT_EQ(names(), (Strings{"after/a-longer-name", "after/checkpoint-2-other-weights",
                              "after/checkpoint-2", "after/checkpoint-10"}));
  directory_.write("after/checkpoint-10/config.json", "{}");
  std::filesystem::create_directory_symlink("checkpoint-10", directory_.file("after/best"));
  EXPECT_EQ(read_run(directory_.file("after/best")).evaluations.front().name, "checkpoint-10");
  for (const char* name : {"checkpoint-2", "checkpoint-10", "checkpoint-2-other-weights"})
    std::filesystem::remove(directory_.file(std::string("after/eval/") + name + ".json"));
  EXPECT_EQ(names(), (Strings{"after/a-longer-name"})) << "alone it is not the run either";
  directory_.write("after/logging.jsonl",
                   "{\"step\": 2, \"eval_loss\": 3.0}\n{\"step\": 4, \"eval_loss\": 2.0}\n");
  EXPECT_EQ(names(), (Strings{"after/a-longer-name", "after/step 2", "after/step 4"}));
}

TEST_F(ReportTest, ACheckpointMeansItsEvaluation) {
  directory_.write("after/checkpoint-2/config.json", "{}");
  const RunData run = read_run(directory_.file("after/checkpoint-2"));
  EXPECT_EQ(run.name, "checkpoint-2");
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.files.size(), 2u);
  directory_.write("after/other/config.json", "{}");
  const UserError error = test::catch_user_error([&] { read_run(directory_.file("after/other")); });
  EXPECT_TRUE(has(error.what(), "this checkpoint has no evaluation")) << error.what();
  EXPECT_TRUE(has(error.problems()[0].fix, "over the run's custom.val_jsonl"));
  directory_.write("stock/config.json", "{}");  // of no run
  EXPECT_EQ(test::catch_user_error([&] { read_run(directory_.file("stock")); }).problems()[0].fix,
            "run `rematch eval " + directory_.file("stock") +
                " JSONL` and give the eval_results.json that it writes");
}

TEST_F(ReportTest, AnEvaluationInItsRunTakesScoresThatOnlyTheLogHas) {
  const auto evaluate = [&](const std::string& set) {
    directory_.write("trained/eval/checkpoint-9.json",
                     R"({"eval_rollout_f1": 0.5, "eval_set": ")" + set + "\"}");
    return read_run(directory_.file("trained")).evaluations;
  };
  directory_.write("trained/logging.jsonl",
                   "{\"step\": 8, \"eval_loss\": 3.5, \"eval_set\": \"a\"}\n{\"step\": 9, "
                   "\"eval_rollout_f1\": 0.4, \"eval_loss\": 2.5, \"eval_set\": \"a\"}\n");
  ASSERT_EQ(evaluate("a").size(), 1u);
  EXPECT_EQ(evaluate("a")[0].scores.at("eval_rollout_f1"), 0.5);
  EXPECT_EQ(evaluate("a")[0].scores.at("eval_loss"), 2.5);
  EXPECT_FALSE(evaluate("b")[0].scores.contains("eval_loss"));
}

TEST_F(ReportTest, TheTableMarksTheBestAndShowsTheDifference) {
  const std::vector<RunData> all = runs();
  const std::vector<std::vector<std::string>> table = score_table(list_evaluations(all));
  EXPECT_EQ(table[0], (std::vector<std::string>{"score", "before", "after", "last - first"}));
  EXPECT_EQ(table[1], (std::vector<std::string>{"gate F1", "0.400", "0.800*", "+0.400"}));
  for (const auto& row : table) EXPECT_NE(row[0], "COCO AP");  // undefined in both
  EXPECT_TRUE(has(markdown_table(table), "| gate F1 | 0.400 | 0.800* | +0.400 |"));
}

TEST_F(ReportTest, ARunAloneIsComparedWithItsOwnFirstEvaluation) {
  directory_.write(
      "alone/logging.jsonl",
      "{\"step\": 0, \"eval_rollout_f1\": 0.5, \"eval_rollout_label_accuracy\": 0.9}\n"
      "{\"step\": 5, \"loss\": 1.5}\n"
      "{\"step\": 10, \"eval_rollout_f1\": 0.6, \"eval_rollout_label_accuracy\": 0.1}\n");
  const std::vector<RunData> alone{read_run(directory_.file("alone"))};
  EXPECT_EQ(score_table(list_evaluations(alone))[0],
            (std::vector<std::string>{"score", "alone/step 0", "alone/step 10", "last - first"}));
  std::vector<RunData> several = runs();
  several.push_back(alone[0]);
  EXPECT_EQ(list_evaluations(several).size(), 3u);
}

TEST_F(ReportTest, AFileWithoutScoresIsAnError) {
  for (const char* text : {"{}", R"({"num_samples": 3})"}) {
    const std::string path = directory_.write("e.json", text);
    const UserError error = test::catch_user_error([&] { read_run(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].error, "this file holds no scores of an evaluation");
  }
}

TEST_F(ReportTest, ARunAloneIsComparedWithItsFirstEvaluationOverTheSameSet) {
  directory_.write("alone/logging.jsonl",
                   "{\"step\": 0, \"eval_rollout_f1\": 0.9, \"eval_set\": \"a\"}\n"
                   "{\"step\": 5, \"eval_rollout_f1\": 0.5, \"eval_set\": \"b\"}\n"
                   "{\"step\": 10, \"eval_rollout_f1\": 0.6, \"eval_set\": \"b\"}\n");
  const std::vector<RunData> alone{read_run(directory_.file("alone"))};
  EXPECT_EQ(score_table(list_evaluations(alone))[0],
            (std::vector<std::string>{"score", "alone/step 5", "alone/step 10", "last - first"}));
}

TEST_F(ReportTest, NoBestIsMarkedAmongScoresThatAreEqualAsPrinted) {
  EvaluationFile first{.scores = {{"coco_ap50", 0.0011}}},
      second{.scores = {{"coco_ap50", 0.0012}}};
  EXPECT_EQ(score_table({{"a", &first}, {"b", &second}})[1],
            (std::vector<std::string>{"COCO AP50", "0.001", "0.001", "0.000"}));
}

}  // namespace rematch
