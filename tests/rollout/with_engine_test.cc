#include "engine/rollout/with_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "rollout/recording_mover.h"

namespace rematch {
namespace {

using testing::ElementsAre;

/// An engine that writes down what it is asked for.
class RecordingEngine : public RolloutEngine {
 public:
  RecordingEngine(test::Recording& recording, bool holds_own_weights)
      : recording_(recording), holds_own_weights_(holds_own_weights) {}
  bool holds_own_weights() const override { return holds_own_weights_; }
  void sync_weights(int64_t version) override {
    if (version == kRefused) throw std::runtime_error("refused");
    recording_.push("sync " + std::to_string(version));
  }
  std::vector<Rollout> generate(const std::vector<Prompt>&,
                                const std::function<void(int)>&) override {
    recording_.push("generate");
    return {};
  }
  void release() override { recording_.push("release"); }

  static constexpr int64_t kRefused = 13;

 private:
  test::Recording& recording_;
  bool holds_own_weights_;
};

struct Scene {
  explicit Scene(bool holds_own_weights = true) : engine(*recording, holds_own_weights) {}

  std::shared_ptr<test::Recording> recording = std::make_shared<test::Recording>();
  at::Tensor weight = at::ones({4});
  Offload offload{{.settings = {.enabled = true, .model = true}},
                  [this] { return std::vector<at::Tensor>{weight}; },
                  std::make_unique<test::RecordingMover>(recording)};
  RecordingEngine engine;
};

}  // namespace

// spec: offload-02 offload-04
TEST(WithEngine, MovesStateOutOfTheWayOfTheSyncAndBackAfterTheRelease) {
  Scene scene;
  with_engine(scene.engine, &scene.offload, 7, [&] { scene.engine.generate({}, {}); });
  EXPECT_THAT(scene.recording->events, ElementsAre("out", "sync 7", "generate", "release", "back"));
}

// spec: offload-03 offload-06
TEST(WithEngine, MovesNothingForAnEngineThatSharesTheWeights) {
  Scene scene(/*holds_own_weights=*/false);
  with_engine(scene.engine, &scene.offload, 7, [] {});
  EXPECT_THAT(scene.recording->events, ElementsAre("sync 7", "release"));
}

// spec: offload-05
TEST(WithEngine, BringsStateBackAfterAnException) {
  Scene scene;
  EXPECT_THROW(with_engine(scene.engine, &scene.offload, 7,
                           [] { throw std::runtime_error("generating failed"); }),
               std::runtime_error);
  EXPECT_THAT(scene.recording->events, ElementsAre("out", "sync 7", "back"));
  EXPECT_THROW(with_engine(scene.engine, &scene.offload, RecordingEngine::kRefused, [] {}),
               std::runtime_error);
  EXPECT_EQ(scene.recording->num_away(), 0);
}

}  // namespace rematch
