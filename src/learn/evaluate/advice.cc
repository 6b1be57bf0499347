#include "learn/evaluate/advice.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rematch::advice {
namespace {

using Kind = Training::Kind;
enum Runs : unsigned { kStage1 = 1, kAppend = 2, kRewriting = 4, kAll = 7 };
enum class Side { kAny, kLow };

struct Row {
  std::string_view sign;
  unsigned runs;  ///< Runs
  const char* text;
  Side side = Side::kAny;
};

// The first row that applies counts. No row recommends what the run does already.
constexpr Row kRows[] = {
    {"precision", kAppend, "it sees what is not there: `target_policy: rewrite` unlearns that"},
    {"precision", kRewriting, "it sees what is not there: lower the learning rate"},
    {"precision", kStage1, "it sees what is not there: check that the truth is complete"},
    {"f1", kAll, "lower the learning rate, or keep an earlier checkpoint"},
    {"f1_labels", kAll, "lower the learning rate; `rematch report` has the classes that lost"},
    {"label_accuracy", kAppend,
     "labels are being forgotten: `target_policy: rewrite` teaches them, append never does"},
    {"label_accuracy", kAll,
     "labels are being forgotten: lower the learning rate; `rematch data check` lists names that "
     "the training data lacks"},
    {"truncated", kStage1, "answers do not end: `max_new_tokens` must hold the longest truth"},
    {"truncated", kAll, "answers do not end: `rollout_share: 0.5` mixes in whole truths"},
    {"malformed", kStage1, "answers break the format: compare with fewer steps"},
    {"malformed", kAll,
     "answers break the format: lower the learning rate, or mix in whole truths with "
     "`rollout_share: 0.5`"},
    {"duplicates", kAppend,
     "it writes objects twice: `target_policy: rewrite` shows each object once"},
    {"duplicates", kAll,
     "it writes objects twice: look for objects that the truth has twice (`rematch data check`)"},
    {"absent_answered", kAll, kAbsent},
    {"pred_per_gt", kAll, "it stops before every object is named: check that the truth is complete",
     Side::kLow},
    {"pred_per_gt", kAppend,
     "it writes more objects than there are: `target_policy: rewrite` teaches where an answer "
     "ends"},
    {"pred_per_gt", kAll,
     "it writes more objects than there are: look for objects that the truth has twice (`rematch "
     "data check`)"},
};

constexpr const char* kNotLearnt =
    "{}:\n  this checkpoint has not learnt the format, and `target_policy: append` cannot\n  teach "
    "it. Stop, and train stage 1 first:\n  {}";
constexpr const char* kLearnsSlowly =
    "{}:\n  this checkpoint has not learnt the format. `target_policy: rewrite` teaches it,\n  but "
    "stage 1 does so faster, without rollouts:\n  {}";
constexpr const char* kCut =
    "{0}.\n  Stop, and raise custom.extra.rollout_matching.max_new_tokens, which is {2};\n  if the "
    "answers never end, train stage 1 first:\n  {1}";

unsigned run_of(Kind kind) {
  return kind == Kind::kStage1 ? kStage1 : kind == Kind::kAppend ? kAppend : kRewriting;
}

}  // namespace

const char* for_sign(std::string_view sign, const Training& training, double now, bool is_low,
                     double malformed) {
  // Malformed answers explain half of what is missing, or more.
  if (sign == "pred_per_gt" && is_low && malformed > 0 && malformed >= (1 - now) / 2)
    return "most of what is missing is in the answers that are not JSON: fix these first";
  const auto* row = std::ranges::find_if(kRows, [&](const Row& each) {
    return each.sign == sign && (each.runs & run_of(training.kind)) != 0 &&
           (each.side == Side::kAny || is_low);
  });
  REMATCH_CHECK(row != std::end(kRows), std::string(sign));
  return row->text;
}

const char* for_collapse(const Training& training, bool was_varied) {
  if (was_varied) return "earlier answers had more names: lower the learning rate";
  if (training.is_unfinished()) return kTrainOn;
  return "check that the prompt lists the names as the truth spells them";
}

const char* for_unusable(bool is_cut, Kind kind) {
  if (is_cut) return kCut;
  return kind == Kind::kAppend ? kNotLearnt : kLearnsSlowly;
}

}  // namespace rematch::advice
