#include "tools/report/headline.h"

#include "report/report_fixture.h"

namespace rematch {
namespace {

EvaluationFile evaluation(double f1, double label_f1) {
  return {.name = "x",
          .scores = {{"eval_rollout_f1_iou50", f1},
                     {"eval_rollout_f1_labels_iou50", label_f1},
                     {"coco_ap", 0.168},
                     {"num_samples", 8}}};
}

/// 100 truths, 90 answers, 80 matched, 70 of them at IoU 0.5, half of these named right.
EvaluationFile with_faults() {
  EvaluationFile file = evaluation(0.736, 0.368);
  for (const auto& [key, value] :
       std::map<std::string, double>{{"eval_rollout_gt_objects", 100},
                                     {"eval_rollout_pred_objects", 90},
                                     {"eval_rollout_matched", 80},
                                     {"eval_rollout_precision_iou50", 70.0 / 90},
                                     {"eval_rollout_label_accuracy_iou50", 0.5},
                                     {"eval_rollout_duplicates", 0.0},
                                     {"eval_rollout_parse_truncated_rate", 0.0},
                                     {"eval_rollout_parse_malformed_rate", 0.0}})
    file.scores[key] = value;
  return file;
}

Json headline(const EvaluationFile& before, const EvaluationFile& now) {
  return collect_headline({}, {{"before", &before}, {"stage2", &now}});
}

}  // namespace

TEST(Headline, SaysInOneSentenceWhatChanged) {
  const Json found = headline(evaluation(0.361, 0.177), evaluation(0.676, 0.409));
  EXPECT_EQ(found["sentence"], "F1 @ .5 .361 → .676, label F1 @ .5 .177 → .409.");
  EXPECT_EQ(found["about"], "before → stage2, 8 images");
  EXPECT_EQ(found["numbers"][0], parse_json(R"({"label": "F1 @ .5", "before": ".361",
                                                "now": ".676", "change": 1})",
                                            "number"));
  EXPECT_EQ(found["numbers"][2]["change"], 0);  // the same AP
  EXPECT_EQ(headline(evaluation(0.7, 0.1), evaluation(0.6, 0.1))["numbers"][0]["change"], -1);
}

TEST(Headline, NamesTheMainFaultThatIsLeft) {
  EXPECT_TRUE(has(headline(evaluation(0.1, 0.1), with_faults())["sentence"],
                  "; wrong names are the main fault left."));
  const std::map<std::string, std::pair<const char*, double>> changes{
      {"inexact boxes", {"eval_rollout_precision_iou50", 0.2}},
      {"missed objects", {"eval_rollout_gt_objects", 400}},
      {"objects that are not there", {"eval_rollout_pred_objects", 400}},
      {"answers that are not JSON", {"eval_rollout_parse_malformed_rate", 0.9}},
      {"answers that do not end", {"eval_rollout_parse_truncated_rate", 0.9}}};
  for (const auto& [name, change] : changes) {
    EvaluationFile file = with_faults();
    file.scores[change.first] = change.second;
    if (name == "objects that are not there") {
      file.scores["eval_rollout_precision_iou50"] = 70.0 / 400;
      file.scores["eval_rollout_duplicates"] = 0.1;
      EXPECT_EQ(main_fault(file), name);
      file.scores["eval_rollout_duplicates"] = 0.7;
      EXPECT_EQ(main_fault(file), "repeated objects");
    } else {
      EXPECT_EQ(main_fault(file), name);
    }
  }
}

TEST(Headline, NamesTheCauseWhereNoAnswerCanBeRead) {
  EvaluationFile file = with_faults();
  file.scores["eval_rollout_matched"] = file.scores["eval_rollout_pred_objects"] = 0;
  file.scores["eval_rollout_parse_malformed_rate"] = 1;
  EXPECT_EQ(main_fault(file), "answers that are not JSON");
  file.scores["eval_rollout_parse_malformed_rate"] = 0;
  file.scores["num_samples"] = file.scores["eval_rollout_parse_dropped_invalid"] = 8;
  file.scores["eval_rollout_sample_valid_pred_rate"] = 0;
  EXPECT_EQ(main_fault(file), "answers of another format");
}

TEST(Headline, NamesNoFaultOfAGoodModelOrWithoutCounts) {
  EXPECT_EQ(main_fault(evaluation(0.5, 0.5)), "");
  EvaluationFile good = with_faults();
  good.scores["eval_rollout_matched"] = good.scores["eval_rollout_pred_objects"] = 99;
  good.scores["eval_rollout_precision_iou50"] = 1;
  good.scores["eval_rollout_label_accuracy_iou50"] = 0.99;
  EXPECT_EQ(main_fault(good), "");
}

TEST(Headline, ComparesNothingOverDifferentSets) {
  EvaluationFile before = evaluation(0.361, 0.177), now = evaluation(0.676, 0.409);
  before.eval_set = "a";
  now.eval_set = "b";
  EXPECT_EQ(headline(before, now)["sentence"], "F1 @ .5 .676, label F1 @ .5 .409.");
  EXPECT_EQ(headline(before, now)["about"], "stage2, 8 images");
  EXPECT_EQ(headline(before, now)["numbers"][0]["before"], "");
}

TEST(Headline, ALowerLossIsBetter) {
  const EvaluationFile before{.name = "a", .scores = {{"eval_loss", 21.04}}},
      now{.name = "b", .scores = {{"eval_loss", 2.3}}};
  const Json found = headline(before, now);
  EXPECT_EQ(found["sentence"], "loss on the truth 21 → 2.3.");
  EXPECT_EQ(found["numbers"][0]["change"], 1);
}

TEST_F(ReportTest, ALogAloneReportsItsLoss) {
  directory_.write("log/logging.jsonl",
                   "{\"step\": 1, \"loss\": 21.0}\n{\"step\": 40, \"loss\": 2.0}\n");
  const Json found = collect_headline({read_run(directory_.file("log"))}, {});
  EXPECT_EQ(found["sentence"], "loss 21 → 2 in 40 steps without an evaluation.");
  directory_.write("log/logging.jsonl", "{\"step\": 3}\n");
  EXPECT_EQ(collect_headline({read_run(directory_.file("log"))}, {})["sentence"],
            "3 steps without an evaluation.");
}

}  // namespace rematch
