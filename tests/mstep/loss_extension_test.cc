// A new loss needs one source file (toy_loss.cc) and its line in CMake. This test refers to it only
// by name.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/catalog.h"
#include "config/support.h"
#include "learn/estep/teach/segment_checks.h"
#include "learn/mstep/loss/loss_table.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "learn/resume/run_state.h"
#include "model/checkpoint/safetensors.h"
#include "mstep/loss_targets.h"
#include "mstep/toy_rows.h"
#include "program/assembly/loss_keys.h"
#include "support/paths.h"
#include "tool_stages.h"

namespace rematch {
namespace {

using test::kHidden;
using test::kVocab;
using test::random_tensor;

LossOptions options_of(std::map<std::string, double> settings) {
  LossOptions options{.settings = std::move(settings)};
  for (int bin = 0; bin < kNumBins; ++bin)
    options.coord_token_ids[static_cast<size_t>(bin)] = bin + 10;
  return options;
}

std::shared_ptr<const Segment> segment_with_toys() {
  auto segment = std::make_shared<Segment>();
  segment->token_ids = {3, 4, 5, 6, 7, 8};
  segment->labels = {kIgnoreLabel, kIgnoreLabel, 5, kIgnoreLabel, 7, kIgnoreLabel};
  segment->prompt_len = 2;
  segment->append_len = 3;
  segment->add_slot(kCoordSlots, {3, 500, SlotSource::kAppend});
  segment->add_slot("toy", {4, 1020, SlotSource::kAppend});  // next to a label
  segment->add_slot("toy", {2, 1021, SlotSource::kPrefix});
  segment->where = "a.jsonl:1";
  return segment;
}

Window window_with_toys() { return {.rows = {{{segment_with_toys(), segment_with_toys()}}}}; }

struct Step {
  std::map<std::string, double> logged;
  at::Tensor head_gradient_VH;
};

// One optimizer step of an embedding and a head; with beta1 = 0 the first moment is the gradient.
Step step_with(std::map<std::string, double> settings) {
  const at::Tensor embedding_VH = random_tensor({kVocab, kHidden}, 1).requires_grad_();
  const at::Tensor head_VH = random_tensor({kVocab, kHidden}, 2).requires_grad_();
  const RowModel model{.hidden_TH =
                           [&](const PackedRow& row) {
                             std::vector<int64_t> ids;
                             for (const auto& one : row.segments)
                               ids.insert(ids.end(), one->token_ids.begin(), one->token_ids.end());
                             return embedding_VH.index_select(0, at::tensor(ids, at::kLong));
                           },
                       .head = test::product_with(head_VH)};
  MStep mstep(
      model,
      make_gradient_sum({{"llm", 0.01, 0.0, {"embedding", "head"}, {embedding_VH, head_VH}}}),
      {.beta1 = 0.0}, Schedule({.type = ScheduleType::kConstant}),
      {.loss = options_of(std::move(settings)), .max_grad_norm = 0});
  MetricsBag metrics;
  mstep.run(window_with_toys(), metrics);
  Step step;
  for (auto& [name, value] : reduce_metrics(metrics)) step.logged[name] = value;
  for (const auto& [name, tensor] : mstep.optimizer().state()) {
    if (name == "head.exp_avg") step.head_gradient_VH = tensor.clone();
  }
  return step;
}

}  // namespace

TEST(LossExtension, ATermIsPartOfATrainingStepByTheNameOfItsWeight) {
  const Step without = step_with({}), with = step_with({{"toy_weight", 0.5}});
  EXPECT_EQ(without.logged.count("loss/toy"), 0u);
  EXPECT_GT(with.logged.at("loss/toy"), 0);
  EXPECT_GT(with.logged.at("loss/toy_prefix"), 0);
  EXPECT_GT(with.logged.at("loss/toy_tail"), 0);
  EXPECT_NEAR(with.logged.at("loss/toy"),
              (with.logged.at("loss/toy_prefix") + with.logged.at("loss/toy_tail")) / 2, 1e-12);
  EXPECT_NEAR(with.logged.at("loss"), without.logged.at("loss") + with.logged.at("loss/toy"),
              1e-12);
  for (const char* name : {"loss/ce", "loss/coord"})
    EXPECT_EQ(with.logged.at(name), without.logged.at(name)) << name;
}

TEST(LossExtension, ItsGradientArrivesScaledByWeightAndCount) {
  const at::Tensor without = step_with({}).head_gradient_VH,
                   with = step_with({{"toy_weight", 0.5}}).head_gradient_VH;
  const at::Tensor head_VH = random_tensor({kVocab, kHidden}, 2);
  // The tokens before positions 4 and 2 are 6 and 4; both segments are alike.
  for (const auto& [target, token] : {std::pair<int64_t, int64_t>{1020, 6}, {1021, 4}}) {
    const at::Tensor hidden_H = random_tensor({kVocab, kHidden}, 1)[token];
    const at::Tensor wanted_H =
        at::sigmoid(at::dot(hidden_H, head_VH[target])) * hidden_H * (0.5 * 2 / 4);
    EXPECT_TRUE(at::allclose(with[target] - without[target], wanted_H, 1e-4, 1e-6)) << target;
  }
  EXPECT_TRUE(at::equal(with[7], without[7]));
}

TEST(LossExtension, FurtherSettingsAreReadByName) {
  EXPECT_GT(step_with({{"toy_weight", 0.5}, {"toy_margin", 3}}).logged.at("loss/toy"),
            step_with({{"toy_weight", 0.5}}).logged.at("loss/toy"));
  EXPECT_THROW(step_with({{"toy_wieght", 0.5}}), InternalError);
}

TEST(LossExtension, ItsSettingsAreKeysOfTheConfiguration) {
  add_loss_keys();
  const Settings settings =
      test::load_text("custom:\n  loss:\n    toy_weight: 0.5\n    toy_margin: 3\n").settings;
  const LossOptions options = loss_options(settings, options_of({}).coord_token_ids);
  const Step by_name = step_with({{"toy_weight", 0.5}, {"toy_margin", 3}}),
             configured = step_with(options.settings);
  for (const char* name : {"loss", "loss/toy"})
    EXPECT_EQ(configured.logged.at(name), by_name.logged.at(name)) << name;
  EXPECT_EQ(loss_options(test::load_text("").settings, {}).settings.at("toy_weight"), 0.0);
  EXPECT_EQ(test::problems_of("custom:\n  loss:\n    toy_weight: -1\n").size(), 1u);
  EXPECT_NE(test::problems_of("custom:\n  loss:\n    toy_wieght: 1\n")[0].fix.find("toy_weight"),
            std::string::npos);
}

TEST(LossExtension, TeacherForcedEvaluationCountsItToo) {
  const at::Tensor head_VH = random_tensor({kVocab, kHidden}, 2);
  const RowModel model{
      .hidden_TH =
          [&](const PackedRow& row) { return random_tensor({row.total_len(), kHidden}, 3); },
      .head = test::product_with(head_VH)};
  const RowLoss loss =
      teacher_forced_loss(model, window_with_toys().rows[0], options_of({{"toy_weight", 2}}));
  EXPECT_EQ(loss.by_kind.of("toy").count, 4);
  EXPECT_NEAR(loss.by_kind.of("toy").sum, 2 * loss.details.of("toy_push").sum, 1e-9);
}

TEST(LossExtension, ItsTargetsPassTheChecksAndGoThroughACheckpoint) {
  const auto segment = segment_with_toys();
  EXPECT_NO_THROW(check_supervision(*segment));
  RunState run;
  run.waiting = {segment};
  const auto read = read_run_state(to_wire(run), "state.bin", kVocab).waiting;
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0]->slots, segment->slots);
  EXPECT_EQ(read[0]->labels, segment->labels);
}

TEST(LossExtension, TheLossStageAcceptsItsSlotsAndSettings) {
  const test::TempDir directory;
  write_safetensors(directory.file("logits.safetensors"), {{"logits", at::zeros({3, kVocab})}});
  const Json input = {{"logits", directory.file("logits.safetensors")},
                      {"labels", {-100, 5, -100}},
                      {"toy_slots", {{2, 7, "append"}}},
                      {"options", {{"toy_weight", 3}}}};
  std::istringstream in(input.dump() + "\n");
  std::ostringstream out;
  ASSERT_EQ(run_stage(*make_loss_stage({}), 1, in, out), 0) << out.str();
  const Json answer = parse_json(out.str(), "answer");
  EXPECT_EQ(answer["toy_count"], 1);
  EXPECT_NEAR(answer["toy_push"].get<double>(), std::log(2.0), 1e-9);
  EXPECT_NEAR(answer["toy"].get<double>(), 3 * std::log(2.0), 1e-9);
  EXPECT_NEAR(answer["loss"].get<double>(), std::log(kVocab) + 3 * std::log(2.0), 1e-6);
}

TEST(LossExtension, NoFileOfTheProgramRefersToIt) {
  int num_files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_path("src"))) {
    if (!entry.is_regular_file()) continue;
    ++num_files;
    EXPECT_EQ(read_file(entry.path().string()).find("toy_"), std::string::npos) << entry.path();
  }
  EXPECT_GT(num_files, 100);
}

TEST(LossTable, RefusesTheNameOfAnotherTerm) {
  LossTerm again = loss_terms().front();
  EXPECT_THROW(add_loss_term(again), InternalError);
}

}  // namespace rematch
