#include "tools/report/sections.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/report/evaluated_sample.h"

namespace rematch {
namespace {

constexpr const char kResult[] =
    R"({"coco_ap": 0.4, "coco_ranking": "score",
        "precision_recall": [{"name": "all classes", "truths": 9, "precision": [1.0, 0.5, 0.0]}],
        "confusion": [{"truth": "cat", "prediction": "dog", "count": 2, "placed": 8}],
        "calibration": {"error": 0.125, "bins": [{"count": 3, "score": 0.5, "precision": 0.6}]}})";

Json collected(const test::TempDir& dir, const std::string& text) {
  return collect_confidence({.path = dir.write("model.json", text)});
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST(ConfidenceView, ShowsWhatTheEvaluationWrote) {
  const test::TempDir dir;
  const Json found = collected(dir, kResult);
  EXPECT_EQ(found["ranking"], "score");
  EXPECT_EQ(found["curves"][0]["precision"], Json::array({1.0, 0.5, 0.0}));
  EXPECT_EQ(found["confusion"][1], Json::array({"cat → dog", "2", "8", "0.250"}));
  EXPECT_EQ(found["calibration"]["error"], 0.125);
}

TEST(ConfidenceView, WithoutPredictionsThereIsNoCalibrationError) {
  const test::TempDir dir;
  const Json found =
      collected(dir, R"({"coco_ranking": "score", "calibration": {"error": 0.0, "bins": []}})");
  EXPECT_TRUE(found["calibration"]["error"].is_null());
}

TEST(ConfidenceView, IsAbsentInOlderEvaluationsAndWithoutAFile) {
  const test::TempDir dir;
  EXPECT_TRUE(collected(dir, R"({"coco_ap": 0.4})").is_null());
  EXPECT_TRUE(collect_confidence({}).is_null());
  const Json by_order = collected(dir, R"({"coco_ap": 0.4, "coco_ranking": "order"})");
  EXPECT_TRUE(by_order["calibration"].is_null());
  EXPECT_TRUE(by_order["confusion"].empty());
}

TEST(ConfidenceView, ADamagedFileIsAnError) {
  const test::TempDir dir;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[1.0, 0.5, 0.0]", "[1.0, \"a\"]"},
           {"[1.0, 0.5, 0.0]", "[1.0]"},
           {R"("placed": 8)", R"("placed": 0)"},
           {R"("error": 0.125)", R"("error": "none")"},
           {R"([{"count": 3)", R"([7, {"count": 3)"}}) {
    const UserError error =
        test::catch_user_error([&] { collected(dir, replaced(kResult, from, to)); });
    EXPECT_EQ(error.kind(), ErrorKind::kData) << to;
  }
}

TEST(EvaluatedSample, HasTheScoresOfItsPredictions) {
  const test::TempDir dir;
  const std::string line =
      R"({"sample_id": 0, "images": ["a.png"], "width": 200, "height": 100, "status": "complete",
          "predictions": [{"desc": "cat", "bbox_2d": [1, 2, 3, 4]}], "scores": [0.75],
          "ground_truth": [], "pairs": [], "named_right": []})";
  const auto read = [&](std::string text) {
    std::erase(text, '\n');
    return read_evaluated_samples(dir.write("samples.jsonl", text));
  };
  EXPECT_EQ(read(line)[0].scores, std::vector<double>{0.75});
  EXPECT_TRUE(read(replaced(line, R"("scores": [0.75],)", ""))[0].scores.empty());
  for (const char* bad : {"[0.75, 0.5]", "[1.5]", "[\"a\"]", "0.75"}) {
    EXPECT_EQ(test::catch_user_error([&] { read(replaced(line, "[0.75]", bad)); }).kind(),
              ErrorKind::kData)
        << bad;
  }
}

}  // namespace rematch
