#include "report/report_fixture.h"
#include "tools/report/answer_sheet.h"
#include "tools/report/evaluated_sample.h"
#include "tools/report/score_table.h"

namespace rematch {

TEST_F(ReportTest, GeometriesThatCannotBeDrawnAreErrors) {
  for (const char* box : {"[]", "[1, 2, 3]", "[0, 0, 10, 2000000000]", "[-5, 0, 10, 10]"}) {
    directory_.write(
        "after/eval/checkpoint-2.samples.jsonl",
        fmt::format("{{\"sample_id\": 0, \"images\": [\"x.png\"], \"status\": \"ok\", \"pairs\": "
                    "[], \"named_right\": [], \"predictions\": [], \"ground_truth\": [{{\"desc\": "
                    "\"cat\", \"bbox_2d\": {}}}]}}\n",
                    box));
    EXPECT_EQ(test::catch_user_error([&] { report_html(runs(), {}); }).kind(), ErrorKind::kData)
        << box;
  }
}

TEST_F(ReportTest, PageLoadsNothing) {
  const std::string page = report_html(runs(), {});
  EXPECT_LT(page.size(), size_t{5} * 1024 * 1024);
  for (const char* outside : {"https://", "<link", "src=\"", "@import", "url("})
    EXPECT_FALSE(has(page, outside)) << outside;
  EXPECT_EQ(count_of(page, "http://"), 1u);  // the name of SVG
  for (const char* part : {"default-src 'none'", "prefers-color-scheme", "'use strict'", "<title>"})
    EXPECT_TRUE(has(page, part)) << part;
  for (const char* mark : {"@STYLE@", "@SCRIPT@", "@DATA@"}) EXPECT_FALSE(has(page, mark)) << mark;
}

TEST_F(ReportTest, DataHoldsEverythingOnThePage) {
  const Json data = data_of(report_html(runs(), {}));
  EXPECT_EQ(data["title"], "after");
  EXPECT_EQ(data["headline"]["sentence"], "gate F1 .400 → .800, label accuracy .900 → .200.");
  EXPECT_EQ(data["headline"]["about"], "before → after (checkpoint-2), 1 image");
  EXPECT_EQ(data["last"], "after");
  EXPECT_EQ(data["scores"][1][2], "0.800*");
  EXPECT_EQ(data["note"], "");
  EXPECT_EQ(data["curves"]["names"], parse_json(R"([null, "after"])", "names"));
  EXPECT_EQ(data["curves"]["charts"][0],
            parse_json(R"({"title": "loss", "log": false, "runs": [{"lines": [], "dots": []},
                           {"lines": [[[1.0, 3.0], [2.0, 2.0]]], "dots": []}]})",
                       "chart"));
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

TEST_F(ReportTest, EachSampleIsShownOnce) {
  const auto titles = [&](const GalleryOptions& options) {
    std::vector<std::string> all;
    const Json data = data_of(report_html(runs(), options));
    for (const Json& group : data["gallery"]["groups"]) all.push_back(group["title"]);
    return all;
  };
  EXPECT_EQ(titles({}), std::vector<std::string>{"Worst"});
  EXPECT_EQ(titles({.num_worst = 0}),
            std::vector<std::string>{"Typical (evenly spaced over the records)"});
}

TEST_F(ReportTest, AShareOfNothingIsNull) {
  directory_.write(
      "after/eval/checkpoint-2.json",
      R"({"eval_rollout_f1": 0.5, "per_class": [{"name": "ghost", "images": 1, "truths": 0,
                      "predictions": 2, "recall": 0.0,
                      "precision_labels": 0.0, "recall_labels": 0.0, "f1_labels": 0.0}]})");
  EXPECT_EQ(data_of(report_html(runs(), {}))["classes"][1],
            parse_json(R"(["ghost", 1, 0, 2, null, 0.0, null, 0.0, null])", "row"));
}

TEST_F(ReportTest, TheAnswerSheetShowsTruthAndEveryEvaluation) {
  const std::vector<RunData> all = runs();
  const Canvas both = draw_answer_sheet(list_evaluations(all), 4);
  const Canvas one = draw_answer_sheet({list_evaluations(all)[0]}, 4);
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
    EXPECT_EQ(test::catch_user_error([&] { read_evaluated_samples(path); }).kind(),
              ErrorKind::kData);
  }
}

TEST_F(ReportTest, AnEmptySceneAnsweredAsEmptyIsPerfect) {
  EXPECT_EQ(EvaluatedSample{}.f1_labels(), 1.0);
  EvaluatedSample missed;
  missed.truth.resize(1);
  EXPECT_EQ(missed.f1_labels(), 0.0);
}

TEST_F(ReportTest, AGainThatRoundsToNothingHasNoSign) {
  const EvaluationFile before{.scores = {{"eval_rollout_f1", 0.8001}}},
      now{.scores = {{"eval_rollout_f1", 0.8}}};
  EXPECT_EQ(score_table({{"before", &before}, {"now", &now}})[1].back(), "0.000");
}

TEST_F(ReportTest, OnlyCalibratedScoresAreShares) {
  const auto calibrated = [&](const std::string& scores) {
    std::string line = sample("cat", "cat");
    line.insert(1, scores);
    write_run("after", 0.8, 0.2, line);
    return data_of(report_html(runs(), {}))["gallery"]["groups"][0]["samples"][0]["calibrated"];
  };
  EXPECT_EQ(calibrated(R"("scores": [0.5], )"), false);
  EXPECT_EQ(calibrated(R"("scores": [0.5], "raw_scores": [0.1], )"), true);
}

TEST_F(ReportTest, PicturesComeBeforeTables) {
  const std::string page = report_html(runs(), {});
  EXPECT_LT(page.find("<section id=\"gallery\""), page.find("<section id=\"scores\""));
}

TEST_F(ReportTest, DifferentSetsAreNotCompared) {
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
  const std::vector<NamedEvaluation> both{{"before", &before}, {"now", &now}};
  EXPECT_EQ(score_table(both)[1], (std::vector<std::string>{"gate F1", "0.800", "0.400"}));
  EXPECT_TRUE(has(different_sets(both), "before: 32 records; now: 4 records"));
  EvaluationFile named = file("32 records 41e005793249a79f, labels normalized, prompts 1e60", 0.8);
  named.records = "val.jsonl";
  EvaluationFile asked = named;
  asked.eval_set = "32 records 41e005793249a79f, labels normalized, prompts 2f71";
  EXPECT_EQ(different_sets({{"before", &named}, {"now", &asked}}),
            "these evaluations are over different sets (other prompts), so nothing is judged "
            "between them: before: 32 records of val.jsonl; now: 32 records of val.jsonl");
  // One foreign run does not silence the comparison of the others.
  EvaluationFile better = asked;
  better.scores["eval_rollout_f1"] = 0.9;
  const std::vector<NamedEvaluation> three{
      {"foreign", &named}, {"stage1", &asked}, {"stage2", &better}};
  EXPECT_EQ(find_baseline(three)->name, "stage1");
  EXPECT_EQ(score_table(three)[0].back(), "last - stage1");
  EXPECT_EQ(score_table(three)[1],
            (std::vector<std::string>{"gate F1", "0.800", "0.800", "0.900*", "+0.100"}));
  EXPECT_TRUE(has(different_sets(three), "only those over the set of stage2 are compared"));
  // In a report: a line in place of the verdict, and no column with the F1 before.
  directory_.write("before/eval/model.json",
                   R"({"eval_rollout_f1": 0.9, "num_samples": 7, "eval_set": "7 records"})");
  const std::string html = report_html(runs(), {});
  EXPECT_TRUE(has(html, "these evaluations are over different sets"));
  EXPECT_FALSE(has(html, "label F1 before"));
  EXPECT_FALSE(has(html, "before → after"));
}

TEST_F(ReportTest, ImagesOfAClassAreThoseWithItOrAnAnswer) {
  EXPECT_EQ(data_of(report_html(runs(), {}))["classes"][0][1], "images with it or an answer");
}

}  // namespace rematch
