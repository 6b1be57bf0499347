// Offloading around the rollouts of the training loop itself: a recording mover instead of a GPU,
// and recorded answers instead of vLLM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "e2e/recorded_loop.h"
#include "rollout/recording_mover.h"

namespace rematch {
namespace {

using testing::ElementsAre;

/// Record of a run of the loop with an engine next to the model.
struct Offloaded {
  test::RecordedLoop loop;
  std::vector<std::string> events;
  int num_moved = 0;  ///< tensors
};

Offloaded run_offloaded(int64_t num_steps, RolloutBufferSettings buffer, bool offloads = true) {
  const auto recording = std::make_shared<test::Recording>();
  test::RecordedStage2 stage2;
  Offload offload(
      {.settings = {.enabled = true, .model = true}}, [&] { return stage2.parameters(); },
      std::make_unique<test::RecordingMover>(recording));
  stage2.hold_own_weights(offloads ? &offload : nullptr,
                          [&](const std::string& event) { recording->push(event); });
  test::RecordedLoop::Options options{
      .num_steps = num_steps,
      .windows = {.batches = {.per_device_train_batch_size = 1, .gradient_accumulation_steps = 3}},
      .buffer = buffer};
  Offloaded result{.loop = run_loop(stage2, std::move(options)), .events = recording->events};
  EXPECT_EQ(recording->num_out, recording->num_back);
  result.num_moved = recording->num_out;
  return result;
}

}  // namespace

// spec: offload-02 offload-04 offload-05
TEST(OffloadLoop, EveryEStepMovesStateOutOfTheWayOfItsEngine) {
  const Offloaded found = run_offloaded(2, {});
  EXPECT_THAT(found.events, ElementsAre("out", "sync", "generate", "release", "back", "out", "sync",
                                        "generate", "release", "back"));
  EXPECT_GT(found.num_moved, 0);
}

// spec: offload-02
TEST(OffloadLoop, AReusedWindowMovesNothing) {
  const Offloaded found = run_offloaded(4, {.enabled = true, .m_steps = 2});
  EXPECT_THAT(found.events, ElementsAre("out", "sync", "generate", "release", "back", "out", "sync",
                                        "generate", "release", "back"))
      << "four steps, two of which roll out";
}

// spec: offload-05
TEST(OffloadLoop, ChangesNoNumberOfTheRun) {
  // The mover spoils what it leaves behind: a tensor that is not brought back would be read as NaN.
  const Offloaded with = run_offloaded(3, {}), without = run_offloaded(3, {}, /*offloads=*/false);
  EXPECT_THAT(without.events, ElementsAre("sync", "generate", "release", "sync", "generate",
                                          "release", "sync", "generate", "release"));
  ASSERT_EQ(with.loop.steps.size(), without.loop.steps.size());
  for (size_t i = 0; i < with.loop.steps.size(); ++i) {
    for (const char* name : {"loss", "grad_norm"}) {
      const double value = with.loop.steps[i].metrics.at(name);
      EXPECT_TRUE(std::isfinite(value)) << name;
      EXPECT_EQ(value, without.loop.steps[i].metrics.at(name)) << name;
    }
  }
}

}  // namespace rematch
