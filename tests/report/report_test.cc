#include "report/report.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "draw/canvas.h"
#include "draw/encode.h"
#include "report/curves.h"
#include "report/page.h"
#include "report/score_table.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Two runs: `before`, evaluated only, and `after`, trained and evaluated on one image.
class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    image_ = directory_.write("a.png", encode_png(Canvas(200, 100, kWhite).image()));
    write_run("before", 0.4, 0.9, sample("cat", "dog"));
    write_run("after", 0.8, 0.2, sample("cat", "cat"));
    directory_.write("after/args.json", R"({"model": {"model": "base"}, "training": {"seed": 7}})");
    directory_.write("after/effective_config.txt", "training.seed  7  run.yaml:3:9\n");
    directory_.write("after/logging.jsonl",
                     "{\"step\": 1, \"loss\": 3.0, \"rollout/f1\": 0.4, \"time/step_s\": 2.0, "
                     "\"time/forward_s\": 0.5}\n"
                     "{\"step\": 2, \"loss\": 2.0, \"rollout/f1\": 0.5, \"time/step_s\": 2.0, "
                     "\"time/forward_s\": 0.5}\n");
  }

  std::string sample(const std::string& truth, const std::string& answer) const {
    return fmt::format(
        "{{\"sample_id\": 0, \"images\": [\"{}\"], \"width\": 200, \"height\": 100, \"status\": "
        "\"complete\", \"predictions\": "
        "[{{\"desc\": \"{}\", "
        "\"bbox_2d\": [1, 2, 300, 400]}}], \"ground_truth\": [{{\"desc\": \"{}\", \"bbox_2d\": [1, "
        "2, 300, 400]}}], \"pairs\": [[0, 0]], "
        "\"named_right\": [{}]}}\n",
        image_, answer, truth, truth == answer);
  }
  void write_run(const std::string& name, double f1, double label_accuracy,
                 const std::string& samples) const {
    const std::string json = fmt::format(
        "{{\"eval_rollout_f1\": {}, \"eval_rollout_label_accuracy\": {}, "
        "\"eval_rollout_duplicates\": 0.3, \"eval_rollout_pred_per_gt\": "
        "3.5, "
        "\"eval_rollout_parse_truncated_rate\": 0.5, \"coco_ap\": -1, \"model\": \"<base>\", "
        "\"num_samples\": 1, \"per_class\": "
        "[{{\"name\": \"cat\", "
        "\"truths\": 1, \"f1_labels\": 0.5}}]}}",
        f1, label_accuracy);
    directory_.write(name + "/eval_results.json", json);
    directory_.write(name + "/eval/model.json", json);
    directory_.write(name + "/eval/model.samples.jsonl", samples);
    directory_.write(name + "/eval/model.predictions.json", "[]");
    directory_.write(name + "/eval/model.truth.json", "{}");
  }
  std::vector<RunData> runs() const {
    return read_runs({directory_.file("before"), directory_.file("after/")});
  }

  test::TempDir directory_;
  std::string image_;
};

TEST_F(ReportTest, NamesTheTargetPolicyOnlyOfARunThatRollsOut) {
  const std::string rest =
      R"(, "extra": {"rollout_matching": {"target_policy": "rewrite", "rollout_backend": "native"}}}})";
  directory_.write("after/args.json", R"({"custom": {"trainer_variant": "sft")" + rest);
  EXPECT_EQ(report_html(runs(), {}).find("target policy"), std::string::npos);
  directory_.write("after/args.json",
                   R"({"custom": {"trainer_variant": "rollout_matching_sft")" + rest);
  EXPECT_NE(report_html(runs(), {}).find("target policy"), std::string::npos);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

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

TEST_F(ReportTest, TheTableMarksTheBestAndShowsTheDifference) {
  const std::vector<RunData> all = runs();
  const std::vector<std::vector<std::string>> table = score_table(evaluations_of(all));
  EXPECT_EQ(table[0], (std::vector<std::string>{"score", "before", "after", "last - first"}));
  EXPECT_EQ(table[1], (std::vector<std::string>{"F1", "0.400", "0.800*", "+0.400"}));
  for (const auto& row : table) EXPECT_NE(row[0], "COCO AP");  // undefined in both
  EXPECT_TRUE(has(markdown_table(table), "| F1 | 0.400 | 0.800* | +0.400 |"));
}

TEST_F(ReportTest, ReportsARunThatGotWorse) {
  const std::vector<RunData> all = runs();
  std::vector<std::string> bad;
  for (const HealthItem& item : judge_health(all[1].evaluations[0], &all[0].evaluations[0])) {
    if (!item.good) bad.push_back(item.name);
    EXPECT_EQ(item.good, item.advice.empty()) << item.name;
  }
  EXPECT_EQ(bad, (std::vector<std::string>{
                     "answers that did not end", "predictions that repeat an earlier one",
                     "predictions per truth", "label accuracy, before → after"}));
  EXPECT_TRUE(judge_health({}, nullptr).empty());
}

TEST_F(ReportTest, ARunAloneIsComparedWithItsOwnFirstEvaluation) {
  directory_.write(
      "alone/logging.jsonl",
      "{\"step\": 0, \"eval_rollout_f1\": 0.5, \"eval_rollout_label_accuracy\": 0.9}\n"
      "{\"step\": 5, \"loss\": 1.5}\n"
      "{\"step\": 10, \"eval_rollout_f1\": 0.6, \"eval_rollout_label_accuracy\": 0.1}\n");
  const std::vector<RunData> alone{read_run(directory_.file("alone"))};
  EXPECT_EQ(score_table(evaluations_of(alone))[0],
            (std::vector<std::string>{"score", "alone/step 0", "alone/step 10", "last - first"}));
  EXPECT_TRUE(has(report_html(alone, {}), "Labels are being forgotten"));
  std::vector<RunData> several = runs();
  several.push_back(alone[0]);
  EXPECT_EQ(evaluations_of(several).size(), 3u);
}

TEST_F(ReportTest, ThePageIsSelfContained) {
  const std::string html = report_html(runs(), {});
  EXPECT_LT(html.size(), size_t{5} * 1024 * 1024);
  for (const char* outside : {"http://", "https://", "<link", "src=\"/"})
    EXPECT_FALSE(has(html, outside)) << outside;
  for (const char* part :
       {"Scores", "Health of after", "Labels are being forgotten", "<polyline",
        "Where the time went", "forward 25.0 %", "By class", "data:image/jpeg;base64,",
        "type=\"range\"", "run.yaml:3:9", "prefers-color-scheme"})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_TRUE(has(html, "&lt;base&gt;"));
  EXPECT_FALSE(has(html, "<base>"));
}

TEST_F(ReportTest, TheGalleryStaysWithinItsBytesAndLeavesOutLostImages) {
  EXPECT_FALSE(has(report_html(runs(), {.max_bytes = 10}), "data:image"));
  std::filesystem::remove(image_);
  EXPECT_FALSE(has(report_html(runs(), {}), "data:image"));
}

TEST_F(ReportTest, ASecondStartInTheSameDirectoryIsALineOfItsOwn) {
  directory_.write("twice/logging.jsonl",
                   "{\"step\": 1, \"loss\": 3.0}\n{\"step\": 4, \"loss\": 2.0}\n"
                   "{\"step\": 1, \"loss\": 3.5}\n{\"step\": 4, \"loss\": 2.5}\n");
  const std::string html = curves_html({read_run(directory_.file("twice"))});
  size_t num_lines = 0;
  for (size_t at = html.find("<polyline"); at != std::string::npos;
       at = html.find("<polyline", at + 1))
    ++num_lines;
  EXPECT_EQ(num_lines, 2u) << html;
}

TEST_F(ReportTest, AHeadingStandsOverPicturesOnly) {
  const std::string html = report_html(runs(), {});
  EXPECT_TRUE(has(html, "<h3>Worst</h3>"));
  EXPECT_FALSE(has(html, "Evenly spaced"));  // the only sample is among the worst
  EXPECT_TRUE(has(report_html(runs(), {.num_worst = 0}), "<h3>Evenly spaced"));
}

TEST_F(ReportTest, AShareOfNothingIsADash) {
  directory_.write(
      "after/eval/model.json",
      R"({"eval_rollout_f1": 0.5, "per_class": [{"name": "ghost", "images": 1, "truths": 0, "predictions": 2, "recall": 0.0,
                      "precision_labels": 0.0, "recall_labels": 0.0, "f1_labels": 0.0}]})");
  const std::string html = report_html(runs(), {});
  const std::string row =
      html.substr(html.find("ghost"), html.find("</tr>", html.find("ghost")) - html.find("ghost"));
  EXPECT_EQ(row,
            "ghost</td><td>1</td><td>0</td><td>2</td><td>-</td><td>0.000</td><td>-</td><td>0.000</"
            "td><td>-</td>");
}

TEST_F(ReportTest, AFileWithoutScoresIsAnError) {
  for (const char* text : {"{}", R"({"num_samples": 3})"}) {
    const std::string path = directory_.write("e.json", text);
    const UserError error = test::catch_user_error([&] { read_run(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].error, "this file holds no scores of an evaluation");
  }
}

TEST_F(ReportTest, TimesOfSeveralRanksFillTheBarOnce) {
  directory_.write(
      "ranks/logging.jsonl",
      "{\"step\": 1, \"time/step_s\": 8, \"time/forward_s\": 6, \"time/backward_s\": 4}\n");
  const std::string html = time_split_html({read_run(directory_.file("ranks"))});
  EXPECT_TRUE(has(html, "forward 60.0 %") && has(html, "backward 40.0 %") &&
              has(html, "8 s a step"))
      << html;
}

TEST_F(ReportTest, AnEmptySceneAnsweredAsEmptyIsPerfect) {
  EXPECT_EQ(JudgedSample{}.f1_labels(), 1.0);
  JudgedSample missed;
  missed.truth.resize(1);
  EXPECT_EQ(missed.f1_labels(), 0.0);
}

TEST(Page, EscapesText) { EXPECT_EQ(html_text("<b> & \"x\""), "&lt;b&gt; &amp; &quot;x&quot;"); }

}  // namespace rematch
