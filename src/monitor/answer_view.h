#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "draw/panel.h"
#include "estep/rollout_scorer.h"
#include "estep/target/target_policy.h"
#include "vision/image.h"

namespace rematch {

/// What a dump shows of one rollout. It holds copies only, so another thread may use it.
struct AnswerView {
  ImageRef image;  ///< as the rollout saw it
  std::string caption;
  std::string own_prompt;                  ///< user text of the sample; empty: that of the run
  std::vector<DrawnObject> objects;        ///< ground truth first
  std::vector<std::pair<int, int>> links;  ///< matched pairs, as indices into objects
  std::string answer;                      ///< whole
  /// the part of the answer that the target keeps, the rest of the answer, and the appended text
  std::string kept, dropped, taught;
  double f1 = 0, f1_labels = 0;
};

/// @param target     of this rollout
/// @param max_bytes  longest `kept`, `dropped` and `taught`; what is longer ends in "…"
AnswerView view_answer(const ScoredRollout& rollout, const SegmentResult& target,
                       const Tokenizer& tokenizer, const LabelMatch& labels, int64_t max_bytes);

/// Markdown: for each answer a diff of what is kept, dropped and taught. @param policy  the target
/// policy's name
std::string answer_texts(const std::vector<AnswerView>& answers, const std::string& policy);

/// JSON lines, one an answer, with the columns of TRL's completions: step, prompt, completion, its
/// rewards (f1, f1_labels), advantage. @param prompt  user text of samples that have none
std::string answer_lines(const std::vector<AnswerView>& answers, int64_t step,
                         const std::string& prompt);

/// The images with ground truth, predictions and matches. An image that cannot be read becomes a
/// grey panel with the reason. @param answers  at least one
Image answer_sheet(const std::vector<AnswerView>& answers);

}  // namespace rematch
