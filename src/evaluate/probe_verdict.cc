#include "evaluate/probe_verdict.h"

#include <fmt/core.h>

namespace rematch {
namespace {

// Where each comes from: docs/probe.md.
constexpr double kMostBroken = 0.05;      // truncated and malformed answers
constexpr double kMostPredPerGt = 1.25;   // predictions per truth
constexpr double kMostDuplicates = 0.10;  // predictions that repeat an earlier one
// with fewer, a truncated answer is no loop: max_new_tokens is too low
constexpr double kFewRepeats = 0.02;
constexpr double kLeastInOrder = 0.80;  // neighbours in the sorted order
constexpr double kLeastLabels = 0.70;   // matched objects named right
constexpr double kFinishedF1 = 0.80;    // F1 @ IoU 0.5 of a finished stage 1
// above it, a tenth of the rest is less than seeds differ by
constexpr double kNothingLeftF1 = 0.96;
constexpr double kNothingLeftLabels = 0.95;
constexpr double kSomeDuplicates = 0.01;  // repeats that stage 2 can halve
constexpr double kLeastFound = 0.30;      // missing objects that a sampled answer has

double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }

constexpr const char* kNeverAppend =
    "not `target_policy: append` from here: it teaches to go on after everything the model writes";
constexpr const char* kNoise =
    "`custom.coord_input_noise: 12` in stage 1 costs nothing and prepares for the model's own "
    "coordinates";
constexpr const char* kAgain = "then run `rematch probe` again";

ProbeVerdict broken(const ProbeNumbers& numbers) {
  ProbeVerdict verdict{
      .action = ProbeAction::kStage1,
      .headline = "go on with stage 1: the answers run away",
      .reasons = {fmt::format("{} of the answers are truncated, {} malformed; {:.2f} predictions "
                              "for each object, {} of them repeat "
                              "an earlier one",
                              percent(numbers.truncated()), percent(numbers.malformed()),
                              numbers.pred_per_gt(), percent(numbers.duplicates()))},
      .steps = {}};
  if (numbers.truncated() > kMostBroken && numbers.duplicates() < kFewRepeats &&
      numbers.pred_per_gt() <= 1) {
    verdict.headline = "raise max_new_tokens, or go on with stage 1: the answers are cut off";
    verdict.steps.emplace_back(
        "they hold no repeats: see with `rematch rollout` whether `max_new_tokens` cuts good "
        "answers, and raise it");
  }
  const bool runs_away = numbers.truncated() > kMostBroken ||
                         numbers.pred_per_gt() > kMostPredPerGt ||
                         numbers.duplicates() > kMostDuplicates;
  if (!runs_away && numbers.malformed() > numbers.truncated()) {
    verdict.headline = "go on with stage 1: the answers are not JSON";
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

ProbeVerdict disordered(const ProbeNumbers& numbers, bool sorted) {
  const std::string agreement = fmt::format(
      "{} of neighbouring objects in the answers stand in the sorted order (50 % is chance)",
      percent(numbers.order_agreement()));
  if (sorted) {
    return {
        .action = ProbeAction::kSort,
        .headline =
            "go on with stage 1 on sorted answers: the model does not follow the order of the data",
        .reasons = {agreement,
                    "`custom.object_ordering` is sorted: the checkpoint was taught another order, "
                    "or none"},
        .steps = {"stage 1 with `custom.object_ordering: sorted`", kAgain}};
  }
  return {
      .action = ProbeAction::kSort,
      .headline = "sort the answers and go on with stage 1",
      .reasons =
          {"`custom.object_ordering` is random: the model is taught an order that it cannot know",
           agreement},
      .steps = {"`custom.object_ordering: sorted` if the answers can be sorted: it gained more "
                "than any stage 2 (docs/targets.md)",
                "where they cannot, stage 2 with `target_policy: rewrite`: its order is then the "
                "rollout's",
                kAgain}};
}

ProbeVerdict nameless(const ProbeNumbers& numbers) {
  return {.action = ProbeAction::kStage1,
          .headline = "go on with stage 1: the labels are not learnt",
          .reasons = {fmt::format(
              "F1 @ IoU 0.5 is {:.3f}, but only {} of the matched objects are named right",
              numbers.f1_50(), percent(numbers.label_accuracy()))},
          .steps = {"stage 1 teaches every label; rollouts add nothing to naming, and append never "
                    "teaches a label",
                    "if stage 1 no longer raises `eval_rollout_label_accuracy`, look at the labels "
                    "(`label_match`, docs/targets.md) and the data",
                    kAgain}};
}

ProbeVerdict unfinished(const ProbeNumbers& numbers) {
  return {
      .action = ProbeAction::kStage1,
      .headline = "go on with stage 1: it is not finished",
      .reasons = {fmt::format(
          "F1 @ IoU 0.5 is {:.3f}: {} of the objects are missing, {} of the others are named right",
          numbers.f1_50(), percent(numbers.missing()), percent(numbers.label_accuracy()))},
      .steps = {"train stage 1 until F1 on the validation set no longer rises", kNoise,
                "stage 2 with `target_policy: rewrite` works from here too (docs/demo.md), but "
                "every step of it pays for rollouts",
                kAgain}};
}

ProbeVerdict finished(const ProbeNumbers& numbers) {
  const double f1 = numbers.f1_50();
  const std::string room = fmt::format(
      "F1 @ IoU 0.5 {:.3f}, {} named right, {} repeats; {} of the objects are missing, and {} of "
      "those "
      "appear in one of {} sampled answers",
      f1, percent(numbers.label_accuracy()), percent(numbers.duplicates()),
      percent(numbers.missing()), percent(numbers.found()), numbers.num_draws);
  if (f1 >= kNothingLeftF1 && numbers.label_accuracy() >= kNothingLeftLabels &&
      numbers.duplicates() < kSomeDuplicates) {
    return {.action = ProbeAction::kStop,
            .headline = "stop: nothing measurable is left to gain on this validation set",
            .reasons = {room},
            .steps = {"look for harder validation data before training on"}};
  }
  if (numbers.found() >= kLeastFound || numbers.duplicates() >= kSomeDuplicates) {
    return {.action = ProbeAction::kRewrite,
            .headline = "run stage 2 with target_policy: rewrite",
            .reasons = {room},
            .steps = {"`custom.trainer_variant: rollout_matching_sft` and `target_policy: "
                      "rewrite`, at a fifth of stage 1's peak learning "
                      "rate",
                      "`training.eval_on_start: true` and `training.stop_on_harm: true`: the "
                      "health line shows what gets worse",
                      "compare with as many steps of stage 1 with `custom.coord_input_noise: 12`, "
                      "which needs no rollouts"}};
  }
  return {.action = ProbeAction::kNoise,
          .headline = "add noise to stage 1: stage 2 has little to work with",
          .reasons = {room,
                      "what the model does not find in its own samples, rollouts cannot bring up"},
          .steps = {"stage 1 with `custom.coord_input_noise: 12`", "more data of what is missing",
                    kAgain}};
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
  return share(2.0 * static_cast<double>(num_matched_50),
               static_cast<double>(all.num_truths + all.num_predictions));
}
double ProbeNumbers::label_accuracy() const {
  return share(static_cast<double>(num_named_right), static_cast<double>(num_matched));
}
double ProbeNumbers::matched_iou() const {
  return share(matched_iou_sum, static_cast<double>(num_matched));
}
double ProbeNumbers::duplicates() const {
  return share(static_cast<double>(total().num_repeated),
               static_cast<double>(total().num_predictions));
}
double ProbeNumbers::pred_per_gt() const {
  return share(static_cast<double>(total().num_predictions),
               static_cast<double>(total().num_truths));
}
double ProbeNumbers::truncated() const {
  return share(static_cast<double>(num_truncated), static_cast<double>(total().num_images));
}
double ProbeNumbers::malformed() const {
  return share(static_cast<double>(num_malformed), static_cast<double>(total().num_images));
}
double ProbeNumbers::missing() const {
  return share(static_cast<double>(total().num_missing), static_cast<double>(total().num_truths));
}
double ProbeNumbers::found() const {
  return share(static_cast<double>(total().num_found), static_cast<double>(total().num_missing));
}
double ProbeNumbers::order_agreement() const {
  return num_neighbours == 0
             ? 1.0
             : share(static_cast<double>(num_in_order), static_cast<double>(num_neighbours));
}

ProbeVerdict judge(const ProbeNumbers& numbers, bool sorted) {
  if (numbers.total().num_truths == 0) {
    return {
        .action = ProbeAction::kStop,
        .headline = "stop: the validation set has no objects to judge by",
        .reasons = {fmt::format("{} images without a single object", numbers.total().num_images)},
        .steps = {"set `custom.val_jsonl` to images with objects"}};
  }
  if (numbers.truncated() + numbers.malformed() > kMostBroken ||
      numbers.pred_per_gt() > kMostPredPerGt || numbers.duplicates() > kMostDuplicates) {
    return broken(numbers);
  }
  if (!sorted || numbers.order_agreement() < kLeastInOrder) return disordered(numbers, sorted);
  if (numbers.f1_50() < kFinishedF1) return unfinished(numbers);
  if (numbers.label_accuracy() < kLeastLabels) return nameless(numbers);
  return finished(numbers);
}

}  // namespace rematch
