#include "learn/evaluate/probe_verdict.h"

#include <fmt/core.h>

#include "learn/evaluate/signs.h"

namespace rematch {
namespace {

// Thresholds besides the limits in learn/evaluate/signs.cc; docs/probe.md has the reasons.
// Below it, truncated answers are not loops: max_new_tokens is too low.
constexpr double kFewRepeats = 0.02;
// Above it, a tenth of the rest is less than the difference between seeds.
constexpr double kNothingLeftF1 = 0.96;
constexpr double kNothingLeftLabels = 0.95;
constexpr double kSomeDuplicates = 0.01;  // repeats that stage 2 can halve
constexpr double kMinFound = 0.30;        // share of missing objects found by sampled answers

bool is_too_low(const char* sign, double value) { return value < sign_named(sign).least; }
bool is_too_high(const char* sign, double value) { return value > sign_named(sign).most; }

template <class Part>
double share(Part part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }

constexpr const char* kNeverAppend =
    "not `target_policy: append` from here: it teaches the model to continue after whatever it "
    "wrote";
constexpr const char* kNoise =
    "`custom.coord_input_noise: 12` in stage 1 costs nothing and prepares for the model's own "
    "coordinates";
constexpr const char* kInDigits =
    "these answers are in digits, with which stage 2 came no further than stage 1 of the same cost "
    "(docs/answer_formats.md): train both for a few steps, and compare";
constexpr const char* kAgain = "then run `rematch probe` again";

bool runs_away(const ProbeNumbers& numbers) {
  return is_too_high("truncated", numbers.truncated()) ||
         is_too_high("pred_per_gt", numbers.pred_per_gt()) ||
         is_too_high("duplicates", numbers.duplicates());
}

ProbeVerdict judge_broken_answers(const ProbeNumbers& numbers) {
  ProbeVerdict verdict{
      .action = ProbeAction::kStage1,
      .headline = "continue stage 1: the answers run away",
      .reasons = {fmt::format("{} of the answers are truncated, {} malformed; {:.2f} predictions "
                              "for each object, {} of them repeat "
                              "an earlier one",
                              percent(numbers.truncated()), percent(numbers.malformed()),
                              numbers.pred_per_gt(), percent(numbers.duplicates()))},
      .steps = {}};
  if (is_too_high("truncated", numbers.truncated()) && numbers.duplicates() < kFewRepeats &&
      numbers.pred_per_gt() <= 1) {
    verdict.headline = "raise max_new_tokens, or continue stage 1: the answers are cut off";
    verdict.steps.emplace_back(
        "they hold no repeats: see with `rematch rollout` whether `max_new_tokens` cuts good "
        "answers, and raise it");
  }
  if (!runs_away(numbers) && numbers.malformed() > numbers.truncated()) {
    verdict.headline = "continue stage 1: too many answers are not JSON";
    verdict.steps.emplace_back(
        "read some with `rematch rollout`: a checkpoint that was taught another format or prompt "
        "needs stage 1 from there");
  }
  verdict.steps.emplace_back(
      "stage 1 teaches where an answer ends as well as rewrite does, without rollouts; mix it in "
      "with `rollout_share: 0.5` "
      "if stage 2 must run");
  verdict.steps.emplace_back(kNeverAppend);
  verdict.steps.emplace_back(kAgain);
  return verdict;
}

ProbeVerdict judge_another_format(const ProbeNumbers& numbers) {
  return {.action = ProbeAction::kStage1,
          .headline = "train stage 1, or set the answer format: no answer can be read",
          .reasons = {numbers.greedy.finding()},
          .steps = {"read some with `rematch rollout`: if they are good in their own way, set "
                    "`custom.answer_format` to what the checkpoint writes",
                    "stage 1 teaches this format, without rollouts", kAgain}};
}

ProbeVerdict judge_order(const ProbeNumbers& numbers, bool sorted) {
  const std::optional<double> measured = numbers.order_agreement();
  const std::string agreement =
      measured
          ? fmt::format(
                "{} of neighbouring objects in the answers are in the sorted order (50 % "
                "is chance)",
                percent(*measured))
          : "no answer has two matched objects, so the order of the answers cannot be measured";
  if (sorted) {
    return {
        .action = ProbeAction::kSort,
        .headline =
            "continue stage 1 on sorted answers: the model does not follow the order of the data",
        .reasons = {agreement,
                    "`custom.object_ordering` is sorted: the checkpoint was taught another order, "
                    "or none"},
        .steps = {"stage 1 with `custom.object_ordering: sorted`", kAgain}};
  }
  return {
      .action = ProbeAction::kSort,
      .headline = "sort the answers and continue stage 1",
      .reasons = {"`custom.object_ordering` is random: the model is taught an order that it cannot "
                  "predict",
                  agreement},
      .steps = {"`custom.object_ordering: sorted` if the answers can be sorted: it gained more "
                "than any stage 2 (docs/targets.md)",
                "where they cannot, stage 2 with `target_policy: rewrite`: its order is then the "
                "rollout's",
                kAgain}};
}

ProbeVerdict judge_labels(const ProbeNumbers& numbers) {
  return {.action = ProbeAction::kStage1,
          .headline = "continue stage 1: the labels are not learnt",
          .reasons = {fmt::format(
              "F1 @ IoU 0.5 is {:.3f}, but only {} of the matched objects are named right",
              numbers.f1_50(), percent(numbers.label_accuracy()))},
          .steps = {"stage 1 teaches every label; rollouts add nothing to naming, and append never "
                    "teaches a label",
                    "if stage 1 no longer raises `eval_rollout_label_accuracy`, look at the labels "
                    "(`label_match`, docs/targets.md) and the data",
                    kAgain}};
}

ProbeVerdict judge_unfinished_training(const ProbeNumbers& numbers) {
  return {
      .action = ProbeAction::kStage1,
      .headline = "continue stage 1: it is not finished",
      .reasons = {fmt::format(
          "F1 @ IoU 0.5 is {:.3f}: {} of the objects are missing, {} of the others are named right",
          numbers.f1_50(), percent(numbers.missing()), percent(numbers.label_accuracy()))},
      .steps = {"train stage 1 until F1 on the validation set no longer rises", kNoise,
                "stage 2 with `target_policy: rewrite` works from here too (docs/demo.md), but "
                "every step of it pays for rollouts",
                kAgain}};
}

ProbeVerdict judge_finished_training(const ProbeNumbers& numbers) {
  const double f1 = numbers.f1_50();
  const std::string room = fmt::format(
      "F1 @ IoU 0.5 {:.3f}, {} named right, {} repeats; {} of the objects are missing, and {} of "
      "those appear in one of {} sampled answers",
      f1, percent(numbers.label_accuracy()), percent(numbers.duplicates()),
      percent(numbers.missing()), percent(numbers.found()), numbers.num_draws);
  if (f1 >= kNothingLeftF1 && numbers.label_accuracy() >= kNothingLeftLabels &&
      numbers.duplicates() < kSomeDuplicates) {
    return {.action = ProbeAction::kStop,
            .headline = "stop: nothing measurable is left to gain on this validation set",
            .reasons = {room},
            .steps = {"look for harder validation data before training on"}};
  }
  if (numbers.found() >= kMinFound || numbers.duplicates() >= kSomeDuplicates) {
    return {.action = ProbeAction::kRewrite,
            .headline = "run stage 2 with target_policy: rewrite",
            .reasons = {room},
            .steps = {"`custom.trainer_variant: rollout_matching_sft` and `target_policy: "
                      "rewrite`, at stage 1's learning rate",
                      "`training.eval_on_start: true` and `training.stop_on_harm: true`: the "
                      "health line shows what gets worse",
                      "compare with as many steps of stage 1 with `custom.coord_input_noise: 12`, "
                      "which needs no rollouts"}};
  }
  return {.action = ProbeAction::kNoise,
          .headline = "add noise to stage 1: stage 2 has little to work with",
          .reasons = {room, "rollouts cannot teach what the model never finds in its own samples"},
          .steps = {"stage 1 with `custom.coord_input_noise: 12`", "more data of what is missing",
                    kAgain}};
}

/// The most serious finding.
ProbeVerdict first_finding(const ProbeNumbers& numbers, bool sorted) {
  if (numbers.total().num_truths == 0) {
    return {
        .action = ProbeAction::kStop,
        .headline = "stop: the validation set has no objects",
        .reasons = {fmt::format("{} images without a single object", numbers.total().num_images)},
        .steps = {"set `custom.val_jsonl` to images with objects"}};
  }
  if (numbers.greedy.is_another_format()) return judge_another_format(numbers);
  if (runs_away(numbers) || is_too_high("truncated", numbers.truncated() + numbers.malformed())) {
    return judge_broken_answers(numbers);
  }
  const std::optional<double> agreement = numbers.order_agreement();
  if (!sorted || (agreement && is_too_low("order_agreement", *agreement)))
    return judge_order(numbers, sorted);
  if (is_too_low("f1_iou50", numbers.f1_50())) return judge_unfinished_training(numbers);
  if (is_too_low("label_accuracy", numbers.label_accuracy())) return judge_labels(numbers);
  return judge_finished_training(numbers);
}

}  // namespace

const char* name_of(ProbeAction action) {
  switch (action) {
    case ProbeAction::kSort: return "sort";
    case ProbeAction::kStage1: return "stage_1";
    case ProbeAction::kNoise: return "noise";
    case ProbeAction::kRewrite: return "rewrite";
    case ProbeAction::kStop: break;
  }
  return "stop";
}

ProbeBucket ProbeNumbers::total() const {
  ProbeBucket all;
  if (!by_count.empty())
    all = {.min_objects = by_count.front().min_objects, .max_objects = by_count.back().max_objects};
  for (const ProbeBucket& bucket : by_count) {
    all.num_images += bucket.num_images;
    all.num_truths += bucket.num_truths;
    all.num_predictions += bucket.num_predictions;
    all.num_missing += bucket.num_missing;
    all.num_found += bucket.num_found;
    all.num_repeated += bucket.num_repeated;
  }
  return all;
}

double ProbeNumbers::f1_50() const {
  const ProbeBucket all = total();
  return share(2 * num_matched_50, all.num_truths + all.num_predictions);
}
double ProbeNumbers::label_accuracy() const { return share(num_named_right, num_matched); }
double ProbeNumbers::matched_iou() const { return share(matched_iou_sum, num_matched); }
double ProbeNumbers::duplicates() const {
  return share(total().num_repeated, total().num_predictions);
}
double ProbeNumbers::pred_per_gt() const {
  return share(total().num_predictions, total().num_truths);
}
double ProbeNumbers::truncated() const { return share(greedy.truncated, total().num_images); }
double ProbeNumbers::malformed() const { return share(greedy.malformed, total().num_images); }
double ProbeNumbers::missing() const { return share(total().num_missing, total().num_truths); }
double ProbeNumbers::found() const { return share(total().num_found, total().num_missing); }
std::optional<double> ProbeNumbers::order_agreement() const {
  if (num_neighbours == 0) return std::nullopt;
  return share(num_in_order, num_neighbours);
}

ProbeVerdict judge(const ProbeNumbers& numbers, bool sorted, bool in_digits) {
  ProbeVerdict verdict = first_finding(numbers, sorted);
  const bool offers_stage_2 =
      verdict.action == ProbeAction::kRewrite || (verdict.action == ProbeAction::kSort && !sorted);
  if (in_digits && offers_stage_2) verdict.steps.emplace_back(kInDigits);
  return verdict;
}

}  // namespace rematch
