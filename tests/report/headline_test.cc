#include "tools/report/sections.h"

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

TEST(Headline, SaysWhenNoAnswerCanBeRead) {
  EvaluationFile file = evaluation(0, 0);
  file.scores["eval_rollout_parse_malformed_rate"] = 1;
  file.scores["eval_rollout_sample_valid_pred_rate"] = 0;
  EXPECT_TRUE(has(headline(evaluation(0, 0), file)["sentence"],
                  "; no answer of 8 can be read: 8 are malformed."));
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
