#include "learn/evaluate/probe.h"

#include <algorithm>
#include <cmath>

#include "base/observe/terminal.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/match/repeats.h"

namespace rematch {
namespace {

constexpr double kStrictGate = 0.5;
// Largest object count of each bucket; larger counts share one more bucket.
constexpr int kBucketEnds[] = {0, 2, 5, 10, 20, 50};

}  // namespace

ProbeBucket& Probe::find_bucket(size_t num_truths) {
  const int count = static_cast<int>(num_truths);
  int from = 0, to = count;
  for (const int end : kBucketEnds) {
    to = end;
    if (count <= end) break;
    from = end + 1;
  }
  ProbeBucket& bucket = buckets_[from];
  bucket.min_objects = from;
  bucket.max_objects = std::max({bucket.max_objects, to, count});
  return bucket;
}

void Probe::add(const ScoredRollout& rollout, const Matching& matching_50,
                const RolloutScorer& scorer, int64_t sample_idx) {
  const LabelMatch& labels = scorer.options().labels;
  const auto num_repeated =
      static_cast<int64_t>(repeated_objects(to_scene(rollout.parsed.objects), kRepeatIou,
                                            scorer.options().match.maskiou_resolution)
                               .size());
  ProbeBucket& bucket = find_bucket(rollout.ground_truth.size());
  bucket.num_images += 1;
  bucket.num_truths += rollout.ground_truth.size();
  bucket.num_predictions += rollout.parsed.objects.size();
  bucket.num_missing += rollout.matching.false_negatives.size();
  bucket.num_repeated += num_repeated;
  numbers_.greedy.add({.answers = 1,
                       .malformed = rollout.parsed.status == ParseStatus::kMalformed,
                       .truncated = rollout.parsed.status == ParseStatus::kTruncated,
                       .with_object = !rollout.parsed.objects.empty(),
                       .dropped = rollout.parsed.dropped_invalid});
  numbers_.num_matched += rollout.matching.pairs.size();
  numbers_.num_matched_50 += matching_50.pairs.size();
  numbers_.matched_iou_sum += rollout.matching.matched_maskiou_sum;
  for (size_t i = 0; i < rollout.matching.pairs.size(); ++i) {
    const auto [prediction, truth] = rollout.matching.pairs[i];
    numbers_.num_named_right +=
        labels.same(rollout.parsed.objects[prediction].desc, rollout.ground_truth[truth].desc);
    if (i == 0) continue;
    numbers_.num_neighbours += 1;
    numbers_.num_in_order += rollout.matching.pairs[i - 1].second < truth;
  }
  if (rollout.matching.false_negatives.empty()) return;
  misses_.push_back({sample_idx, rollout.matching.false_negatives,
                     std::vector<bool>(rollout.matching.false_negatives.size(), false)});
}

void Probe::measure_greedy(const Answers& answers, Terminal& terminal,
                           const std::function<void(const ScoredRollout&)>& on_answer) {
  const int64_t num_samples = answers.scorer.dataset().size();
  MatchSettings strict = answers.scorer.options().match;
  strict.maskiou_gate = kStrictGate;
  const std::vector<SampleBatch> batches = all_batches(num_samples, answers.batch_size);

  const auto on_progress = [&](int64_t num_done) {
    terminal.progress({.phase = "answer", .done = num_done, .total = num_samples});
  };
  const auto on_batch = [&](size_t batch, std::vector<ScoredRollout> scored,
                            const MetricsBag& metrics) {
    numbers_.num_absent += std::llround(metrics.sum("rollout/absent_names"));
    numbers_.num_absent_answered += std::llround(metrics.sum("rollout/absent_answered"));
    for (size_t i = 0; i < scored.size(); ++i) {
      const ScoredRollout& rollout = scored[i];
      on_answer(rollout);
      add(rollout, match_objects(to_scene(rollout.parsed.objects), rollout.ground_truth, strict),
          answers.scorer, batches[batch].samples[i]);
    }
  };
  score_batches(answers.scorer, answers.source, batches, on_progress, on_batch);
  terminal.finish_progress();
}

void Probe::measure_draws(const Answers& answers, int num_draws, Terminal& terminal) {
  numbers_.num_draws = num_draws;
  std::vector<int64_t> samples;
  for (const Miss& miss : misses_) samples.push_back(miss.sample_idx);
  std::vector<SampleBatch> batches;
  for (int draw = 1; draw <= num_draws; ++draw) {
    for (SampleBatch& batch : make_batches(samples, answers.batch_size, draw))
      batches.push_back(std::move(batch));
  }

  const auto on_progress = [&](int64_t num_done) {
    terminal.progress(
        {.phase = "sample", .done = num_done, .total = std::ssize(misses_) * num_draws});
  };
  size_t next = 0;  // each draw visits all of misses_ in order
  const auto on_batch = [&](size_t, std::vector<ScoredRollout> scored, const MetricsBag&) {
    for (const ScoredRollout& rollout : scored) {
      Miss& miss = misses_[next++ % misses_.size()];
      for (const auto& [prediction, truth] : rollout.matching.pairs) {
        const auto at = std::ranges::find(miss.missing, truth);
        if (at != miss.missing.end()) miss.found[at - miss.missing.begin()] = true;
      }
    }
  };
  score_batches(answers.scorer, answers.source, batches, on_progress, on_batch);
  terminal.finish_progress();
  for (const Miss& miss : misses_) {
    const size_t num_truths = answers.scorer.dataset().samples()[miss.sample_idx].objects.size();
    find_bucket(num_truths).num_found += std::ranges::count(miss.found, true);
  }
}

ProbeNumbers Probe::numbers() const {
  ProbeNumbers numbers = numbers_;
  for (const auto& [from, bucket] : buckets_) numbers.by_count.push_back(bucket);
  return numbers;
}

}  // namespace rematch
