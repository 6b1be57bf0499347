#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/parsed.h"
#include "base/flow/sample.h"
#include "learn/estep/match/labels.h"

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

  double precision_labels() const;
  double recall_labels() const;
  double f1_labels() const;
  double recall() const;  ///< ignores labels
  double f1() const;      ///< ignores labels
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

  void add(const std::vector<SceneObject>& truth, const std::vector<SceneObject>& predictions,
           const Matching& matching);

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

}  // namespace rematch
