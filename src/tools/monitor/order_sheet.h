#pragma once
#include <string>
#include <vector>

#include "tools/monitor/answer_view.h"

namespace rematch {

/// A picture of the order in which a model answers: a few images with the truth in green and the
/// answer in red, each object with its place in its list.
class OrderSheet {
 public:
  /// Takes an answer with at least three objects, until the sheet has six.
  void add(const ScoredRollout& rollout);
  bool empty() const { return answers_.empty(); }
  /// A PNG file; images that cannot be read are grey panels. Not for an empty sheet.
  std::string png() const;

 private:
  std::vector<AnswerView> answers_;
};

}  // namespace rematch
