#include "evaluate/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "ranks/phase.h"
#include "ranks/bag_bytes.h"
#include "estep/match/match_policy.h"
#include "observe/catalog.h"
#include "observe/terminal.h"

namespace rematch {
namespace {

// keys the sampling, so that two evaluations of the same weights agree
constexpr int64_t kEpoch = 0;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

Json sums_json(const NamedSums& sums) {
  Json json = Json::object();
  for (const auto& [name, sum] : sums) json[name] = {sum.sum, sum.count};
  return json;
}

NamedSums read_sums(const Json& json) {
  NamedSums sums;
  for (const auto& item : json.items())
    sums.add(item.key(), {item.value()[0].get<double>(), item.value()[1].get<int64_t>()});
  return sums;
}

Json bag_json(const MetricsBag& bag) {
  const std::string bytes = bytes_of(bag);
  return Json::binary({bytes.begin(), bytes.end()});
}

MetricsBag read_bag(const Json& json) {
  const auto& bytes = json.get_binary();
  return bag_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Json answer_json(const Rollout& rollout) {
  return {rollout.sample_id, rollout.prompt_token_ids, rollout.response_token_ids,
          static_cast<int>(rollout.finish_reason)};
}

Rollout read_answer(const Json& json) {
  return {.sample_id = json[0].get<int64_t>(),
          .prompt_token_ids = json[1].get<std::vector<TokenId>>(),
          .response_token_ids = json[2].get<std::vector<TokenId>>(),
          .finish_reason = static_cast<FinishReason>(json[3].get<int>())};
}

// Binary JSON: numbers keep their bits, whatever they are.
std::string packed(const Json& json) {
  const std::vector<uint8_t> bytes = Json::to_msgpack(json);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Evaluation::Evaluation(Examiner* examiner, RolloutEngine* engine,
                       std::unique_ptr<TeacherSource> teacher, TeacherLoss teacher_loss,
                       int64_t num_samples, Options options)
    : examiner_(examiner),
      engine_(engine),
      teacher_(std::move(teacher)),
      teacher_loss_(std::move(teacher_loss)),
      num_samples_(num_samples),
      options_(std::move(options)) {}

int64_t Evaluation::num_batches() const {
  return (num_samples_ + options_.batch_size - 1) / options_.batch_size;
}

std::vector<int64_t> Evaluation::samples_of(int64_t batch) const {
  const int64_t begin = batch * options_.batch_size,
                end = std::min<int64_t>(begin + options_.batch_size, num_samples_);
  std::vector<int64_t> indices(static_cast<size_t>(std::max<int64_t>(0, end - begin)));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

EvaluationResult Evaluation::run(Terminal& terminal, const Visitor& visit) {
  Group& group = *options_.group;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Batch> batches(static_cast<size_t>(num_batches()));
  together(group, [&] {
    if (teacher_ != nullptr) run_teacher(terminal, batches);
  });
  together(group, [&] {
    if (examiner_ != nullptr) run_rollouts(terminal, visit, batches);
  });
  gather(batches);
  together(group, [&] {
    if (visit && examiner_ != nullptr && !group.is_alone() && group.rank() == 0)
      visit_all(batches, visit);
  });
  EvaluationResult result;
  result.greater_is_better = options_.settings.greater_is_better;
  if (group.rank() == 0)
    reduce(batches, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
           result);
  if (!group.is_alone()) {
    const Json values = Json::from_msgpack(group.broadcast(packed(result.values)));
    result.values = values.get<std::vector<std::pair<std::string, double>>>();
  }
  for (const auto& [name, value] : result.values) {
    if (name == options_.settings.metric_for_best_model) result.metric = value;
  }
  return result;
}

// Rank 0 receives the batches of the others.
void Evaluation::gather(std::vector<Batch>& batches) const {
  Group& group = *options_.group;
  if (group.is_alone()) return;
  Json mine = Json::array();
  for (int64_t batch = group.rank(); batch < num_batches(); batch += group.size()) {
    const Batch& one = batches[static_cast<size_t>(batch)];
    Json gates = Json::array(), answers = Json::array();
    for (const MetricsBag& bag : one.at_gates) gates.push_back(bag_json(bag));
    for (const Rollout& rollout : one.answers) answers.push_back(answer_json(rollout));
    mine.push_back({bag_json(one.rollouts), sums_json(one.teacher.by_kind),
                    sums_json(one.teacher.details), gates, answers});
  }
  const std::vector<std::string> texts = group.all_gather(packed(mine));
  if (group.rank() != 0) return;
  for (int rank = 1; rank < group.size(); ++rank) {
    auto batch = static_cast<size_t>(rank);
    for (const Json& item : Json::from_msgpack(texts[static_cast<size_t>(rank)])) {
      Batch& one = batches[batch];
      one.rollouts = read_bag(item[0]);
      one.teacher = {.by_kind = read_sums(item[1]), .details = read_sums(item[2])};
      for (const Json& bag : item[3]) one.at_gates.push_back(read_bag(bag));
      for (const Json& answer : item[4]) one.answers.push_back(read_answer(answer));
      batch += static_cast<size_t>(group.size());
    }
  }
}

void Evaluation::reduce(const std::vector<Batch>& batches, double seconds,
                        EvaluationResult& result) const {
  MetricsBag metrics;
  std::vector<MetricsBag> at_gates(options_.extra_gates.size());
  RowLoss teacher;
  for (const Batch& batch : batches) {
    metrics.merge(batch.rollouts);
    for (size_t i = 0; i < batch.at_gates.size(); ++i) at_gates[i].merge(batch.at_gates[i]);
    teacher.by_kind.add(batch.teacher.by_kind);
    teacher.details.add(batch.teacher.details);
  }
  if (teacher_ != nullptr) {
    double eval_loss = 0;
    for (const auto& [kind, sum] : teacher.by_kind) eval_loss += sum.mean();
    metrics.add("eval_loss", eval_loss);
    metrics.add("eval_token_acc", teacher.details.of(kCorrectTokens).mean());
  }
  metrics.add("eval_runtime", seconds);
  metrics.add("eval_samples_per_second", ratio(static_cast<double>(num_samples_), seconds));
  result.values = reduce_metrics(metrics, MetricScope::kEvaluation);
  for (size_t i = 0; i < at_gates.size(); ++i) {
    const std::string suffix =
        fmt::format("_iou{:02.0f}", std::round(options_.extra_gates[i] * 100));
    for (const auto& [name, value] : reduce_metrics(at_gates[i], MetricScope::kGate))
      result.values.emplace_back(name + suffix, value);
  }
}

void Evaluation::run_rollouts(Terminal& terminal, const Visitor& visit,
                              std::vector<Batch>& batches) {
  const int num_ranks = options_.group->size();
  examiner_->prefetch(samples_of(options_.group->rank()));
  GenerationScope scope(*engine_, options_.offload, kWeightsOfNow);
  for (int64_t batch = options_.group->rank(); batch < num_batches(); batch += num_ranks) {
    examiner_->prefetch(samples_of(batch + num_ranks));
    const auto on_progress = [&](int finished) {
      terminal.progress({.phase = "evaluate",
                         .done = batch * options_.batch_size + finished,
                         .total = num_samples_});
    };
    Batch& observed = batches[static_cast<size_t>(batch)];
    observed.at_gates.resize(options_.extra_gates.size());
    for (const Examined& one :
         examiner_->examine(samples_of(batch), kEpoch, observed.rollouts, on_progress)) {
      for (size_t i = 0; i < observed.at_gates.size(); ++i) {
        MatchSettings match = examiner_->options().match;
        match.maskiou_gate = options_.extra_gates[i];
        examiner_->observe(one,
                           match_objects(scene_of(one.parsed.objects), one.ground_truth, match),
                           observed.at_gates[i]);
      }
      if (visit && num_ranks == 1) visit(one);
      if (visit && num_ranks > 1) observed.answers.push_back(one.rollout);
    }
  }
  scope.finish();
  terminal.finish_progress();
}

// Other ranks' answers are parsed and matched again here: that takes less time than its result
// takes on the way.
void Evaluation::visit_all(const std::vector<Batch>& batches, const Visitor& visit) const {
  for (int64_t batch = 0; batch < num_batches(); ++batch) {
    const std::vector<Rollout>& answers = batches[static_cast<size_t>(batch)].answers;
    const std::vector<int64_t> samples = samples_of(batch);
    for (size_t i = 0; i < samples.size(); ++i)
      visit(examiner_->judged(samples[i], kEpoch, answers[i]));
  }
}

void Evaluation::run_teacher(Terminal& terminal, std::vector<Batch>& batches) {
  for (int64_t batch = options_.group->rank(); batch < num_batches();
       batch += options_.group->size()) {
    throw_if_interrupted();
    PackedRow row;
    for (const int64_t index : samples_of(batch))
      row.segments.push_back(teacher_->segment_at(index, 0));
    batches[static_cast<size_t>(batch)].teacher = teacher_loss_(row);
    terminal.progress({.phase = "evaluate",
                       .done = std::min((batch + 1) * options_.batch_size, num_samples_),
                       .total = num_samples_});
  }
  terminal.finish_progress();
}

}  // namespace rematch
