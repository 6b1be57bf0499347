#include "evaluate/probe.h"

#include <algorithm>
#include <numeric>

#include "estep/match/match_policy.h"
#include "estep/match/repeats.h"
#include "observe/terminal.h"

namespace rematch {
namespace {

constexpr double kRepeatIou = 0.5;  // that of `duplicates`
constexpr double kStrictGate = 0.5;
// last counts of objects of a bucket; more than the last one make their own
constexpr int kBucketEnds[] = {0, 2, 5, 10, 20, 50};

}  // namespace

ProbeBucket& Probe::bucket_of(size_t num_truths) {
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

void Probe::add(const Examined& one, const Matching& matching_50, const Examiner& examiner,
                int64_t sample_idx) {
  const LabelMatch& labels = examiner.options().labels;
  const auto num_repeated =
      static_cast<int64_t>(repeated_objects(scene_of(one.parsed.objects), kRepeatIou,
                                            examiner.options().match.maskiou_resolution)
                               .size());
  ProbeBucket& bucket = bucket_of(one.ground_truth.size());
  bucket.num_images += 1;
  bucket.num_truths += static_cast<int64_t>(one.ground_truth.size());
  bucket.num_predictions += static_cast<int64_t>(one.parsed.objects.size());
  bucket.num_missing += static_cast<int64_t>(one.matching.false_negatives.size());
  bucket.num_repeated += num_repeated;
  numbers_.num_truncated += one.parsed.status == ParseStatus::kTruncated;
  numbers_.num_malformed += one.parsed.status == ParseStatus::kMalformed;
  numbers_.num_matched += static_cast<int64_t>(one.matching.pairs.size());
  numbers_.num_matched_50 += static_cast<int64_t>(matching_50.pairs.size());
  numbers_.matched_iou_sum += one.matching.matched_maskiou_sum;
  for (size_t i = 0; i < one.matching.pairs.size(); ++i) {
    const auto [prediction, truth] = one.matching.pairs[i];
    numbers_.num_named_right +=
        labels.canonical(one.parsed.objects[static_cast<size_t>(prediction)].desc) ==
        labels.canonical(one.ground_truth[static_cast<size_t>(truth)].desc);
    if (i == 0) continue;
    numbers_.num_neighbours += 1;
    numbers_.num_in_order += one.matching.pairs[i - 1].second < truth;
  }
  if (one.matching.false_negatives.empty()) return;
  misses_.push_back({sample_idx, one.matching.false_negatives,
                     std::vector<bool>(one.matching.false_negatives.size(), false)});
}

void Probe::measure_greedy(const Answers& answers, Terminal& terminal) {
  const auto num_samples = static_cast<int64_t>(answers.examiner.dataset().samples().size());
  MatchSettings strict = answers.examiner.options().match;
  strict.maskiou_gate = kStrictGate;
  MetricsBag unused;
  GenerationScope scope(answers.engine, answers.offload, kWeightsOfNow);
  for (int64_t begin = 0; begin < num_samples; begin += answers.batch_size) {
    std::vector<int64_t> chunk(
        static_cast<size_t>(std::min<int64_t>(answers.batch_size, num_samples - begin)));
    std::iota(chunk.begin(), chunk.end(), begin);
    const std::vector<Examined> examined = answers.examiner.examine(chunk, 0, unused);
    for (size_t i = 0; i < examined.size(); ++i) {
      const Examined& one = examined[i];
      add(one, match_objects(scene_of(one.parsed.objects), one.ground_truth, strict),
          answers.examiner, chunk[i]);
    }
    terminal.progress({.phase = "answer",
                       .done = begin + static_cast<int64_t>(chunk.size()),
                       .total = num_samples});
  }
  scope.finish();
  terminal.finish_progress();
}

void Probe::measure_draws(const Answers& answers, int num_draws, Terminal& terminal) {
  numbers_.num_draws = num_draws;
  const auto total = static_cast<int64_t>(misses_.size()) * num_draws;
  MetricsBag unused;
  GenerationScope scope(answers.engine, answers.offload, kWeightsOfNow);
  int64_t done = 0;
  for (int draw = 1; draw <= num_draws; ++draw) {
    for (size_t begin = 0; begin < misses_.size();
         begin += static_cast<size_t>(answers.batch_size)) {
      const size_t end = std::min(misses_.size(), begin + static_cast<size_t>(answers.batch_size));
      std::vector<int64_t> chunk;
      for (size_t i = begin; i < end; ++i) chunk.push_back(misses_[i].sample_idx);
      const std::vector<Examined> examined = answers.examiner.examine(chunk, draw, unused);
      for (size_t i = begin; i < end; ++i) {
        for (const auto& [prediction, truth] : examined[i - begin].matching.pairs) {
          const auto at = std::find(misses_[i].missing.begin(), misses_[i].missing.end(), truth);
          if (at != misses_[i].missing.end())
            misses_[i].found[static_cast<size_t>(at - misses_[i].missing.begin())] = true;
        }
      }
      done += static_cast<int64_t>(chunk.size());
      terminal.progress({.phase = "sample", .done = done, .total = total});
    }
  }
  scope.finish();
  terminal.finish_progress();
  for (const Miss& miss : misses_) {
    const size_t num_truths =
        answers.examiner.dataset().samples()[static_cast<size_t>(miss.sample_idx)].objects.size();
    bucket_of(num_truths).num_found += std::count(miss.found.begin(), miss.found.end(), true);
  }
}

ProbeNumbers Probe::numbers() const {
  ProbeNumbers numbers = numbers_;
  for (const auto& [from, bucket] : buckets_) numbers.by_count.push_back(bucket);
  return numbers;
}

}  // namespace rematch
