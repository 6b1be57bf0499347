#include "learn/evaluate/probe_verdict.h"

#include <fmt/core.h>

#include "learn/evaluate/advice.h"

namespace rematch {
namespace {

// Thresholds; docs/probe.md has the reasons.
constexpr double kMostBroken = 0.05;  // answers that are truncated or malformed
constexpr double kMostRepeats = 0.10;
constexpr double kMostPerTruth = 1.25;
constexpr double kLeastOrder = 0.80;
constexpr double kLeastF1 = 0.80;
constexpr double kLeastLabels = 0.70;
// Below it, truncated answers are not loops: max_new_tokens is too low.
constexpr double kFewRepeats = 0.02;
// Above it, a tenth of the rest is less than the difference between seeds.
constexpr double kNothingLeftF1 = 0.96;
constexpr double kNothingLeftLabels = 0.95;
constexpr double kSomeDuplicates = 0.01;  // repeats that stage 2 can halve
constexpr double kMinFound = 0.30;        // share of missing objects found by sampled answers
constexpr double kMostAbsent = 0.20;  // share of absent classes with a box: .1 is taught, .5 is not

bool runs_away(const ProbeNumbers& numbers) {
  return numbers.truncated() > kMostBroken || numbers.pred_per_gt() > kMostPerTruth ||
         numbers.duplicates() > kMostRepeats;
}

ProbeVerdict judge_broken_answers(const ProbeNumbers& numbers) {
  const bool is_cut = numbers.truncated() > kMostBroken && numbers.duplicates() < kFewRepeats &&
                      numbers.pred_per_gt() <= 1;
  if (is_cut) return {ProbeAction::kStage1, advice::kCutOff};
  const bool is_malformed = !runs_away(numbers) && numbers.malformed() > numbers.truncated();
  return {ProbeAction::kStage1, is_malformed ? advice::kNotJson : advice::kRunsAway};
}

ProbeVerdict judge_finished_training(const ProbeNumbers& numbers) {
  if (numbers.f1_50() >= kNothingLeftF1 && numbers.label_accuracy() >= kNothingLeftLabels &&
      numbers.duplicates() < kSomeDuplicates)
    return {ProbeAction::kStop, advice::kNothingLeft};
  if (numbers.found() >= kMinFound || numbers.duplicates() >= kSomeDuplicates)
    return {ProbeAction::kRewrite, advice::kRewrite};
  return {ProbeAction::kNoise, advice::kNoise};
}

/// The most serious finding.
ProbeVerdict first_finding(const ProbeNumbers& numbers, bool sorted, bool keeps_own) {
  if (numbers.total().num_truths == 0) return {ProbeAction::kStop, advice::kNoObjects};
  if (numbers.greedy.is_another_format())
    return {ProbeAction::kStage1, fmt::format(advice::kUnreadable, numbers.greedy.finding())};
  if (runs_away(numbers) || numbers.truncated() + numbers.malformed() > kMostBroken)
    return judge_broken_answers(numbers);
  const bool follows = numbers.order_agreement().value_or(1) >= kLeastOrder;
  if (keeps_own && !(sorted && follows)) return {ProbeAction::kSort, advice::kOwnOrder};
  if (!sorted) return {ProbeAction::kSort, advice::kSort};
  if (!follows) return {ProbeAction::kSort, advice::kKeepSorting};
  if (numbers.f1_50() < kLeastF1) return {ProbeAction::kStage1, advice::kUnfinished};
  if (numbers.label_accuracy() < kLeastLabels) return {ProbeAction::kStage1, advice::kLabels};
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

ProbeVerdict judge(const ProbeNumbers& numbers, bool sorted, bool in_digits, bool has_order) {
  const bool keeps_own = in_digits && has_order;
  ProbeVerdict verdict = first_finding(numbers, sorted, keeps_own);
  const bool offers_stage_2 = verdict.action == ProbeAction::kRewrite ||
                              (verdict.action == ProbeAction::kSort && !sorted && !keeps_own);
  if (in_digits && offers_stage_2)
    verdict.headline = fmt::format(advice::kInDigits, verdict.headline);
  if (numbers.absent_answered() > kMostAbsent)
    verdict.headline += fmt::format(". And {}", advice::kAbsent);
  return verdict;
}

}  // namespace rematch
