#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "learn/estep/rollout_scorer.h"
#include "learn/estep/teach/target_policy.h"
#include "model/vision/image.h"
#include "tools/draw/panel.h"

namespace rematch {

/// Displayed data of one rollout. Owns copies, so another thread may use it.
struct AnswerView {
  ImageRef image;  ///< as the model saw it
  std::string caption;
  std::string own_prompt;                  ///< user text of the sample; empty = text of the run
  std::vector<DrawnObject> objects;        ///< ground truth first
  std::vector<std::pair<int, int>> links;  ///< matched pairs, as indices into objects
  std::string answer;                      ///< the whole answer
  /// the part of the answer that the segment keeps, the rest of the answer, and the appended text
  std::string kept, dropped, taught;
  double f1 = 0, f1_labels = 0;
};

/// Image, caption and objects of a rollout, each object with its place in its list; no texts.
AnswerView numbered_view(const ScoredRollout& rollout);

/// Collects the displayed data of a rollout.
/// @param target     target of this rollout
/// @param max_bytes  most bytes of `kept`, `dropped` and `taught`; longer texts are cut and end in
/// "…"
AnswerView view_answer(const ScoredRollout& rollout, const SegmentResult& target,
                       const Tokenizer& tokenizer, const LabelMatch& labels, size_t max_bytes);

/// Markdown with a diff of kept, dropped and taught text for each answer.
/// @param policy  name of the target policy
std::string answer_texts(const std::vector<AnswerView>& answers, const std::string& policy);

/// JSON lines, one for each answer, with the columns of TRL's completions: step, prompt,
/// completion, its rewards (f1, f1_labels), advantage.
/// @param prompt  user text of samples that have none
std::string answer_lines(const std::vector<AnswerView>& answers, int64_t step,
                         const std::string& prompt);

/// Draws the images with ground truth, predictions and matches. An unreadable image becomes a grey
/// panel with the reason.
/// @param answers  at least one
Image answer_sheet(const std::vector<AnswerView>& answers);

}  // namespace rematch
