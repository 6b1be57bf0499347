// The requirement on offloading training state: its sentences and scenarios, with a mover that
// writes down what it does in the place of a GPU, and an engine with weights of its own in the
// place of vLLM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/interrupt.h"
#include "assembly/rollouts.h"
#include "assembly/session.h"
#include "config/config.h"
#include "e2e/program.h"
#include "e2e/recorded.h"
#include "rollout/engine_factory.h"
#include "pack/packer.h"
#include "rollout/recording_mover.h"

namespace rematch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What the stand-in for vLLM tells, and whether it starts at all.
struct StandIn {
  std::shared_ptr<test::Recording> recording;
  bool fails_to_start = false;
};
StandIn& stand_in() {
  static StandIn instance;
  return instance;
}

/// An engine beside the model that answers nothing.
class ColocatedEngine : public RolloutEngine {
 public:
  bool holds_own_weights() const override { return true; }
  void sync_weights(int64_t) override { stand_in().recording->push("sync"); }
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>&) override {
    stand_in().recording->push("generate");
    std::vector<Rollout> rollouts;
    for (const Prompt& prompt : prompts)
      rollouts.push_back({.sample_id = prompt.sample_id, .prompt_token_ids = prompt.token_ids});
    return rollouts;
  }
  void release() override { stand_in().recording->push("release"); }
};

}  // namespace

// The two functions of the backend, found before the library's own.
void check_vllm_available(const VllmOptions&) {}
std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts, const GenerateOptions&) {
  stand_in().recording->push("start");
  if (stand_in().fails_to_start) throw std::runtime_error("the engine does not start");
  EXPECT_FALSE(at::isnan(parts.model->parameters().front().tensor).any().item<bool>())
      << "weights can be read while they are away";
  return std::make_unique<ColocatedEngine>();
}

namespace {

/// The rollouts of a configuration on the tiny model, with a recording mover, and what its terminal
/// said.
struct RecordedSession {
  explicit RecordedSession(const std::string& rollout_matching) {
    stand_in() = {.recording = recording};
    result = load_config(
        program.config("custom: {extra: {rollout_matching: {" + rollout_matching + "}}}\n"), {});
  }
  Rollouts& open(std::unique_ptr<TensorMover> mover, Offload::Tensors optimizer = {}) {
    session = std::make_unique<Session>(result.settings, "cpu",
                                        SessionNeeds{.val_data = true, .rollouts = true}, alone(),
                                        terminal);
    rollouts = make_rollouts(*session, std::move(optimizer), std::move(mover));
    return rollouts;
  }
  Rollouts& open() { return open(std::make_unique<test::RecordingMover>(recording)); }
  void evaluate() { make_evaluation(*session, rollouts, false)->run(terminal); }

  test::Program program;
  std::shared_ptr<test::Recording> recording = std::make_shared<test::Recording>();
  ConfigResult result;
  std::ostringstream out, err;
  Terminal terminal{out, err, {}};
  std::unique_ptr<Session> session;
  Rollouts rollouts;
};

const std::string kOffloadOn =
    "offload: {enabled: true, offload_model: true, offload_optimizer: true}";

/// Recorded stage 2 with a training step on it.
struct RecordedTraining {
  explicit RecordedTraining(bool offloads) : mstep(&stage2.mstep(1e-2)) {
    if (!offloads) return;
    offload = std::make_unique<Offload>(
        Offload::Options{.settings = {.enabled = true, .model = true, .optimizer = true}},
        [this] { return stage2.parameters(); }, std::make_unique<test::RecordingMover>(recording),
        [this] { return mstep->optimizer().tensors(); });
  }
  /// E-step and M-step of one window.
  void step(const std::vector<std::vector<int64_t>>& samples) {
    MetricsBag metrics;
    WindowSegments segments = stage2.segments(samples);
    recording->push("train");
    mstep->run({.rows = Packer(Packer::Options{}).rows_of(std::move(segments), metrics)}, metrics);
  }

  test::RecordedStage2 stage2;
  MStep* mstep;
  std::shared_ptr<test::Recording> recording = std::make_shared<test::Recording>();
  std::unique_ptr<Offload> offload;
};

void expect_same(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(at::equal(left[i], right[i])) << i;
}

}  // namespace

// spec: offload-01
TEST(OffloadSpec, TheKeysAreThoseOfTheSeedsAndOff) {
  const auto parts = [](const std::string& lines) {
    test::Program program;
    const OffloadSettings offload =
        load_config(program.config(lines.empty()
                                       ? ""
                                       : "custom: {extra: {rollout_matching: {" + lines + "}}}\n"),
                    {})
            .settings.offload;
    return std::pair{offload.moves_model(), offload.moves_optimizer()};
  };
  const auto off = std::pair{false, false};
  EXPECT_EQ(parts(""), off);
  EXPECT_EQ(parts("offload: {enabled: true}"), off) << "both parts are off by default";
  EXPECT_EQ(parts("offload: {offload_model: true, offload_optimizer: true}"), off)
      << "enabled is off by default";
  EXPECT_EQ(parts("offload: {enabled: true, offload_model: true}"), (std::pair{true, false}));
  EXPECT_EQ(parts("offload: {enabled: true, offload_optimizer: true}"), (std::pair{false, true}));
}

// spec: offload-02
TEST(OffloadSpec, TheOffloadIsAContextAroundARollout) {
  RecordedTraining training(true);
  training.stage2.hold_own_weights(
      training.offload.get(), [&](const std::string& event) { training.recording->push(event); });
  training.step({{0, 1}, {2}});
  EXPECT_THAT(training.recording->events,
              ElementsAre("out", "sync", "generate", "release", "back", "train"));
  EXPECT_EQ(training.recording->num_out, training.recording->num_back);
  EXPECT_EQ(training.recording->num_out,
            static_cast<int>(training.stage2.parameters().size() +
                             training.mstep->optimizer().tensors().size()));
}

// spec: offload-04
TEST(OffloadSpec, TheStartOfTheEngineAndTheFirstSyncAreCovered) {
  RecordedSession recorded("rollout_backend: vllm, " + kOffloadOn);
  const Rollouts& rollouts = recorded.open();
  EXPECT_THAT(recorded.recording->events, ElementsAre("out", "start", "back"));
  EXPECT_EQ(recorded.recording->num_out,
            static_cast<int>(recorded.session->model->parameters().size()));
  // The first rollouts, here those of an evaluation: their sync is inside as well.
  recorded.recording->events.clear();
  recorded.evaluate();
  EXPECT_THAT(recorded.recording->events,
              ElementsAre("out", "sync", "generate", "release", "back"));
  EXPECT_EQ(rollouts.offload->num_offloaded(), 0);
}

TEST(OffloadSpec, TheOptimizerIsAwayWhileTheEngineStarts) {
  const std::vector<at::Tensor> averages{at::ones({3}), at::ones({2})};
  RecordedSession recorded("rollout_backend: vllm, " + kOffloadOn);
  recorded.open(std::make_unique<test::RecordingMover>(recorded.recording),
                [&] { return averages; });
  EXPECT_THAT(recorded.recording->events, ElementsAre("out", "start", "back"));
  EXPECT_EQ(recorded.recording->num_out,
            static_cast<int>(recorded.session->model->parameters().size() + averages.size()));
}

// spec: offload-04 offload-05
TEST(OffloadSpec, AnEngineThatDoesNotStartLeavesTheModelInItsPlace) {
  RecordedSession recorded("rollout_backend: vllm, " + kOffloadOn);
  stand_in().fails_to_start = true;
  EXPECT_THROW(recorded.open(), std::runtime_error);
  EXPECT_THAT(recorded.recording->events, ElementsAre("out", "start", "back"));
  EXPECT_EQ(recorded.recording->num_out, recorded.recording->num_back);
}

// spec: offload-05
TEST(OffloadSpec, OffloadDoesNotBreakATrainingStep) {
  RecordedTraining with(true), without(false);
  with.stage2.hold_own_weights(with.offload.get(), {});
  for (const auto& samples :
       std::vector<std::vector<std::vector<int64_t>>>{{{0, 1}, {2, 3}}, {{4}, {5}}, {{6, 7}}}) {
    with.step(samples);
    without.step(samples);
    EXPECT_EQ(with.offload->num_offloaded(), 0);
  }
  expect_same(with.stage2.parameters(), without.stage2.parameters());
  expect_same(with.mstep->optimizer().tensors(), without.mstep->optimizer().tensors());
  EXPECT_EQ(with.mstep->num_steps(), 3);
}

// spec: offload-05
TEST(OffloadSpec, WhatWasOffloadedIsBackAfterARolloutThatFailed) {
  RecordedTraining with(true), without(false);
  bool fails = true;
  with.stage2.hold_own_weights(with.offload.get(), [&](const std::string& event) {
    with.recording->push(event);
    if (fails && event == "generate") throw Interrupted{};
  });
  EXPECT_THROW(with.step({{0, 1}}), Interrupted);
  EXPECT_THAT(with.recording->events, ElementsAre("out", "sync", "generate", "back"));
  EXPECT_EQ(with.offload->num_offloaded(), 0);
  fails = false;
  with.step({{0, 1}});
  without.step({{0, 1}});
  expect_same(with.stage2.parameters(), without.stage2.parameters());
}

// spec: offload-03 offload-06
TEST(OffloadSpec, OffloadChangesNothingForTheHfBackend) {
  RecordedSession recorded(kOffloadOn);
  EXPECT_FALSE(recorded.open().engine->holds_own_weights());
  recorded.evaluate();
  EXPECT_THAT(recorded.recording->events, IsEmpty()) << "neither at the start nor around rollouts";
  const std::string told = recorded.err.str();
  const size_t first = told.find("offload has no effect with rollout_backend hf: ");
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("offload has no effect", first + 1), std::string::npos) << "said once";

  RecordedTraining training(true);
  training.stage2.share_weights(training.offload.get(),
                                [&](const std::string& event) { training.recording->push(event); });
  training.step({{0, 1}, {2}});
  EXPECT_THAT(training.recording->events, ElementsAre("sync", "generate", "release", "train"))
      << "a training step moves nothing";
}

TEST(OffloadSpec, OnACpuItIsSaidThatNothingMoves) {
  RecordedSession recorded("rollout_backend: vllm, " + kOffloadOn);
  EXPECT_EQ(recorded.open(make_tensor_mover()).offload, nullptr);
  EXPECT_THAT(recorded.err.str(),
              HasSubstr("offload has no effect on cpu: training state is already in host memory"));
  RecordedSession without("rollout_backend: vllm");
  EXPECT_EQ(without.open(make_tensor_mover()).offload, nullptr);
  EXPECT_THAT(without.err.str(), Not(HasSubstr("offload")));
}

}  // namespace rematch
