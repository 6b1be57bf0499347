#include "e2e/recorded.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/optim/groups.h"
#include "model/row.h"
#include "model/text/chat_template.h"
#include "model/text/stop_ids.h"
#include "support/paths.h"

namespace rematch::test {
namespace {

class RecordedEngine : public RolloutEngine {
 public:
  RecordedEngine(const Tokenizer& tokenizer, const std::string& path) {
    std::istringstream lines(read_file(path));
    std::string line;
    while (std::getline(lines, line)) {
      const Json answer = parse_json(line, path);
      answers_[answer["sample_id"].get<int64_t>()] =
          tokenizer.encode(answer["text"].get<std::string>());
    }
  }
  bool holds_own_weights() const override { return has_own_weights; }
  void sync_weights(int64_t) override { tell("sync"); }
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>&) override {
    tell("generate");
    std::vector<Rollout> rollouts;
    for (const Prompt& prompt : prompts) {
      prompts_seen.push_back(prompt);
      rollouts.push_back({.sample_id = prompt.sample_id,
                          .prompt_token_ids = prompt.token_ids,
                          .response_token_ids = answers_.at(prompt.sample_id)});
      std::vector<int>& response = rollouts.back().response_token_ids;
      response.resize(std::min(response.size(), max_tokens));
      if (drift_at >= 0) ++rollouts.back().prompt_token_ids.at(static_cast<size_t>(drift_at));
    }
    return rollouts;
  }
  void release() override { tell("release"); }
  int64_t drift_at = -1;
  bool has_own_weights = false;
  std::function<void(const std::string&)> on_event;
  size_t max_tokens = SIZE_MAX;
  std::vector<Prompt> prompts_seen;

 private:
  void tell(const std::string& event) const {
    if (on_event) on_event(event);
  }
  std::map<int64_t, std::vector<int>> answers_;
};

}  // namespace

struct RecordedStage2::Parts {
  explicit Parts(int num_workers) : num_workers(num_workers) {}
  int num_workers;
  std::string model_dir = source_path("tests/golden/model/tiny_tied");
  std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(model_dir);
  std::unique_ptr<const AnswerFormat> format =
      make_answer_format("coord_tokens", tokenizer, model_dir);
  PatchOptions patches = PatchOptions::from_model_dir(model_dir);
  PromptEncoder prompts{
      tokenizer,
      std::make_shared<const ChatTemplate>(ChatTemplate::load(model_dir)),
      {.texts = {.system_prompt = "List the objects.", .user_prompt = "Find everything."},
       .merge_size = patches.merge_size}};
  Dataset dataset = Dataset::load(source_path("tests/golden/e2e/train.jsonl"), {});
  PixelStore pixels{{.loader = {.num_workers = num_workers}, .patches = patches}};
  RecordedEngine engine{*tokenizer, source_path("tests/golden/e2e/rollouts.jsonl")};
  RolloutScorer scorer{dataset,
                       *format,
                       {.patches = patches, .stop_ids = read_stop_ids(model_dir, *tokenizer)},
                       &prompts,
                       &pixels};
  TargetSettings target;
  int cap_tokens = 0;
  Offload* offload = nullptr;
  std::shared_ptr<Model> model;
  std::unique_ptr<MStep> mstep;
  std::function<void(const PackedRow&)> on_row;
};

RecordedStage2::RecordedStage2(int num_workers) : parts_(std::make_unique<Parts>(num_workers)) {}
RecordedStage2::~RecordedStage2() = default;

RolloutParts RecordedStage2::rollout_parts() const {
  return {
      .scorer = parts_->scorer,
      .source = {parts_->engine, parts_->offload},
      .target = {
          .format = *parts_->format, .target = parts_->target, .max_length = parts_->cap_tokens}};
}

std::vector<ScoredRollout> RecordedStage2::score(const std::vector<int64_t>& sample_indices) {
  std::vector<ScoredRollout> scored;
  score_batches(parts_->scorer, {parts_->engine, parts_->offload}, {{sample_indices, 0}}, {},
                [&](size_t, std::vector<ScoredRollout> batch, const MetricsBag&) {
                  scored = std::move(batch);
                });
  return scored;
}

WindowSegments RecordedStage2::segments(const std::vector<std::vector<int64_t>>& samples) {
  MetricsBag metrics;
  return segments(samples, metrics);
}

WindowSegments RecordedStage2::segments(const std::vector<std::vector<int64_t>>& samples,
                                        MetricsBag& metrics) {
  const WindowPlan plan{.micro_batches = samples};
  std::vector<std::shared_ptr<const Segment>> made;
  for (const ScoredRollout& one : score(plan.samples()))
    made.push_back(make_target(one, rollout_parts().target, metrics));
  return plan.split_by_micro_batch(std::move(made));
}

MStep& RecordedStage2::mstep(double learning_rate, at::Device device) {
  parts_->mstep = make_mstep(learning_rate, device);
  return *parts_->mstep;
}

std::unique_ptr<MStep> RecordedStage2::make_mstep(double learning_rate, at::Device device) {
  parts_->model = Model::load(parts_->model_dir, {.device = device});
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : parts_->model->parameters())
    parameters.emplace_back(parameter.name, parameter.tensor);
  Parts* parts = parts_.get();
  const RowModel row_model{.hidden_TH =
                               [parts](const PackedRow& row) {
                                 if (parts->on_row) parts->on_row(row);
                                 return forward_row(*parts->model,
                                                    make_row(row, [parts](const ImageRef& image) {
                                                      return parts->pixels.get(image);
                                                    }));
                               },
                           .head = Head::of(parts_->model->head())};
  LossOptions loss;
  loss.coord_token_ids = parts_->format->coords()->ids();
  return std::make_unique<MStep>(
      row_model,
      make_gradient_sum(make_groups(parameters, parts_->model->description().part_of,
                                    {.learning_rate = learning_rate, .weight_decay = 0.01})),
      AdamWSettings{.beta2 = 0.999}, Schedule({.type = ScheduleType::kConstant}, learning_rate, 10),
      MStep::Options{.loss = loss, .learning_rate = learning_rate});
}

void RecordedStage2::drift_prompt_ids(size_t position) {
  parts_->engine.drift_at = static_cast<int64_t>(position);
}
void RecordedStage2::teach(const TargetSettings& target) { parts_->target = target; }
void RecordedStage2::cap_segments(int cap_tokens) { parts_->cap_tokens = cap_tokens; }
void RecordedStage2::watch_rows(std::function<void(const PackedRow&)> on_row) {
  parts_->on_row = std::move(on_row);
}
void RecordedStage2::cut_answers(size_t num_tokens) { parts_->engine.max_tokens = num_tokens; }
const std::vector<Prompt>& RecordedStage2::prompts_seen() const {
  return parts_->engine.prompts_seen;
}
int64_t RecordedStage2::num_samples() const { return parts_->dataset.size(); }
const Dataset& RecordedStage2::dataset() const { return parts_->dataset; }
PixelStore& RecordedStage2::pixels() const { return parts_->pixels; }
const RolloutScorer& RecordedStage2::scorer() const { return parts_->scorer; }
RolloutEngine& RecordedStage2::engine() const { return parts_->engine; }

void RecordedStage2::hold_own_weights(Offload* offload,
                                      std::function<void(const std::string&)> on_event) {
  share_weights(offload, std::move(on_event));
  parts_->engine.has_own_weights = true;
}
void RecordedStage2::share_weights(Offload* offload,
                                   std::function<void(const std::string&)> on_event) {
  parts_->engine.has_own_weights = false;
  parts_->engine.on_event = std::move(on_event);
  parts_->offload = offload;
}
std::vector<at::Tensor> RecordedStage2::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const NamedParameter& parameter : parts_->model->parameters())
    tensors.push_back(parameter.tensor);
  return tensors;
}

}  // namespace rematch::test
