// The engine over a plug-in of the test's own: what is handed over, and what is believed of what
// comes back.
#include "engine/rollout/vllm/vllm_engine.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/json.h"
#include "engine/rollout/engine_failure.h"
#include "model/adapter.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vllm/fake_plugin.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

const std::string& model_dir() {
  static const std::string path = test::source_path("tests/shapes/model");
  return path;
}

/// An engine on the demonstration's model with three prompts; the plug-in says yes to all until a
/// test tells it otherwise.
struct Rig {
  Rig() : asked(test::questions(model_dir(), 3)), options(asked.options(8)) {
    plugin.answer = [this](const VllmRequest& request) { return good_answer(request); };
  }
  VllmEngine& engine() {
    if (!engine_)
      engine_ = std::make_unique<VllmEngine>(plugin, asked.parts, options,
                                             PatchOptions::from_model_dir(model_dir()));
    return *engine_;
  }
  const Prompt& prompt_of(const VllmRequest& request) const {
    for (size_t i = 0; i < plugin.requests.size(); ++i) {
      if (plugin.requests[i].id == request.id) return asked.prompts[i % asked.prompts.size()];
    }
    return asked.prompts.front();
  }
  VllmAnswer good_answer(const VllmRequest& request) const {
    return {.id = request.id,
            .prompt_token_ids = test::wide(prompt_of(request).token_ids),
            .token_ids = {5, 6, asked.stop_ids.front()},
            .finish_reason = "stop"};
  }
  /// The refusal of an answer that a test spoilt.
  Problem refusal(const std::function<void(VllmAnswer&)>& spoil) {
    plugin.answer = [this, spoil](const VllmRequest& request) {
      VllmAnswer answer = good_answer(request);
      if (prompt_of(request).sample_id == 1) spoil(answer);
      return answer;
    };
    return failure_of_generate();
  }
  Problem failure_of_generate() {
    try {
      engine().generate(asked.prompts, {});
    } catch (const EngineFailure& error) {
      EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
      return error.problems().front();
    }
    ADD_FAILURE() << "an answer was believed";
    return {};
  }

  test::Questions asked;
  GenerateOptions options;
  test::FakePlugin plugin;

 private:
  std::unique_ptr<VllmEngine> engine_;
};

/// A DoRA adapter on every Linear of the model, whose merged weights are synced from then on.
auto adapter_of(Model& model) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return Adapter::create(model, select_targets(model.description(), names, {}),
                         {.lora = {.rank = 2, .use_dora = true}});
}

}  // namespace

// spec: vllm-07
TEST(VllmEngine, TrimsTheStopTokenAndReportsThePromptAsUsed) {
  Rig rig;
  int progress = 0;
  const std::vector<Rollout> rollouts =
      rig.engine().generate(rig.asked.prompts, [&](int done) { progress = done; });
  ASSERT_EQ(rollouts.size(), 3u);
  for (size_t i = 0; i < rollouts.size(); ++i) {
    EXPECT_EQ(rollouts[i].sample_id, static_cast<int64_t>(i));
    EXPECT_EQ(rollouts[i].prompt_token_ids, rig.asked.prompts[i].token_ids);
    EXPECT_EQ(rollouts[i].response_token_ids, (std::vector<int>{5, 6}));
    EXPECT_EQ(rollouts[i].finish_reason, FinishReason::kStop);
  }
  EXPECT_EQ(progress, 3);
}

TEST(VllmEngine, KeepsTheLogProbabilitiesOfTheTokensThatItKeeps) {
  Rig rig;
  rig.plugin.answer = [&](const VllmRequest& request) {
    VllmAnswer answer = rig.good_answer(request);
    if (rig.prompt_of(request).sample_id != 1) answer.token_logprobs = {-0.25, -1.5, -0.125};
    return answer;
  };
  const std::vector<Rollout> rollouts = rig.engine().generate(rig.asked.prompts, {});
  EXPECT_EQ(rollouts[0].token_logprobs, (std::vector<float>{-0.25f, -1.5f}));
  EXPECT_TRUE(rollouts[1].token_logprobs.empty()) << "an older release has none";
}

TEST(VllmEngine, RefusesLogProbabilitiesThatAreNotOneForEachTokenOrNotFinite) {
  Rig infinite, few;
  const Problem problem = infinite.refusal([](VllmAnswer& answer) {
    answer.token_logprobs = {-0.25, -std::numeric_limits<double>::infinity(), 0};
  });
  EXPECT_NE(problem.where.find("sample 1"), std::string::npos);
  EXPECT_NE(problem.what.find("position 1"), std::string::npos);
  EXPECT_NE(few.refusal([](VllmAnswer& answer) { answer.token_logprobs = {-0.25}; })
                .where.find("sample 1"),
            std::string::npos);
}

TEST(VllmEngine, HandsOverOnePadAndThePictureInMemory) {
  Rig rig;
  rig.engine().generate(rig.asked.prompts, {});
  const PatchOptions patches = PatchOptions::from_model_dir(model_dir());
  const auto pad = static_cast<int>(rig.asked.model->description().image_token_id);
  for (size_t i = 0; i < 3; ++i) {
    const VllmRequest& request = rig.plugin.requests[i];
    EXPECT_EQ(std::count(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), pad), 1);
    ASSERT_EQ(request.images.size(), 1u);
    const Image image{.width_px = request.images[0].width_px,
                      .height_px = request.images[0].height_px,
                      .rgb = request.images[0].rgb};
    const auto ours = rig.asked.parts.pixels(rig.asked.prompts[i].images[0]);
    EXPECT_EQ(patchify(image, patches, "").pixel_values, ours->pixel_values)
        << "pre-processing it once gives our patches";
    const Json sampling = parse_json(request.sampling_json, "sampling");
    EXPECT_EQ(sampling["max_tokens"], 8);
    EXPECT_EQ(sampling["stop_token_ids"], rig.asked.stop_ids);
    EXPECT_FALSE(sampling.contains("seed")) << "greedy";
  }
}

// spec: pack-03 pack-14
TEST(VllmEngine, ARequestIsOnePrompt) {
  Rig rig;
  rig.engine().generate(rig.asked.prompts, {});
  ASSERT_EQ(rig.plugin.requests.size(), rig.asked.prompts.size());
  const auto pad = static_cast<int>(rig.asked.model->description().image_token_id);
  const auto without_pads = [&](std::vector<TokenId> ids) {
    std::erase(ids, pad);
    return ids;
  };
  for (size_t i = 0; i < rig.asked.prompts.size(); ++i) {
    EXPECT_EQ(without_pads(rig.plugin.requests[i].prompt_token_ids),
              without_pads(rig.asked.prompts[i].token_ids));
  }
}

TEST(VllmEngine, AFullAnswerIsTruncatedAndAStopInItsLastPlaceIsAStop) {
  Rig rig;
  rig.plugin.answer = [&](const VllmRequest& request) {
    VllmAnswer answer = rig.good_answer(request);
    answer.token_ids = {1, 2, 3, 4, 5, 6, 7, 8};
    if (rig.prompt_of(request).sample_id == 1) answer.token_ids.back() = rig.asked.stop_ids.front();
    if (rig.prompt_of(request).sample_id == 2) answer.token_ids = {rig.asked.stop_ids.front()};
    answer.finish_reason = "length";
    return answer;
  };
  const std::vector<Rollout> rollouts = rig.engine().generate(rig.asked.prompts, {});
  EXPECT_EQ(rollouts[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(rollouts[0].response_token_ids.size(), 8u);
  EXPECT_EQ(rollouts[1].finish_reason, FinishReason::kStop);
  EXPECT_EQ(rollouts[1].response_token_ids.size(), 7u);
  EXPECT_TRUE(rollouts[2].response_token_ids.empty())
      << "an answer of a stop token alone is an answer";
}

TEST(VllmEngine, RefusesOtherPromptIdsNamingSampleAndPosition) {
  Rig rig;
  const Problem problem = rig.refusal([](VllmAnswer& answer) { answer.prompt_token_ids[4] += 1; });
  EXPECT_NE(problem.where.find("sample 1"), std::string::npos);
  EXPECT_NE(problem.where.find("questions:1"), std::string::npos);
  EXPECT_NE(problem.what.find("position 4"), std::string::npos);
  Rig shorter;
  const Problem end =
      shorter.refusal([](VllmAnswer& answer) { answer.prompt_token_ids.pop_back(); });
  EXPECT_NE(end.what.find("vLLM has the end"), std::string::npos);
}

TEST(VllmEngine, RefusesIdsBeyondTheVocabulary) {
  for (const int64_t id : {int64_t{-1}, int64_t{1} << 40}) {
    Rig rig;
    const Problem problem = rig.refusal([id](VllmAnswer& answer) { answer.token_ids[1] = id; });
    EXPECT_NE(problem.where.find("sample 1"), std::string::npos);
    EXPECT_NE(problem.what.find("position 1: id " + std::to_string(id)), std::string::npos);
  }
}

TEST(VllmEngine, NeverTakesAMissingAnswerForAnEmptyOne) {
  Rig rig;
  EXPECT_NE(
      rig.refusal([](VllmAnswer& answer) { answer.token_ids.clear(); }).where.find("sample 1"),
      std::string::npos);
  Rig aborted;
  EXPECT_NE(aborted
                .refusal([](VllmAnswer& answer) {
                  answer.token_ids = {5};
                  answer.finish_reason = "abort";
                })
                .what.find("abort"),
            std::string::npos);
  Rig too_long;
  too_long.refusal([](VllmAnswer& answer) { answer.token_ids.assign(9, 5); });
  Rig lost;
  lost.plugin.lost = {"rematch-2"};
  const Problem problem = lost.failure_of_generate();
  EXPECT_NE(problem.where.find("sample 1"), std::string::npos);
  EXPECT_NE(problem.what.find("1 of 3"), std::string::npos);
  Rig stranger;
  stranger.refusal([](VllmAnswer& answer) { answer.id = "stranger"; });
}

TEST(VllmEngine, AnExceptionOfPythonNamesTheSample) {
  Rig rig;
  rig.plugin.step_error = "RuntimeError: no";
  const Problem problem = rig.failure_of_generate();
  EXPECT_NE(problem.where.find("sample 0"), std::string::npos);
  EXPECT_EQ(problem.what, "RuntimeError: no");
  EXPECT_EQ(rig.plugin.num_aborts, 1) << "the next call starts with an empty engine";
}

TEST(VllmEngine, AnInterruptIsSeenBetweenTokensAndAborts) {
  Rig rig;
  rig.engine();
  rig.plugin.lost = {"rematch-1", "rematch-2", "rematch-3"};
  set_interrupt_requested(true);
  EXPECT_THROW(rig.engine().generate(rig.asked.prompts, {}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_EQ(rig.plugin.num_aborts, 1);
  EXPECT_EQ(rig.plugin.num_steps, 0);
}

TEST(VllmEngine, HandsOverEveryParameterInListsOfALayer) {
  Rig rig;
  rig.engine();
  size_t num_names = 0;
  for (const auto& layer : rig.plugin.layers) num_names += layer.size();
  EXPECT_EQ(num_names, rig.asked.model->parameters().size());
  for (const auto& layer : rig.plugin.layers) {
    for (const std::string& name : layer) {
      const size_t start = name.find(".layers.");
      if (start == std::string::npos) continue;
      const size_t end = name.find('.', start + 8);
      EXPECT_EQ(layer.front().substr(0, end), name.substr(0, end));
    }
  }
  for (const NamedParameter& parameter : rig.asked.model->parameters())
    EXPECT_TRUE(at::equal(rig.plugin.weights.at(parameter.name), parameter.tensor))
        << parameter.name;
}

TEST(VllmEngine, SyncsOnceForAVersionAndAlwaysForTheWeightsOfNow) {
  Rig rig;
  VllmEngine& engine = rig.engine();
  EXPECT_EQ(rig.plugin.num_syncs, 1) << "right after the start";
  engine.sync_weights(7);
  engine.sync_weights(7);
  EXPECT_EQ(rig.plugin.num_syncs, 2);
  engine.sync_weights(kCurrentWeights);
  engine.sync_weights(kCurrentWeights);
  EXPECT_EQ(rig.plugin.num_syncs, 4);
  engine.sync_weights(7);
  EXPECT_EQ(rig.plugin.num_syncs, 5) << "weights of now were some others";
}

TEST(VllmEngine, HandsOverMergedWeightsOfAnAdapter) {
  Rig rig;
  const auto adapter = adapter_of(*rig.asked.model);
  const at::NoGradGuard no_grad;
  for (const NamedParameter& parameter : adapter->parameters())
    at::Tensor(parameter.tensor).add_(0.01);
  rig.engine();
  int num_changed = 0;
  for (const NamedParameter& parameter : rig.asked.model->parameters()) {
    EXPECT_TRUE(at::equal(rig.plugin.weights.at(parameter.name), adapter->merge(parameter)))
        << parameter.name;
    num_changed += !at::equal(rig.plugin.weights.at(parameter.name), parameter.tensor);
  }
  EXPECT_GT(num_changed, 0);
}

TEST(VllmEngine, RefusesToGenerateWithWeightsOfAnotherVersion) {
  Rig rig;
  rig.engine();
  rig.plugin.version = 99;
  EXPECT_NE(rig.failure_of_generate().what.find("weights_version 99"), std::string::npos);
  rig.plugin.version = 1;
  rig.plugin.number = 5;  // another engine took its place
  rig.failure_of_generate();
  rig.engine().sync_weights(kCurrentWeights);
  EXPECT_EQ(rig.engine().generate(rig.asked.prompts, {}).size(), 3u);
}

// spec: vllm-10
TEST(VllmEngine, AStartOrASyncThatFailsIsAnErrorOfTheEnvironment) {
  const auto refusal = [](const std::function<void(test::FakePlugin&)>& spoil) {
    Rig rig;
    const auto adapter = adapter_of(*rig.asked.model);
    spoil(rig.plugin);
    const UserError error = test::catch_user_error([&] { rig.engine(); });
    EXPECT_EQ(exit_code(error.kind()), 4);
    EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
    return error.problems().front().what;
  };
  EXPECT_EQ(refusal([](test::FakePlugin& plugin) {
              plugin.start_error = "ValueError: too little memory";
            }),
            "ValueError: too little memory");
  EXPECT_EQ(refusal([](test::FakePlugin& plugin) { plugin.load_error = "KeyError: 'x'"; }),
            "KeyError: 'x'");
  EXPECT_NE(refusal([](test::FakePlugin& plugin) {
              plugin.missing = {"visual.a", "visual.b"};
            }).find("2 of its parameters"),
            std::string::npos);
}

TEST(VllmEngine, HandsOverAsManyPromptsTogetherAsAskedFor) {
  Rig rig;
  rig.asked.parts.vllm.infer_batch_size = 2;
  rig.engine().generate(rig.asked.prompts, {});
  EXPECT_EQ(rig.plugin.num_steps, 2);
}

TEST(VllmEngine, APromptThatDoesNotFitIsRefusedBeforeAnythingIsAsked) {
  Rig rig;
  rig.asked.parts.vllm.max_model_len = 20;
  const UserError error =
      test::catch_user_error([&] { rig.engine().generate(rig.asked.prompts, {}); });
  EXPECT_NE(error.problems().front().error.find("max_model_len"), std::string::npos);
  EXPECT_TRUE(rig.plugin.requests.empty());
}

TEST(VllmEngine, SleepsWhenReleasedOnlyWhenToldTo) {
  Rig awake;
  awake.engine().release();
  EXPECT_EQ(awake.plugin.slept, 0);
  Rig sleepy;
  sleepy.asked.parts.vllm.sleep_level = 1;
  sleepy.engine().release();
  EXPECT_EQ(sleepy.plugin.slept, 1);
}

TEST(VllmEngine, StartsOnAGpuBeforeTheLastImageIsReady) {
  Rig here, there;
  there.asked.parts.vllm.on_cpu = false;
  std::vector<size_t> requests_in_step;
  there.plugin.on_step = [&] { requests_in_step.push_back(there.plugin.requests.size()); };
  const auto wanted = here.engine().generate(here.asked.prompts, {});
  const auto found = there.engine().generate(there.asked.prompts, {});
  EXPECT_EQ(requests_in_step.front(), 1);
  EXPECT_EQ(here.plugin.num_steps, 1);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].response_token_ids, wanted[i].response_token_ids);
}

TEST(VllmEngine, SeedsASampleByItsKeyAlone) {
  Rig rig;
  rig.options.temperature = 0.7;
  rig.options.seed = 9;
  rig.engine().generate(rig.asked.prompts, {});
  rig.engine().generate({rig.asked.prompts[0]}, {});
  const auto seed = [&](size_t request) {
    return parse_json(rig.plugin.requests[request].sampling_json, "sampling")["seed"]
        .get<int64_t>();
  };
  EXPECT_NE(seed(0), seed(1));
  EXPECT_EQ(seed(3), seed(0)) << "whatever its batch";
  EXPECT_GE(seed(0), 0);
}

}  // namespace rematch
