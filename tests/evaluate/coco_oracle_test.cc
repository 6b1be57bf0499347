// pycocotools and ours on the same 1 000 random images.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/random.h"
#include "learn/evaluate/coco.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::vector<LabelledBox> boxes_of(const nlohmann::json& list) {
  std::vector<LabelledBox> boxes;
  for (const auto& box : list) {
    boxes.push_back({box[0], box[1], box[2], box[3], box[4]});
    if (box.size() > 5) boxes.back().score = box[5].get<double>();
  }
  return boxes;
}

// @param ranking  "score" or "order"
void expect_pycocotools_numbers(const std::string& ranking) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python))
    GTEST_SKIP() << "no .venv/bin/python (run scripts/setup --oracles)";
  if (test::run_command(python + " -c 'import pycocotools'").exit_code != 0)
    GTEST_SKIP() << "the Python package pycocotools is not installed";
  // Another day, other scenes; the seed is in the message of a failure.
  const auto day = std::chrono::duration_cast<std::chrono::hours>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count() /
                   24;
  const auto result = test::run_command(fmt::format(
      "{} {} {} {}", python, test::source_path("dev/goldens/coco_reference.py"), day, ranking));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json oracle = nlohmann::json::parse(result.out);
  CocoEvaluator coco;
  for (const auto& image : oracle["images"])
    coco.add(boxes_of(image["truths"]), boxes_of(image["predictions"]));
  ASSERT_EQ(oracle["images"].size(), 1000u);
  const CocoResult scores = coco.scores();
  for (size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i], oracle["stats"][i].get<double>(), 1e-9) << i << ", seed " << day;
  for (const auto& [label, of_class] : scores.per_class) {
    EXPECT_NEAR(of_class[kAp], oracle["per_class"][label].get<double>(), 1e-9)
        << label << ", seed " << day;
  }
  EXPECT_GT(scores[kAp], 0.05);
  EXPECT_LT(scores[kAp], 0.95);
  EXPECT_EQ(coco.ranks_by_score(), ranking == "score");
}

}  // namespace

TEST(CocoOracle, GivesPycocotoolsNumbersByOrder) { expect_pycocotools_numbers("order"); }

TEST(CocoOracle, GivesPycocotoolsNumbersByScore) { expect_pycocotools_numbers("score"); }

}  // namespace rematch
