#include "program/cli/printed_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace rematch {
namespace {

struct PrintedWord {
  const char* names;  ///< separated by "|", as normal_form() gives them
  const char* where;
  const char* meaning;
};

constexpr const char *kPlan = "rematch plan", *kProbe = "rematch probe", *kScores = "scores";

constexpr PrintedWord kWords[] = {
    // The columns of a plan.
    {"load", kPlan, "phase: the checkpoint is read"},
    {"rollout|rollouts", kPlan,
     "phase: the model writes answers to the training images (generation, no gradients)"},
    {"evaluate", kPlan,
     "phase: a stage-1 run writes answers to the validation images, to score them"},
    {"m-step", kPlan, "phase: forward and backward pass over the training batch"},
    {"update", kPlan, "phase: the optimizer changes the weights"},
    {"save", kPlan, "phase: a checkpoint is written"},
    // Its lines.
    {"weights", kPlan, "the model, 2 bytes a parameter in bfloat16, 4 in float32"},
    {"masters", kPlan,
     "float32 copies of the trained weights, which the optimizer changes when the model itself is "
     "bfloat16 (4 bytes a trained parameter)"},
    {"moments", kPlan, "what AdamW remembers of earlier steps, 8 bytes a trained parameter"},
    {"gradients", kPlan, "of the trained weights, 4 bytes each"},
    {"activations", kPlan,
     "what the forward pass keeps for the backward pass; grows with images and answers, and falls "
     "most with training.gradient_checkpointing: true"},
    {"head", kPlan,
     "the last layer, which gives a number for each word of the vocabulary: its numbers and their "
     "gradients"},
    {"features", kPlan,
     "outputs of a frozen vision tower, kept while the same answers are trained on again"},
    {"messages", kPlan, "gradients on their way between GPUs"},
    {"engine weights", kPlan, "copies of the weights in the form that generation reads fastest"},
    {"kv cache", kPlan, "keys and values of the answers being written, one for each token so far"},
    {"states", kPlan,
     "what layers with a delta rule keep of an answer in place of keys and values"},
    {"engine scratch", kPlan, "temporary memory of a generation step"},
    {"decode graphs", kPlan, "generation steps that the GPU replays as a whole"},
    {"vllm", kPlan, "the share of the GPU that vLLM takes (vllm.gpu_memory_utilization)"},
    {"pixels", kPlan, "decoded images of this step and the one before"},
    {"checkpoint pages", kPlan, "parts of the checkpoint files that are being read or written"},
    {"freed memory", kPlan,
     "memory of earlier phases that the program keeps for the next step and no longer uses"},
    {"runtime", kPlan, "the program and its libraries; on a GPU the CUDA context"},
    {"together", kPlan, "the sum of a column: what the phase needs at its fullest moment"},
    {"row", kPlan,
     "what goes through the model at once, in tokens: a batch (per_device_train_batch_size "
     "samples), or with packing several samples side by side"},
    {"image pads", kPlan, "the tokens of the prompt that stand for an image"},
    // Numbers of the probe.
    {"neighbours in sorted order|neighbours in the sorted order", kProbe,
     "share of neighbouring objects of an answer that follow each other from top to bottom and "
     "left to right, as sorted truths do; 0.5 is chance, from 0.8 on the model has learnt the "
     "order"},
    {"missing objects|missing", kProbe, "share of the true objects that the answers do not find"},
    {"of these found by samples|found by N samples|found by samples", kProbe,
     "share of the missing objects that at least one of several answers with random choices "
     "(--samples) does find: what stage 2 can teach"},
    {"repeated", kProbe, "share of the predictions that name an object a second time"},
    {"objects", kProbe, "images by their number of true objects"},
    // Scores.
    {"fN|fN@.N|fN @ .N", kScores,
     "harmonic mean of precision and recall of the boxes, whatever their label: a box is right "
     "when its IoU with a true one is at least the number after @, 0.5 without one "
     "(eval_rollout_f1_iou50); `gate F1` counts from maskiou_gate on (eval_rollout_f1)"},
    {"label fN|label fN@.N|label fN @ .N", kScores,
     "F1 of boxes that have the right label too (eval_rollout_f1_labels_iou50)"},
    {"gate p", kScores,
     "precision: share of the predictions whose IoU with a true box is at least maskiou_gate "
     "(eval_rollout_precision)"},
    {"gate r", kScores,
     "recall: share of the true boxes that a prediction meets with an IoU of at least "
     "maskiou_gate (eval_rollout_recall)"},
};

/// Lower case, with N for every number.
std::string normal_form(const std::string& word) {
  std::string text;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isdigit(byte) == 0)
      text += static_cast<char>(std::tolower(byte));
    else if (text.empty() || text.back() != 'N')
      text += 'N';
  }
  return text;
}

}  // namespace

std::string explain_printed_word(const std::string& word) {
  const std::string wanted = normal_form(word);
  for (const PrintedWord& row : kWords) {
    const std::vector<std::string> names = split(row.names, '|');
    if (std::find(names.begin(), names.end(), wanted) != names.end())
      return fmt::format("{} ({})\n  {}\n", word, row.where, row.meaning);
  }
  return "";
}

}  // namespace rematch
