#include "learn/evaluate/evaluate.h"

#include <algorithm>
#include <chrono>

#include "base/interrupt.h"
#include "base/observe/catalog.h"
#include "base/observe/sinks.h"
#include "base/observe/terminal.h"
#include "base/window_order.h"
#include "engine/ranks/gather.h"
#include "learn/estep/match/match_policy.h"
#include "learn/evaluate/coco_scene.h"

namespace rematch {
namespace {

// Part of the sampling key, so that two evaluations of the same weights agree.
constexpr int64_t kEpoch = 0;

// Adds the scores of a rollout's objects with COCO's verdict; those of an image do not depend on
// other images.
void judge_scores(const ScoredRollout& rollout, const Objects& predictions,
                  const LabelMatch& labels, std::vector<RankedClass::Prediction>& scores) {
  if (rollout.scores.empty()) return;
  const Sample& sample = *rollout.sample;
  CocoEvaluator coco;
  coco.add(labelled_boxes(rollout.ground_truth, sample.width_px, sample.height_px, labels),
           labelled_boxes(predictions, sample.width_px, sample.height_px, labels, rollout.scores));
  for (const RankedClass& ranked : coco.ranked_classes())
    scores.insert(scores.end(), ranked.predictions.begin(), ranked.predictions.end());
}

}  // namespace

/// Observations of a batch. All batches in order equal the observations of a single process.
struct Evaluation::Batch {
  std::vector<int64_t> samples;
  MetricsBag rollouts;
  std::vector<MetricsBag> at_gates;
  NameCounts names;
  std::vector<RankedClass::Prediction> scores;
  NamedSums teacher_by_kind, teacher_details;
  std::vector<Rollout> answers;  ///< for the visitor of rank 0

  friend void fields(auto& wire, Batch& batch) {
    wire(batch.samples, batch.rollouts, batch.at_gates, batch.names, batch.scores,
         batch.teacher_by_kind, batch.teacher_details, batch.answers);
  }
};

Evaluation::Evaluation(std::optional<Answers> answers, std::optional<Truth> truth,
                       int64_t num_samples, Options options)
    : answers_(std::move(answers)),
      truth_(std::move(truth)),
      num_samples_(num_samples),
      options_(std::move(options)) {}

/// Batch 0 is rank 0's, batch 1 rank 1's, and so on.
std::vector<SampleBatch> Evaluation::own_batches() const {
  return own_part(all_batches(num_samples_, options_.batch_size), options_.group->rank(),
                  options_.group->size());
}

EvaluationResult Evaluation::run(Terminal& terminal, const Visitor& visit) {
  Group& group = *options_.group;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Batch> batches;
  for (SampleBatch& batch : own_batches())
    batches.push_back({.samples = std::move(batch.samples),
                       .at_gates = std::vector<MetricsBag>(options_.extra_gates.size())});
  if (truth_) measure_truth(terminal, batches);
  if (answers_) score_rollouts(terminal, visit, batches);

  EvaluationResult result;
  batches = in_window_order(gather(group, batches));
  if (group.rank() == 0) {
    if (visit && answers_ && !group.is_alone()) visit_all(batches, visit);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result = reduce(batches, seconds.count());
  }
  result.values = from_first_rank(group, result.values);
  result.greater_is_better = options_.settings.greater_is_better;
  result.eval_set = options_.eval_set;
  result.metric = find_value(result.values, options_.settings.metric_for_best_model);
  return result;
}

EvaluationResult Evaluation::reduce(const std::vector<Batch>& batches, double seconds) const {
  MetricsBag metrics;
  std::vector<MetricsBag> at_gates(options_.extra_gates.size());
  NameCounts names;
  std::vector<RankedClass::Prediction> scores;
  NamedSums by_kind, details;
  for (const Batch& batch : batches) {
    metrics.merge(batch.rollouts);
    for (const auto& [name, counts] : batch.names) {
      for (size_t i = 0; i < counts.size(); ++i) names[name][i] += counts[i];
    }
    scores.insert(scores.end(), batch.scores.begin(), batch.scores.end());
    for (size_t i = 0; i < at_gates.size(); ++i) at_gates[i].merge(batch.at_gates[i]);
    by_kind.add(batch.teacher_by_kind);
    details.add(batch.teacher_details);
  }

  if (truth_) {
    double eval_loss = 0;
    for (const auto& [kind, sum] : by_kind) eval_loss += sum.mean();
    metrics.add("eval_loss", eval_loss);
    metrics.add("eval_token_acc", details.of(kCorrectTokens).mean());
  }
  metrics.add("eval_runtime", seconds);
  metrics.add("eval_samples_per_second", seconds > 0 ? num_samples_ / seconds : 0.0);

  EvaluationResult result{.values = reduce_metrics(metrics, MetricScope::kEvaluation),
                          .collapse = find_collapse(names),
                          .calibration = ScoreCalibration::fit(std::move(scores))};
  if (result.calibration) result.calibration->set_eval_set(options_.eval_set);
  for (size_t i = 0; i < at_gates.size(); ++i) {
    for (auto& value : reduce_gate_metrics(at_gates[i], options_.extra_gates[i]))
      result.values.push_back(std::move(value));
  }
  return result;
}

void Evaluation::score_rollouts(Terminal& terminal, const Visitor& visit,
                                std::vector<Batch>& batches) const {
  options_.group->barrier();  // no rank enters a shared engine after another one failed
  const bool is_alone = options_.group->is_alone();
  const auto& [scorer, source] = *answers_;
  const LabelMatch& labels = scorer.options().labels;
  // Assumes that the other ranks are as far.
  const auto on_progress = [&](int64_t num_done) {
    terminal.progress({.phase = "answers",
                       .done = std::min(num_done * options_.group->size(), num_samples_),
                       .total = num_samples_});
  };
  const auto on_batch = [&](size_t i, std::vector<ScoredRollout> scored, MetricsBag metrics) {
    Batch& batch = batches[i];
    batch.rollouts = std::move(metrics);
    for (ScoredRollout& rollout : scored) {
      const Objects predictions = to_scene(rollout.parsed.objects);
      count_names(rollout.ground_truth, predictions, labels, batch.names);
      for (size_t gate = 0; gate < options_.extra_gates.size(); ++gate) {
        MatchSettings match = scorer.options().match;
        match.maskiou_gate = options_.extra_gates[gate];
        scorer.observe(rollout, match_objects(predictions, rollout.ground_truth, match),
                       batch.at_gates[gate]);
      }
      judge_scores(rollout, predictions, labels, batch.scores);
      if (visit && is_alone) visit(rollout);
      if (visit && !is_alone) batch.answers.push_back(std::move(rollout.rollout));
    }
  };
  score_batches(scorer, source, own_batches(), on_progress, on_batch);
  terminal.finish_progress();
}

// Parses and matches the answers of other ranks again, which is faster than sending the results.
void Evaluation::visit_all(const std::vector<Batch>& batches, const Visitor& visit) const {
  MetricsBag unused;
  for (const Batch& batch : batches) {
    std::vector<ScoredRollout> rollouts = answers_->scorer.prepare(batch.samples, kEpoch);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      rollouts[i].rollout = batch.answers[i];
      answers_->scorer.parse(rollouts[i], unused);
      answers_->scorer.match(rollouts[i], unused);
      visit(rollouts[i]);
    }
  }
}

void Evaluation::measure_truth(Terminal& terminal, std::vector<Batch>& batches) const {
  int64_t num_done = 0;
  for (Batch& batch : batches) {
    throw_if_interrupted();
    PackedRow row;
    for (const int64_t index : batch.samples)
      row.segments.push_back(truth_->segments->segment_at(index, kEpoch));
    const RowLoss loss = truth_->loss(row);
    batch.teacher_by_kind = loss.by_kind;
    batch.teacher_details = loss.details;
    num_done += std::ssize(batch.samples) * options_.group->size();
    terminal.progress(
        {.phase = "loss", .done = std::min(num_done, num_samples_), .total = num_samples_});
  }
  if (truth_->meet) truth_->meet();
  terminal.finish_progress();
}

}  // namespace rematch
