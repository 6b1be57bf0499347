#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "estep/match/labels.h"
#include "flow/parsed.h"
#include "flow/sample.h"

namespace rematch {

/// Counts of one part of the validation data, and the scores that follow from them (0 where nothing
/// is to be divided).
struct BreakdownRow {
  std::string name;                ///< of a class, or of a range of object counts such as "3–5"
  int64_t num_images = 0;          ///< that belong to the part
  int64_t truths = 0;              ///< objects of the truth
  int64_t predictions = 0;         ///< objects of the answers; of a class: those with its label
  int64_t placed = 0;              ///< truths that a prediction was matched with
  int64_t placed_named = 0;        ///< of these, with the right label
  int64_t predictions_placed = 0;  ///< predictions that were matched

  double precision_labels() const;
  double recall_labels() const;
  double f1_labels() const;
  double recall() const;  ///< whatever the label
  double f1() const;      ///< whatever the label
};

/// Matched truths of one name that were called another.
struct Confusion {
  std::string truth, prediction;
  int64_t count = 0;
  int64_t placed = 0;  ///< matched truths of that name, whatever they were called
};

/// Scores of an evaluation by class and by the number of objects in the image.
class Breakdown {
 public:
  explicit Breakdown(LabelMatch labels) : labels_(std::move(labels)) {}

  void add(const std::vector<SceneObject>& truth, const std::vector<SceneObject>& predictions,
           const Matching& matching);

  /// Classes of the truth and of the answers, most truths first.
  std::vector<BreakdownRow> classes() const;
  /// The most frequent confusions first. @param most  how many
  std::vector<Confusion> confusions(size_t most) const;
  /// Ranges of object counts that occur, ascending.
  std::vector<BreakdownRow> counts() const;

 private:
  LabelMatch labels_;
  std::map<std::string, BreakdownRow> classes_;
  std::map<size_t, BreakdownRow> counts_;
  std::map<std::pair<std::string, std::string>, int64_t> confused_;  ///< (truth, prediction)
};

}  // namespace rematch
