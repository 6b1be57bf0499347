// Several ranks and one engine: who asks, who answers, and what becomes of a failure. The engine is
// the test's own.
#include "engine/rollout/vllm/shared_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/engine_failure.h"
#include "engine/rollout/vllm/engine_ranks.h"
#include "engine/rollout/vllm/rgb_image.h"
#include "engine/rollout/vllm/vllm_engine.h"
#include "support/paths.h"
#include "support/ranks.h"
#include "vllm/fake_plugin.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

using Asked = std::vector<std::vector<int64_t>>;  // samples of every call

/// Answers every prompt with its sample's number.
class EchoEngine : public RolloutEngine {
 public:
  explicit EchoEngine(Asked& asked) : asked_(asked) {}
  void sync_weights(int64_t) override {}
  void release() override {}
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override {
    asked_.emplace_back();
    std::vector<Rollout> rollouts;
    for (const Prompt& prompt : prompts) {
      asked_.back().push_back(prompt.sample_id);
      rollouts.push_back({.sample_id = prompt.sample_id,
                          .response_token_ids = {static_cast<int>(prompt.sample_id)}});
    }
    if (on_progress && !prompts.empty()) on_progress(static_cast<int>(prompts.size()));
    return rollouts;
  }

 private:
  Asked& asked_;
};

std::vector<Prompt> prompts_of(const std::vector<int64_t>& samples) {
  std::vector<Prompt> prompts;
  for (const int64_t sample : samples) {
    prompts.push_back({.sample_id = sample,
                       .epoch = 3,
                       .token_ids = {1, 2},
                       .images = {{"a.png", {1, 2, 2}}},
                       .where = "here"});
  }
  return prompts;
}

std::vector<int64_t> answered(RolloutEngine& engine, const std::vector<int64_t>& samples) {
  std::vector<int64_t> answers;
  int done = 0;
  for (const Rollout& rollout :
       engine.generate(prompts_of(samples), [&](int now) { done = now; })) {
    answers.push_back(rollout.response_token_ids.front());
  }
  EXPECT_EQ(done, static_cast<int>(samples.size()));
  return answers;
}

/// The end of a part that all ranks run: "own, …" or "peer, …" with the first problem's headline,
/// or "interrupted".
std::string end_of(Group& group, const std::function<void()>& part) {
  try {
    together(group, part);
    return "well";
  } catch (const Interrupted&) {
    return "interrupted";
  } catch (const PeerFailure& error) {
    return "peer, " + error.problems().front().error;
  } catch (const UserError& error) {
    return "own, " + error.problems().front().error;
  }
}

}  // namespace

TEST(SharedEngine, EveryRankGetsItsShareHoweverManyPromptsItBringsAndHoweverOften) {
  test::run_ranks(3, [](Group& group) {
    Asked asked;
    SharedEngine engine(std::make_unique<EchoEngine>(asked), group);
    for (int turn = 0; turn < 2; ++turn) {
      engine.take_turn([&] {
        if (group.rank() == 0) {
          EXPECT_EQ(answered(engine, {4, 7}), (std::vector<int64_t>{4, 7}));
        } else if (group.rank() == 1) {
          EXPECT_EQ(answered(engine, {}), std::vector<int64_t>{});
          EXPECT_EQ(answered(engine, {9}), std::vector<int64_t>{9});
        }
      });
    }
    EXPECT_EQ(asked, (Asked{{4, 7}, {9}, {4, 7}, {9}}))
        << "the same on all ranks, also on the one that brings nothing";
  });
}

TEST(SharedEngine, ARankThatFailsBeforeItAsksStopsTheOthersAndIsTheOneToTell) {
  test::run_ranks(2, [](Group& group) {
    Asked asked;
    SharedEngine engine(std::make_unique<EchoEngine>(asked), group);
    const auto fails = [&](bool by_interrupt) {
      return end_of(group, [&] {
        engine.take_turn([&] {
          if (group.rank() == 1 && by_interrupt) throw Interrupted{};
          if (group.rank() == 1) throw EngineFailure(ErrorKind::kData, {.error = "no image"});
          answered(engine, {1});
        });
      });
    };
    EXPECT_EQ(fails(false), group.rank() == 1 ? "own, no image" : "peer, rank 1: no image");
    EXPECT_EQ(fails(true), "interrupted");
    EXPECT_TRUE(asked.empty());
  });
}

TEST(SharedEngine, AStartOrAStepThatFailsIsToldByTheRankItBeganOn) {
  const std::string model_dir = test::source_path("tests/shapes/model");
  const test::Questions asked = test::questions(model_dir, 2);
  for (const bool at_start : {true, false}) {
    test::run_ranks(2, [&](Group& group) {
      test::FakePlugin plugin;
      EngineParts parts = asked.parts;
      const std::unique_ptr<Group> engine_ranks = group.split(2);  // as a run has it
      parts.vllm.ranks = engine_ranks.get();
      parts.vllm.tensor_parallel_size = parts.vllm.world_size = 2;
      // Both fail, rank 0 later: because rank 1 did.
      const std::string error = group.rank() == 0 ? "RuntimeError: closed" : "ValueError: mine";
      const auto lag = [&] {
        if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      };
      const std::string end = end_of(group, [&] {
        if (at_start) {
          plugin.start_error = error;
          lag();
        }
        VllmEngine engine(plugin, parts, asked.options(8), PatchOptions::from_model_dir(model_dir));
        plugin.step_error = error;
        plugin.on_step = lag;
        engine.generate(asked.prompts, {});
      });
      const std::string what =
          at_start ? "the vLLM engine cannot start" : "vLLM failed while generating";
      EXPECT_EQ(end, group.rank() == 1 ? "own, " + what : "peer, rank 1: " + what);
      EXPECT_EQ(plugin.num_stops, 1);
      EXPECT_EQ(plugin.num_aborts, 0);
    });
  }
}

TEST(EngineRanks, AnInterruptOfOneRankEndsAllAtTheSameStep) {
  test::run_ranks(3, [](Group& group) {
    int num_steps = 0, num_failures = 0;
    EngineRanks ranks(
        &group, [&] { ++num_failures; }, [&] { return group.rank() == 1 && num_steps >= 5; });
    const auto generate = [&](int count) {
      for (num_steps = 0; num_steps < count;) {
        ranks.before_step();
        ranks.attempt([&] { ++num_steps; });
      }
      ranks.after_last_step();
    };
    EXPECT_THROW(generate(100), Interrupted);
    EXPECT_EQ(num_steps, 16) << "the word after the next";
    generate(4);
    EXPECT_EQ(num_steps, 4) << "and the next generation starts afresh";
    EXPECT_EQ(num_failures, 0);
  });
}

TEST(SharedEngine, StepsCountAsProgressForTheWatchdog) {
  test::run_ranks(2, [](Group& group) {
    EngineRanks ranks(&group, [] {});
    const int64_t before = num_interrupt_checks();
    for (int step = 0; step < 8; ++step) ranks.before_step();
    EXPECT_GE(num_interrupt_checks() - before, 8);
    ranks.after_last_step();
  });
}

TEST(SharedEngine, AnInterruptLeavesTheEngineOfEveryRankEmpty) {
  const std::string model_dir = test::source_path("tests/shapes/model");
  const test::Questions asked = test::questions(model_dir, 2);
  test::run_ranks(2, [&](Group& group) {
    test::FakePlugin plugin;
    EngineParts parts = asked.parts;
    parts.vllm.ranks = &group;
    parts.vllm.tensor_parallel_size = parts.vllm.world_size = 2;
    VllmEngine engine(plugin, parts, asked.options(8), PatchOptions::from_model_dir(model_dir));
    group.barrier();
    if (group.rank() == 1) set_interrupt_requested(true);
    EXPECT_EQ(end_of(group, [&] { engine.generate(asked.prompts, {}); }), "interrupted");
    EXPECT_EQ(plugin.num_aborts, 1);
    EXPECT_EQ(plugin.num_steps, 0);
  });
  set_interrupt_requested(false);
}

TEST(SharedEngine, LoadsEachImageOnce) {
  const std::string model_dir = test::source_path("tests/shapes/model");
  const test::Questions asked = test::questions(model_dir, 5);
  std::mutex mutex;
  std::map<std::string, int> num_loads;
  std::vector<std::vector<VllmImage>> pictures[2];
  test::run_ranks(2, [&](Group& group) {
    test::FakePlugin plugin;
    plugin.answer = [&](const VllmRequest& request) -> VllmAnswer {
      const size_t i = plugin.requests.size() - plugin.waiting.size() +
                       static_cast<size_t>(&request - plugin.waiting.data());
      return {.id = request.id,
              .prompt_token_ids = test::wide(asked.prompts[i].token_ids),
              .token_ids = {5, asked.stop_ids.front()},
              .finish_reason = "stop"};
    };
    EngineParts parts = asked.parts;
    parts.vllm.ranks = &group;
    parts.vllm.tensor_parallel_size = parts.vllm.world_size = 2;
    parts.pixels = [&](const ImageRef& image) {
      const std::lock_guard lock(mutex);
      ++num_loads[image.path];
      return asked.parts.pixels(image);
    };
    VllmEngine engine(plugin, parts, asked.options(8), PatchOptions::from_model_dir(model_dir));
    engine.generate(asked.prompts, {});
    const std::lock_guard lock(mutex);
    for (const VllmRequest& request : plugin.requests)
      pictures[group.rank()].push_back(request.images);
  });
  EXPECT_EQ(num_loads.size(), 5u);
  for (const auto& [path, count] : num_loads) EXPECT_EQ(count, 1) << path;
  // Every rank has all of them, in the order of the prompts.
  for (const auto& seen : pictures) {
    ASSERT_EQ(seen.size(), 5u);
    for (size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i].size(), 1u);
      const Image wanted = rgb_image(*asked.parts.pixels(asked.prompts[i].images.front()),
                                     PatchOptions::from_model_dir(model_dir));
      EXPECT_EQ(seen[i].front().width_px, wanted.width_px);
      EXPECT_EQ(seen[i].front().rgb, wanted.rgb);
    }
  }
}

}  // namespace rematch
