// The real vLLM against the oracle `hf`: the same greedy ids, with the weights of the moment.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/interrupt.h"
#include "engine/rollout/vllm/plugin_loader.h"
#include "model/adapter.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

constexpr int kNumPrompts = 32;
constexpr int kNewTokens = 96;

// Both backends on the weights as they are; every difference has to be a near tie, and the count is
// printed.
void expect_equal_answers(const test::Questions& asked, RolloutEngine& vllm, const char* what) {
  const auto expected = asked.answers(*make_engine("hf", asked.parts, asked.options(kNewTokens)));
  const auto found = asked.answers(vllm);
  const test::Differences differences = test::compare(asked, expected, found);
  std::printf("%s: %zu answers, %d differ at a near tie, %d otherwise\n", what, found.size(),
              differences.near_ties, differences.unexplained);
  EXPECT_EQ(differences.unexplained, 0) << what;
  size_t num_tokens = 0;
  for (const auto& ids : found) num_tokens += ids.size();
  EXPECT_GT(num_tokens, found.size()) << "answers are not empty";
}

// A large step on every parameter, as an optimizer would do it: in place.
void learn(const test::Questions& asked) {
  const at::NoGradGuard no_grad;
  at::manual_seed(11);
  for (const NamedParameter& parameter : asked.model->parameters()) {
    at::Tensor(parameter.tensor)
        .add_(at::randn_like(parameter.tensor) * 0.1 * parameter.tensor.std(/*unbiased=*/false));
  }
}

}  // namespace

TEST(VllmLive, GreedyIdsAreThoseOfHfOnTheDemonstrationsModel) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked =
      test::questions(test::source_path("tests/shapes/model"), kNumPrompts);
  const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
  EXPECT_TRUE(engine->holds_own_weights());
  expect_equal_answers(asked, *engine, "tests/shapes/model");
}

TEST(VllmLive, LogProbabilitiesAreThoseOfHf) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 8);
  const auto greedy = asked.options(kNewTokens);
  const auto expected = make_engine("hf", asked.parts, greedy)->generate(asked.prompts, {});
  const auto found = make_engine("vllm", asked.parts, greedy)->generate(asked.prompts, {});
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].token_logprobs.size(), found[i].response_token_ids.size());
    if (found[i].response_token_ids != expected[i].response_token_ids) continue;  // a near tie
    for (size_t k = 0; k < found[i].token_logprobs.size(); ++k)
      EXPECT_NEAR(found[i].token_logprobs[k], expected[i].token_logprobs[k], 1e-3) << i << " " << k;
  }
}

TEST(VllmLive, AfterAStepOnlyASyncShowsWhatWasLearnt) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked =
      test::questions(test::source_path("tests/shapes/model"), kNumPrompts);
  const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
  engine->sync_weights(0);
  const auto before = asked.answers(*engine);
  learn(asked);
  EXPECT_EQ(asked.answers(*engine), before) << "the engine has a copy of the weights";
  engine->sync_weights(0);
  EXPECT_EQ(asked.answers(*engine), before) << "version 0 is there already";
  EXPECT_NE(before, asked.answers(*make_engine("hf", asked.parts, asked.options(kNewTokens))));
  engine->sync_weights(1);
  expect_equal_answers(asked, *engine, "after a step and a sync");
  learn(asked);
  engine->sync_weights(kCurrentWeights);
  expect_equal_answers(asked, *engine, "weights of now");
}

TEST(VllmLive, AnAdapterIsHandedOverMerged) {
  REMATCH_NEEDS_VLLM();
  for (const bool use_dora : {false, true}) {
    const test::Questions asked =
        test::questions(test::source_path("tests/shapes/model"), kNumPrompts);
    std::vector<std::string> names;
    for (const NamedParameter& parameter : asked.model->parameters())
      names.push_back(parameter.name);
    const auto adapter =
        Adapter::create(*asked.model, select_targets(asked.model->description(), names, {}),
                        {.lora = {.rank = 4, .use_dora = use_dora}});
    {
      const at::NoGradGuard no_grad;
      at::manual_seed(3);
      for (const NamedParameter& parameter : adapter->parameters()) {
        if (parameter.name.find("lora_B") != std::string::npos)
          at::Tensor(parameter.tensor).normal_(0, 0.05);
        if (parameter.name.find("magnitude") != std::string::npos)
          at::Tensor(parameter.tensor).mul_(1.1);
      }
    }
    const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
    expect_equal_answers(asked, *engine, use_dora ? "DoRA" : "LoRA");
  }
}

TEST(VllmLive, GreedyIdsAreThoseOfHfOnARandomModelWithAHeadOfItsOwn) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::random_model(), kNumPrompts);
  const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
  expect_equal_answers(asked, *engine, "random model");
}

TEST(VllmLive, GreedyIdsAreThoseOfHfOnATowerWithWindowsAlsoAfterAStep) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::windows_model(), kNumPrompts);
  const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
  engine->sync_weights(0);
  expect_equal_answers(asked, *engine, "windows");
  const auto before = asked.answers(*engine);
  learn(asked);
  engine->sync_weights(1);
  expect_equal_answers(asked, *engine, "windows after a step and a sync");
  EXPECT_NE(asked.answers(*engine), before);
}

TEST(VllmLive, ASamplesAnswerDependsOnItsSeedNotOnItsBatch) {
  REMATCH_NEEDS_VLLM();
  test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 6);
  GenerateOptions options = asked.options(24);
  options.temperature = 1.0;
  options.seed = 3;
  const auto together = asked.answers(*make_engine("vllm", asked.parts, options));
  asked.parts.vllm.infer_batch_size = 1;
  EXPECT_EQ(asked.answers(*make_engine("vllm", asked.parts, options)), together);
  options.seed = 4;
  EXPECT_NE(asked.answers(*make_engine("vllm", asked.parts, options)), together);
}

TEST(VllmLive, TheRepeatGuardCutsByTheRuleOfTheOthers) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 8);
  GenerateOptions options = asked.options(64);
  options.repeat_terminate = {.enabled = true, .min_new_tokens = 4, .max_object_keys = 2};
  const auto rollouts = make_engine("vllm", asked.parts, options)->generate(asked.prompts, {});
  const auto expected = make_engine("hf", asked.parts, options)->generate(asked.prompts, {});
  int num_cut = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    EXPECT_EQ(rollouts[i].response_token_ids, expected[i].response_token_ids) << i;
    EXPECT_EQ(rollouts[i].finish_reason, expected[i].finish_reason) << i;
    num_cut += rollouts[i].finish_reason == FinishReason::kRepeat;
  }
  EXPECT_GT(num_cut, 0);
}

TEST(VllmLive, SignalsThreadsAndGradientsStayTheProgramsOwn) {
  REMATCH_NEEDS_VLLM();
  install_interrupt_handlers();
  struct sigaction before{}, after{};
  sigaction(SIGINT, nullptr, &before);
  const int num_threads = at::get_num_threads();
  cpu_set_t cpus_before, cpus_after;
  sched_getaffinity(0, sizeof cpus_before, &cpus_before);
  const test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 2);
  const auto engine = make_engine("vllm", asked.parts, asked.options(4));
  asked.answers(*engine);
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  EXPECT_EQ(at::get_num_threads(), num_threads);
  sched_getaffinity(0, sizeof cpus_after, &cpus_after);
  EXPECT_TRUE(CPU_EQUAL(&cpus_before, &cpus_after)) << "threads are not tied to cores";
  int policy = -1;
  const bool known = syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0;
  EXPECT_TRUE(!known || policy == 0) << "memory is not tied to a NUMA node: policy " << policy;
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(VllmLive, AnInterruptLeavesNothingBehindInTheEngine) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 4);
  const auto engine = make_engine("vllm", asked.parts, asked.options(32));
  const auto expected = asked.answers(*engine);
  int num_finished = 0;
  try {
    engine->generate(asked.prompts, [&](int) {
      ++num_finished;
      set_interrupt_requested(true);
    });
    // All four may finish with the same token; then there was nothing to interrupt.
    EXPECT_EQ(num_finished, 4);
  } catch (const Interrupted&) {
    EXPECT_LT(num_finished, 4);
  }
  set_interrupt_requested(true);
  EXPECT_THROW(engine->generate(asked.prompts, {}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_EQ(asked.answers(*engine), expected);
}

TEST(VllmLive, AnEngineThatCannotStartSaysWhyAndTheWayOut) {
  REMATCH_NEEDS_VLLM();
  test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 1);
  asked.parts.vllm.engine_args = {{"kv_cache_dtype", "\"no_such_dtype\""}};
  const UserError error =
      test::catch_user_error([&] { make_engine("vllm", asked.parts, asked.options(4)); });
  EXPECT_EQ(exit_code(error.kind()), 4);
  EXPECT_NE(error.problems().front().what.find("no_such_dtype"), std::string::npos) << error.what();
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
}

TEST(VllmLive, AModelThatItsKernelsDoNotKnowIsRefusedAtTheStart) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked =
      test::questions(test::source_path("tests/golden/model/tiny_tied"), 1);
  try {
    make_engine("vllm", asked.parts, asked.options(4));
  } catch (const UserError& error) {  // heads of 16 values, with the CPU release of today
    EXPECT_EQ(exit_code(error.kind()), 4);
    EXPECT_NE(error.problems().front().error.find("cannot start"), std::string::npos)
        << error.what();
    EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
  }
  // The engine that failed blocks nothing.
  const test::Questions others = test::questions(test::source_path("tests/shapes/model"), 2);
  EXPECT_EQ(others.answers(*make_engine("vllm", others.parts, others.options(4))).size(), 2u);
}

}  // namespace rematch
