#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/parsed.h"
#include "base/flow/sample.h"
#include "base/json.h"
#include "learn/estep/match/labels.h"
#include "learn/evaluate/coco.h"

namespace rematch {

/// Counts over a part of the validation data, and their scores (0 for an empty denominator).
struct BreakdownRow {
  std::string name;                ///< a class, or a range of object counts such as "3–5"
  int64_t num_images = 0;          ///< images of the part
  int64_t truths = 0;              ///< ground-truth objects
  int64_t predictions = 0;         ///< predicted objects; for a class: those with its label
  int64_t placed = 0;              ///< truths with a matched prediction
  int64_t placed_named = 0;        ///< of these, truths with the right label
  int64_t predictions_placed = 0;  ///< matched predictions

  double precision_labels() const { return share(placed_named, predictions); }
  double recall_labels() const { return share(placed_named, truths); }
  double f1_labels() const { return share(2 * placed_named, truths + predictions); }
  double recall() const { return share(placed, truths); }  ///< ignores labels
  double f1() const { return share(placed + predictions_placed, truths + predictions); }  ///< too

 private:
  static double share(int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / whole : 0.0;
  }
};

/// Matched truths of one label that got another.
struct Confusion {
  std::string truth, prediction;
  int64_t count = 0;
  int64_t placed = 0;  ///< matched truths of that label, with any predicted label
};

/// Scores of an evaluation by class and by the number of objects in the image.
class Breakdown {
 public:
  explicit Breakdown(LabelMatch labels) : labels_(std::move(labels)) {}

  void add(const Objects& truth, const Objects& predictions, const Matching& matching);

  /// Classes of the truth and of the answers, most truths first.
  std::vector<BreakdownRow> classes() const;
  /// The `most` most frequent confusions, in that order.
  std::vector<Confusion> confusions(size_t most) const;
  /// The ranges of object counts that occur, ascending.
  std::vector<BreakdownRow> counts() const;

 private:
  LabelMatch labels_;
  std::map<std::string, BreakdownRow> classes_;
  std::map<size_t, BreakdownRow> counts_;
  std::map<std::pair<std::string, std::string>, int64_t> confused_;  ///< (truth, prediction)
};

/// `per_class` of an evaluation: one object for each class, most truths first, with `coco_ap` if
/// COCO scores the class.
Json per_class_json(const Breakdown& breakdown, const CocoResult& coco);

/// `per_count` of an evaluation: one object for each range of object counts.
Json per_count_json(const Breakdown& breakdown);

}  // namespace rematch
