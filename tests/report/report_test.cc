#include "report/report.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "draw/canvas.h"
#include "draw/encode.h"
#include "report/answer_sheet.h"
#include "report/curves.h"
#include "report/judged_sample.h"
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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The text between the first `begin` and the `end` that follows it.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

Json data_of(const std::string& page) {
  return parse_json(between(page, R"(id="data">)", "</script>"), "page");
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_F(ReportTest, NamesTheTargetPolicyOnlyForARunThatRollsOut) {
  const std::string rest =
      R"(, "extra": {"rollout_matching": {"target_policy": "rewrite", "rollout_backend": "native"}}}})";
  const auto facts = [&](const std::string& variant) {
    directory_.write("after/args.json",
                     R"({"custom": {"trainer_variant": ")" + variant + "\"" + rest);
    return data_of(report_html(runs(), {}))["runs"].back()["facts"];
  };
  const Json policy = Json::array({"target policy", "rewrite"});
  for (const Json& fact : facts("sft")) EXPECT_NE(fact, policy);
  const Json rolling = facts("rollout_matching_sft");
  EXPECT_NE(std::find(rolling.begin(), rolling.end(), policy), rolling.end());
}

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

TEST_F(ReportTest, ATornLogIsReadAsFarAsItIsWhole) {
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

TEST_F(ReportTest, GeometriesThatCannotBeDrawnAreErrors) {
  for (const char* box : {"[]", "[1, 2, 3]", "[0, 0, 10, 2000000000]", "[-5, 0, 10, 10]"}) {
    directory_.write(
        "after/eval/model.samples.jsonl",
        fmt::format("{{\"sample_id\": 0, \"images\": [\"x.png\"], \"status\": \"ok\", \"pairs\": "
                    "[], \"named_right\": [], \"predictions\": [], \"ground_truth\": [{{\"desc\": "
                    "\"cat\", \"bbox_2d\": {}}}]}}\n",
                    box));
    EXPECT_EQ(test::catch_user_error([&] { report_html(runs(), {}); }).kind(), ErrorKind::kData)
        << box;
  }
}

TEST_F(ReportTest, ACheckpointMeansItsEvaluation) {
  directory_.write("after/model/config.json", "{}");
  const RunData run = read_run(directory_.file("after/model"));
  EXPECT_EQ(run.name, "model");
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.files.size(), 2u);
  directory_.write("after/other/config.json", "{}");
  const UserError error = test::catch_user_error([&] { read_run(directory_.file("after/other")); });
  EXPECT_TRUE(has(error.what(), "this checkpoint has no evaluation")) << error.what();
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
  const Json advice = data_of(report_html(alone, {}))["health"].back()["advice"];
  EXPECT_TRUE(has(advice.get<std::string>(), "Labels are being forgotten"));
  std::vector<RunData> several = runs();
  several.push_back(alone[0]);
  EXPECT_EQ(evaluations_of(several).size(), 3u);
}

TEST_F(ReportTest, ThePageLoadsNothing) {
  const std::string page = report_html(runs(), {});
  EXPECT_LT(page.size(), size_t{5} * 1024 * 1024);
  for (const char* outside : {"https://", "<link", "src=\"", "@import", "url("})
    EXPECT_FALSE(has(page, outside)) << outside;
  EXPECT_EQ(count_of(page, "http://"), 1u);  // the name of SVG
  for (const char* part : {"default-src 'none'", "prefers-color-scheme", "'use strict'", "<title>"})
    EXPECT_TRUE(has(page, part)) << part;
  for (const char* mark : {"@STYLE@", "@SCRIPT@", "@DATA@"}) EXPECT_FALSE(has(page, mark)) << mark;
}

TEST_F(ReportTest, TheDataHoldEverythingThatThePageShows) {
  const Json data = data_of(report_html(runs(), {}));
  EXPECT_EQ(data["title"], "before, after");
  EXPECT_EQ(data["last"], "after");
  EXPECT_EQ(data["runs"][1]["facts"],
            parse_json(R"([["model", "base"], ["seed", "7"], ["steps", "2"],
                           ["evaluated", "<base>, 1 samples"]])",
                       "facts"));
  EXPECT_EQ(data["scores"][1][2], "0.800*");
  EXPECT_EQ(data["health"][0]["name"], "answers that did not end");
  EXPECT_EQ(data["curves"]["names"], parse_json(R"([null, "after"])", "names"));
  EXPECT_EQ(data["curves"]["charts"][0],
            parse_json(R"({"title": "loss", "runs": [{"lines": [], "dots": []},
                           {"lines": [[[1.0, 3.0], [2.0, 2.0]]], "dots": []}]})",
                       "chart"));
  EXPECT_EQ(data["times"][0]["name"], "after");
  EXPECT_EQ(data["classes"][1][0], "cat");
  EXPECT_TRUE(data["counts"].empty());
  EXPECT_EQ(data["gallery"]["has_before"], true);
  const Json& sample = data["gallery"]["groups"][0]["samples"][0];
  EXPECT_EQ(sample["truth"][0]["desc"], "cat");
  EXPECT_EQ(sample["before"][0]["desc"], "dog");
  EXPECT_EQ(sample["after"][0]["bbox_2d"], Json::array({1, 2, 300, 400}));
  EXPECT_TRUE(has(data["settings"][0]["text"], "run.yaml:3:9"));
}

TEST_F(ReportTest, LabelsNeverBecomeMarkup) {
  const std::string hostile = "</script><script>alert(1)</script><!--<script><img src=x>@DATA@";
  write_run("after", 0.8, 0.2, sample(hostile, hostile));
  directory_.write("after/effective_config.txt", hostile + "\xFF");
  const std::string page = report_html(runs(), {});
  const size_t begin = page.find(R"(id="data">)") + 10;
  EXPECT_EQ(page.substr(begin, page.find("</script>") - begin).find('<'), std::string::npos);
  EXPECT_EQ(count_of(page, "<script"), 2u);
  EXPECT_EQ(count_of(page, "</script>"), 2u);
  const Json data = data_of(page);
  EXPECT_EQ(data["gallery"]["groups"][0]["samples"][0]["after"][0]["desc"], hostile);
  EXPECT_EQ(data["settings"][0]["text"], hostile + "\xEF\xBF\xBD");
  // The script knows no way from text to markup.
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                          "createContextualFragment", "DOMParser", "srcdoc"})
    EXPECT_FALSE(has(page, way)) << way;
}

TEST_F(ReportTest, TheGalleryStaysWithinItsBytesAndLeavesOutLostImages) {
  const auto groups = [&](const GalleryOptions& options) {
    return data_of(report_html(runs(), options))["gallery"]["groups"].size();
  };
  EXPECT_EQ(groups({}), 1u);
  EXPECT_EQ(groups({.max_bytes = 10}), 0u);
  std::filesystem::remove(image_);
  EXPECT_EQ(groups({}), 0u);
}

TEST_F(ReportTest, ASecondStartInTheSameDirectoryIsALineOfItsOwn) {
  directory_.write("twice/logging.jsonl",
                   "{\"step\": 1, \"loss\": 3.0}\n{\"step\": 4, \"loss\": 2.0}\n"
                   "{\"step\": 1, \"loss\": 3.5}\n{\"step\": 4, \"loss\": 2.5}\n");
  const Json curves = collect_curves({read_run(directory_.file("twice"))});
  EXPECT_EQ(curves["charts"][0]["runs"][0]["lines"],
            parse_json("[[[1.0, 3.0], [4.0, 2.0]], [[1.0, 3.5], [4.0, 2.5]]]", "lines"));
}

TEST_F(ReportTest, LongCurvesBecomeMeans) {
  std::string log;
  for (int step = 1; step <= 1000; ++step)
    log += fmt::format("{{\"step\": {}, \"loss\": {}}}\n", step, step % 2);
  directory_.write("long/logging.jsonl", log);
  const Json line =
      collect_curves({read_run(directory_.file("long"))})["charts"][0]["runs"][0]["lines"][0];
  EXPECT_EQ(line.size(), 334u);
  EXPECT_EQ(line[0], Json::array({2.0, 0.66667}));
}

TEST_F(ReportTest, EachSampleIsShownOnce) {
  const auto titles = [&](const GalleryOptions& options) {
    std::vector<std::string> all;
    const Json data = data_of(report_html(runs(), options));
    for (const Json& group : data["gallery"]["groups"]) all.push_back(group["title"]);
    return all;
  };
  EXPECT_EQ(titles({}), std::vector<std::string>{"Worst"});
  EXPECT_EQ(titles({.num_worst = 0}),
            std::vector<std::string>{"Evenly spaced, not chosen by score"});
}

TEST_F(ReportTest, AShareOfNothingIsNull) {
  directory_.write(
      "after/eval/model.json",
      R"({"eval_rollout_f1": 0.5, "per_class": [{"name": "ghost", "images": 1, "truths": 0, "predictions": 2, "recall": 0.0,
                      "precision_labels": 0.0, "recall_labels": 0.0, "f1_labels": 0.0}]})");
  EXPECT_EQ(data_of(report_html(runs(), {}))["classes"][1],
            parse_json(R"(["ghost", 1, 0, 2, null, 0.0, null, 0.0, null])", "row"));
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
  const Json times = collect_times({read_run(directory_.file("ranks"))})[0];
  EXPECT_EQ(times["step_s"], 8.0);
  EXPECT_EQ(times["parts"][3], Json::array({"forward", 60.0}));
  EXPECT_EQ(times["parts"][4], Json::array({"backward", 40.0}));
  EXPECT_EQ(times["parts"].back(), Json::array({"other", 0.0}));
}

TEST_F(ReportTest, TheAnswerSheetShowsTruthAndEveryEvaluation) {
  const std::vector<RunData> all = runs();
  const Canvas both = draw_answer_sheet(evaluations_of(all), 4);
  const Canvas one = draw_answer_sheet({evaluations_of(all)[0]}, 4);
  EXPECT_EQ(both.width_px() - one.width_px(), 330);  // one more panel and its gap
  EXPECT_EQ(both.height_px(), one.height_px());      // one sample, one row
  EXPECT_EQ(test::catch_user_error([&] { draw_answer_sheet({}, 4); }).kind(), ErrorKind::kData);
}

TEST_F(ReportTest, DamagedSamplesAreAnError) {
  const std::string good = sample("cat", "cat");
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"[[0, 0]]", "[[0, 1]]"},
                                                        {"[[0, 0]]", "[[-1, 0]]"},
                                                        {"[true]", "[]"},
                                                        {"[1, 2, 300, 400]", "[1, 2]"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const std::string path = directory_.write("bad.jsonl", bad);
    EXPECT_EQ(test::catch_user_error([&] { read_judged_samples(path); }).kind(), ErrorKind::kData);
  }
}

TEST_F(ReportTest, AnEmptySceneAnsweredAsEmptyIsPerfect) {
  EXPECT_EQ(JudgedSample{}.f1_labels(), 1.0);
  JudgedSample missed;
  missed.truth.resize(1);
  EXPECT_EQ(missed.f1_labels(), 0.0);
}

TEST_F(ReportTest, NothingIsJudgedBetweenDifferentSets) {
  const auto file = [](const std::string& set, double f1) {
    return EvaluationFile{.name = "x",
                          .eval_set = set,
                          .scores = {{"eval_rollout_f1", f1}, {"num_samples", f1 * 10}},
                          .per_class = {},
                          .per_count = {}};
  };
  const EvaluationFile before = file("32 records", 0.8), now = file("4 records", 0.4),
                       again = file("4 records", 0.2);
  EXPECT_TRUE(different_sets({{"now", &now}, {"again", &again}}).empty());
  EXPECT_EQ(judge_health(again, &now).size(), 1u);
  EXPECT_TRUE(judge_health(now, &before).empty());
  const std::vector<NamedEvaluation> both{{"before", &before}, {"now", &now}};
  EXPECT_EQ(score_table(both)[1], (std::vector<std::string>{"F1", "0.800", "0.400"}));
  EXPECT_TRUE(has(different_sets(both), "before: 32 records; now: 4 records"));
  const EvaluationFile old = file("", 0.8), old_now = file("", 0.4);
  EXPECT_TRUE(has(different_sets({{"old", &old}, {"now", &old_now}}), "old: samples 8"));
  // In a report: a line in place of the verdict, and no column with the F1 before.
  directory_.write("before/eval/model.json",
                   R"({"eval_rollout_f1": 0.9, "num_samples": 7, "eval_set": "7 records"})");
  const std::string html = report_html(runs(), {});
  EXPECT_TRUE(has(html, "these evaluations are over different sets"));
  EXPECT_FALSE(has(html, "named F1 before"));
  EXPECT_FALSE(has(html, "before → after"));
}

TEST_F(ReportTest, ARunAloneIsComparedWithItsFirstEvaluationOverTheSameSet) {
  directory_.write("alone/logging.jsonl",
                   "{\"step\": 0, \"eval_rollout_f1\": 0.9, \"eval_set\": \"a\"}\n"
                   "{\"step\": 5, \"eval_rollout_f1\": 0.5, \"eval_set\": \"b\"}\n"
                   "{\"step\": 10, \"eval_rollout_f1\": 0.6, \"eval_set\": \"b\"}\n");
  const std::vector<RunData> alone{read_run(directory_.file("alone"))};
  EXPECT_EQ(score_table(evaluations_of(alone))[0],
            (std::vector<std::string>{"score", "alone/step 5", "alone/step 10", "last - first"}));
}

}  // namespace rematch
