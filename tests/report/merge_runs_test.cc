#include "report/merge_runs.h"

#include "report/report_fixture.h"
#include "report/score_table.h"

namespace rematch {
namespace {

class MergeRunsTest : public testing::Test {
 protected:
  MergeRunsTest() {
    evaluation("start", "elsewhere/model", 0.1);
    train("first");
    train("second");
    evaluation("of_first", directory_.file("first/checkpoint-9"), 0.5);
  }
  void train(const std::string& name) const {
    directory_.write(name + "/logging.jsonl",
                     "{\"step\": 9, \"eval_rollout_f1\": 0.4, \"eval_loss\": 2.5, \"eval_set\": "
                     "\"a\"}\n");
  }
  void evaluation(const std::string& name, const std::string& model, double f1,
                  const std::string& set = "a") const {
    directory_.write(name + "/eval_results.json",
                     fmt::format(R"({{"eval_rollout_f1": {}, "model": "{}", "eval_set": "{}"}})",
                                 f1, model, set));
  }
  std::vector<RunData> read(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(directory_.file(name));
    return read_runs(paths);
  }
  std::vector<std::string> columns(const std::vector<std::string>& names) const {
    const std::vector<RunData> runs = read(names);
    std::vector<std::string> found;
    for (const NamedEvaluation& one : list_evaluations(runs)) found.push_back(one.name);
    return found;
  }

  test::TempDir directory_;
};

using Names = std::vector<std::string>;

TEST_F(MergeRunsTest, ARunAndItsEvaluationAreOneColumn) {
  EXPECT_EQ(columns({"start", "first", "of_first"}), (Names{"start", "first"}));
  const RunData merged = read({"start", "first", "of_first"})[1];
  ASSERT_EQ(merged.evaluations.size(), 1u);
  EXPECT_EQ(merged.evaluations[0].scores.at("eval_rollout_f1"), 0.5);
  EXPECT_EQ(merged.evaluations[0].scores.at("eval_loss"), 2.5);  // only the log has it
  EXPECT_EQ(merged.log.size(), 1u);
  EXPECT_EQ(merged.files.size(), 2u);
}

TEST_F(MergeRunsTest, TheMergedRunStandsWhereItsLastPartStood) {
  EXPECT_EQ(columns({"start", "first", "second", "of_first"}), (Names{"start", "second", "first"}));
  EXPECT_EQ(columns({"first", "second", "of_first"}), (Names{"first", "second"}));
  EXPECT_EQ(columns({"start", "of_first", "first", "second"}), (Names{"start", "first", "second"}));
}

TEST_F(MergeRunsTest, AnEvaluationOfAnotherModelStaysApart) {
  EXPECT_EQ(columns({"start", "second", "of_first"}), (Names{"start", "second", "of_first"}));
}

TEST_F(MergeRunsTest, ARelativePathIsComparedFromItsEnd) {
  const std::string parent =
      std::filesystem::path(directory_.file("first")).parent_path().filename();
  evaluation("of_second", parent + "/second/checkpoint-9", 0.7);
  EXPECT_EQ(columns({"start", "second", "of_second"}), (Names{"start", "second"}));
  directory_.write("second/args.json", R"({"custom": {"trainer_variant": "sft"}})");
  EXPECT_TRUE(read({"second", "of_second"})[0].evaluations[0].is_stage1);
  evaluation("of_second", "other/second/checkpoint-9", 0.7);
  EXPECT_EQ(columns({"start", "second", "of_second"}), (Names{"start", "second", "of_second"}));
  evaluation("of_second", "", 0.7);
  EXPECT_EQ(columns({"start", "second", "of_second"}), (Names{"start", "second", "of_second"}));
}

TEST_F(MergeRunsTest, OverAnotherSetTheLogsScoresAreNotMixedIn) {
  evaluation("of_first", directory_.file("first/checkpoint-9"), 0.5, "b");
  const RunData merged = read({"start", "first", "of_first"})[1];
  EXPECT_EQ(merged.evaluations[0].scores.count("eval_loss"), 0u);
}

TEST_F(MergeRunsTest, EvaluationsOfSeveralCheckpointsAreNamedAfterThem) {
  evaluation("of_first_4", directory_.file("first/checkpoint-4"), 0.3);
  EXPECT_EQ(columns({"start", "first", "of_first_4", "of_first"}),
            (Names{"start", "first/checkpoint-4", "first/checkpoint-9"}));
}

}  // namespace
}  // namespace rematch
