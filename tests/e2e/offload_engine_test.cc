// Offloading of training state around an engine: a recording mover instead of a GPU, and an engine
// with a copy of the weights instead of vLLM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "e2e/program.h"
#include "engine/rollout/engine_factory.h"
#include "program/assembly/parts.h"
#include "program/config/config.h"
#include "rollout/recording_mover.h"

namespace rematch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Reports of the stand-in for vLLM, and whether it starts at all.
struct StandIn {
  std::shared_ptr<test::Recording> recording;
  bool fails_to_start = false;
};
StandIn& stand_in() {
  static StandIn instance;
  return instance;
}

/// An engine next to the model that answers nothing.
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

/// The engine of a configuration on the tiny model, with a recording mover, and what its terminal
/// said.
struct RecordedEngine {
  explicit RecordedEngine(const std::string& rollout_matching) {
    stand_in() = {.recording = recording};
    result = load_config(
        program.config("custom: {extra: {rollout_matching: {" + rollout_matching + "}}}\n"), {});
  }
  const Engine& open(std::unique_ptr<TensorMover> mover) {
    job.emplace(
        open_job({.config = result}, Use::kAnswer, {.device = "cpu", .terminal = terminal}));
    model = load_model(*job);
    engine.emplace(start_engine(*job, model, result.settings.generation, std::move(mover)));
    return *engine;
  }
  const Engine& open() { return open(std::make_unique<test::RecordingMover>(recording)); }
  void evaluate() { make_evaluation(*job, model, engine)->run(terminal); }

  test::Program program;
  std::shared_ptr<test::Recording> recording = std::make_shared<test::Recording>();
  ConfigResult result;
  std::ostringstream out, err;
  Terminal terminal{out, err, {}};
  std::optional<Job> job;
  std::shared_ptr<Model> model;
  std::optional<Engine> engine;
};

const std::string kOffloadOn =
    "offload: {enabled: true, offload_model: true, offload_optimizer: true}";

}  // namespace

// spec: offload-04
TEST(OffloadEngine, TheStartOfTheEngineAndTheFirstSyncAreCovered) {
  RecordedEngine recorded("rollout_backend: vllm, " + kOffloadOn);
  recorded.open();
  EXPECT_THAT(recorded.recording->events, ElementsAre("out", "start", "back"));
  EXPECT_EQ(recorded.recording->num_out, static_cast<int>(recorded.model->parameters().size()));
  // The first rollouts, here those of an evaluation: their sync is inside as well.
  recorded.recording->events.clear();
  recorded.evaluate();
  EXPECT_THAT(recorded.recording->events,
              ElementsAre("out", "sync", "generate", "release", "back"));
  EXPECT_EQ(recorded.recording->num_away(), 0);
}

TEST(OffloadEngine, AnOptimizerThatIsMadeAfterTheStartIsAwayDuringRollouts) {
  const std::vector<at::Tensor> averages{at::ones({3}), at::ones({2})};
  RecordedEngine recorded("rollout_backend: vllm, " + kOffloadOn);
  recorded.open().offload->set_optimizer([&] { return averages; });
  const int num_at_start = recorded.recording->num_out;
  recorded.evaluate();
  EXPECT_EQ(recorded.recording->num_out, 2 * num_at_start + static_cast<int>(averages.size()));
}

// spec: offload-04 offload-05
TEST(OffloadEngine, AnEngineThatDoesNotStartLeavesTheModelInItsPlace) {
  RecordedEngine recorded("rollout_backend: vllm, " + kOffloadOn);
  stand_in().fails_to_start = true;
  EXPECT_THROW(recorded.open(), std::runtime_error);
  EXPECT_THAT(recorded.recording->events, ElementsAre("out", "start", "back"));
  EXPECT_EQ(recorded.recording->num_out, recorded.recording->num_back);
}

// spec: offload-03 offload-06
TEST(OffloadEngine, OffloadChangesNothingForTheHfBackend) {
  RecordedEngine recorded(kOffloadOn);
  EXPECT_FALSE(recorded.open().engine->holds_own_weights());
  recorded.evaluate();
  EXPECT_THAT(recorded.recording->events, IsEmpty()) << "neither at the start nor around rollouts";
  const std::string told = recorded.err.str();
  const size_t first = told.find("offload has no effect with rollout_backend hf: ");
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("offload has no effect", first + 1), std::string::npos) << "said once";
}

TEST(OffloadEngine, OnACpuItIsSaidThatNothingMoves) {
  RecordedEngine recorded("rollout_backend: vllm, " + kOffloadOn);
  EXPECT_EQ(recorded.open(make_tensor_mover()).offload, nullptr);
  EXPECT_THAT(recorded.err.str(),
              HasSubstr("offload has no effect on cpu: training state is already in host memory"));
  RecordedEngine without("rollout_backend: vllm");
  EXPECT_EQ(without.open(make_tensor_mover()).offload, nullptr);
  EXPECT_THAT(without.err.str(), Not(HasSubstr("offload")));
}

}  // namespace rematch
