#include "program/assembly/asking.h"

#include <utility>

#include "program/assembly/truth.h"

namespace rematch {

Asking::Asking(JobSource source, Use use, const Place& place)
    : job_(open_job(std::move(source), use, place)) {}

void Asking::start() {
  model_ = load_model(job_);
  if (job_.rolls_out()) engine_.emplace(start_engine(job_, model_, job_.settings().generation));
}

void Asking::answer_records(const std::function<void(const ScoredRollout&)>& visit) const {
  const Dataset& records = *job_.data.val;
  const RolloutScorer scorer = make_scorer(job_, records, scoring_options(job_), *engine_);
  score_batches(
      scorer, engine_->source(), all_batches(records, engine_->batch_size),
      [&](int64_t num_done) {
        job_.terminal.progress({.phase = "answers", .done = num_done, .total = records.size()});
      },
      [&](size_t, const std::vector<ScoredRollout>& scored, const MetricsBag&) {
        for (const ScoredRollout& rollout : scored) visit(rollout);
      });
  job_.terminal.finish_progress();
}

}  // namespace rematch
