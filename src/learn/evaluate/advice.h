#pragma once
#include <string_view>

// Every advice on training, by phase. `{}` stands for a value (fmt::format).

namespace rematch::advice {

// Before a run, in `rematch check` and at the start of `train`.
inline constexpr const char* kLongAnswers =
    "the longest true answer of {} has {} tokens ({}), and max_new_tokens is {}: {} of {} do not "
    "fit, so {}evaluations and `predict` (rematch_prompt.json of the checkpoints) would cut them "
    "off; custom.extra.rollout_matching.max_new_tokens: {} holds it";
inline constexpr const char* kLongRollouts =
    "{} of {} samples of {} can exceed global_max_length ({}) when a rollout uses all of "
    "max_new_tokens ({}) and the whole truth follows: up to {} tokens; such a segment {}";
inline constexpr const char* kLongWarmup =
    "training.warmup_steps is {}, and the run has {}: it ends before the learning rate has reached "
    "training.learning_rate";
inline constexpr const char* kShortRun = "{}: too few to learn from; raise {}";

// After a run: the verdict of `rematch probe`.
inline constexpr const char* kNoObjects =
    "stop: the validation set has no objects; set `custom.val_jsonl` to images with objects";
inline constexpr const char* kUnreadable =
    "train stage 1, or set `custom.answer_format` to what the checkpoint writes: {}";
inline constexpr const char* kRunsAway = "continue stage 1: the answers run away";
inline constexpr const char* kCutOff =
    "raise max_new_tokens, or continue stage 1: the answers are cut off";
inline constexpr const char* kNotJson = "continue stage 1: too many answers are not JSON";
inline constexpr const char* kSort =
    "sort the answers (`custom.object_ordering: sorted`) and continue stage 1; where they cannot "
    "be sorted, run stage 2 with target_policy: rewrite";
inline constexpr const char* kOwnOrder =
    "keep the truth in the model's own order (`custom.object_ordering: own`) and continue stage 1";
inline constexpr const char* kKeepSorting =
    "continue stage 1 on sorted answers: the model does not follow their order";
inline constexpr const char* kUnfinished =
    "continue stage 1, with `custom.coord_input_noise: 12`: it is not finished";
inline constexpr const char* kLabels = "continue stage 1: the labels are not learnt";
inline constexpr const char* kNothingLeft =
    "stop: nothing measurable is left to gain on this validation set";
inline constexpr const char* kRewrite = "run stage 2 with target_policy: rewrite";
inline constexpr const char* kNoise =
    "add noise to stage 1 (`custom.coord_input_noise: 12`): stage 2 has little to work with";
inline constexpr const char* kAbsent =
    "it boxes listed classes that are not there: `custom.absent_classes` teaches that";
inline constexpr const char* kInDigits =
    "{}; with answers in digits it came no further than stage 1 of the same cost";

// While a run trains: the health line.
inline constexpr const char* kTrainOn = "train on: answers settle in the first 3 epochs of stage 1";

/// The training behind some answers, as far as advice depends on it.
struct Training {
  enum class Kind { kStage1, kAppend, kRewrite };
  Kind kind = Kind::kRewrite;
  double epoch = 0;  ///< epochs done

  /// Stage 1 before its answers have settled.
  bool is_unfinished() const { return kind == Kind::kStage1 && epoch < 3; }
};

/// Advice on a sign that got worse (learn/evaluate/health.h), or on F1.
/// @param is_low  the sign is lower than before
/// @param malformed  share of the answers now, if that got worse too
const char* for_sign(std::string_view sign, const Training& training, double now, bool is_low,
                     double malformed);

/// Advice on answers that have one name for most objects.
/// @param was_varied  an earlier evaluation had more names
const char* for_collapse(const Training& training, bool was_varied);

/// The start of a stage-2 run in which no answer is usable.
/// @param is_cut  all answers that are not malformed are cut off
const char* for_unusable(bool is_cut, Training::Kind kind);

}  // namespace rematch::advice
