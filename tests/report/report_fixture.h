#pragma once
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"
#include "tools/report/report.h"

namespace rematch {

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
        "\"eval_rollout_duplicates\": 0.3, \"eval_rollout_pred_per_gt\": 3.5, "
        "\"eval_rollout_parse_truncated_rate\": 0.5, \"coco_ap\": -1, \"model\": \"<base>\", "
        "\"num_samples\": 1, \"per_class\": [{{\"name\": \"cat\", \"truths\": 1, \"f1_labels\": "
        "0.5}}]}}",
        f1, label_accuracy);
    directory_.write(name + "/eval_results.json", json);
    const std::string start = name + (name == "after" ? "/eval/checkpoint-2" : "/eval/model");
    directory_.write(start + ".json", json);
    directory_.write(start + ".samples.jsonl", samples);
    directory_.write(start + ".predictions.json", "[]");
    directory_.write(start + ".truth.json", "{}");
  }
  std::vector<RunData> runs() const {
    return read_runs({directory_.file("before"), directory_.file("after/")});
  }

  test::TempDir directory_;
  std::string image_;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The text between the first `begin` and the `end` that follows it.
inline std::string between(const std::string& text, const std::string& begin,
                           const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

inline Json data_of(const std::string& page) {
  return parse_json(between(page, R"(id="data">)", "</script>"), "page");
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace rematch
