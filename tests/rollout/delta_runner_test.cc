// Steps of a model whose layers mix the delta rule and attention, on both runners.
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include "base/random.h"
#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/cpu/runner.h"
#include "model/kernels/delta.h"
#include "rollout/cpu_runner_scene.h"
#include "support/paths.h"

namespace rematch {
namespace {

using test::Logits;
using test::run_alone;
using test::StepPrompt;

constexpr GridThw kImage{1, 4, 6}, kNoImage{0, 0, 0};

// Tied: four layers, the last with attention. Untied: three, the last with the delta rule, value
// heads of six values, three for one key head.
std::shared_ptr<Model> load(const std::string& name, at::ScalarType dtype = at::kFloat) {
  return Model::load(test::source_path("tests/golden/model/" + name), {.dtype = dtype});
}

const std::shared_ptr<Model>& tied() {
  static const std::shared_ptr<Model> model = load("delta_tied");
  return model;
}

const std::shared_ptr<Model>& untied() {
  static const std::shared_ptr<Model> model = load("delta_untied");
  return model;
}

void expect_the_models_logits(const Model& model, const StepPrompt& prompt,
                              const std::map<int64_t, Logits>& found, double tolerance) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits_TV =
      model.head_KV(model.forward_TH(prompt.row, prompt.features)).to(at::kFloat);
  for (const auto& [position, values] : found) {
    const at::Tensor row = logits_TV[position];
    EXPECT_LE((at::tensor(values) - row).abs().max().item<float>(),
              tolerance * row.abs().max().item<float>())
        << "position " << position;
  }
}

void expect_same_bits(const std::map<int64_t, Logits>& found,
                      const std::map<int64_t, Logits>& wanted, const std::string& what) {
  for (const auto& [position, values] : found)
    EXPECT_TRUE(values == wanted.at(position)) << what << ", position " << position;
}

Logits copy_of(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

}  // namespace

TEST(DeltaRunner, GivesTheModelsLogits) {
  // Chunks and single steps round differently, up to 1.4e-5 with AVX-512.
  constexpr double kTolerance = 2e-5;
  at::set_num_threads(1);
  for (const auto& model : {tied(), untied()}) {
    for (const auto& grid : {kNoImage, kImage}) {
      const StepPrompt prompt(*model, 140, grid, 1);
      for (const int64_t cut : {1, 37, 1000}) {
        SCOPED_TRACE(
            fmt::format("{} layers, cuts of {}", model->description().text.num_layers(), cut));
        expect_the_models_logits(*model, prompt,
                                 run_alone(*make_cpu_runner(model), prompt, cut, 16), kTolerance);
        expect_the_models_logits(*model, prompt,
                                 run_alone(*make_aten_runner(model), prompt, cut, 16), kTolerance);
      }
    }
  }
}

TEST(DeltaRunner, GivesTheSameBitsForAnyCutAndAnyNumberOfThreads) {
  for (const auto& model : {tied(), untied()}) {
    const StepPrompt prompt(*model, 200, kImage, 2);
    const auto runner = make_cpu_runner(model);
    at::set_num_threads(1);
    const auto wanted = run_alone(*runner, prompt, 1, 16);
    for (const int64_t cut : {2, 3, 15, 16, 17, 63, 64, 65, 200, 1000})
      expect_same_bits(run_alone(*runner, prompt, cut, 16), wanted, fmt::format("cuts of {}", cut));
    for (const int num_threads : {2, 3}) {
      at::set_num_threads(num_threads);
      expect_same_bits(run_alone(*runner, prompt, 150, 7), wanted,
                       fmt::format("{} threads", num_threads));
    }
    at::set_num_threads(1);
  }
}

// Two sequences in turn, with right and wrong drafts, next to a third that is prefilled.
TEST(DeltaRunner, WrongDraftsAndCompanyChangeNoBit) {
  at::set_num_threads(1);
  const std::shared_ptr<Model>& model = untied();
  const StepPrompt prompt(*model, 120, kNoImage, 3), wrong(*model, 120, kNoImage, 4),
      other(*model, 90, kNoImage, 5);
  const auto runner = make_cpu_runner(model);
  const auto wanted = run_alone(*runner, prompt, 1, 8),
             wanted_other = run_alone(*runner, other, 1, 8);
  std::vector<std::vector<int32_t>> tables(2);
  for (int32_t i = 0; i < 40; ++i) tables[static_cast<size_t>(i % 2)].push_back(i);
  runner->reserve({40, 8, /*num_states=*/2}, 64);
  int64_t done = 0, other_done = 0;
  for (uint64_t round = 0; done < prompt.length(); ++round) {
    const auto draw = [&](uint64_t what, int64_t most) {
      return static_cast<int64_t>(
          random_below(random_key({round}), what, static_cast<uint64_t>(most + 1)));
    };
    const int64_t known = std::min(done + 1 + (round % 5 == 0 ? draw(0, 20) : 0), prompt.length()),
                  end = std::min(known + draw(1, runner->max_drafts()), prompt.length()),
                  right = known + draw(2, end - known);
    StepPrompt shown = prompt;
    for (int64_t t = right; t < prompt.length(); ++t)
      shown.row.token_ids[static_cast<size_t>(t)] = wrong.row.token_ids[static_cast<size_t>(t)];
    std::vector<test::StepShare> shares{
        {&shown, done, end, tables[0], 1 + end - known, /*state=*/1}};
    if (other_done < other.length()) {
      const int64_t next = std::min(other_done + 1 + draw(3, 5), other.length());
      shares.push_back({&other, other_done, next, tables[1], 1, /*state=*/0});
      other_done = next;
    }
    const std::span<float> logits = runner->forward(test::make_step(shares));
    const auto width = static_cast<size_t>(model->description().text.vocab_size);
    for (int64_t i = known - 1; i < right; ++i) {
      EXPECT_TRUE(copy_of(logits.subspan(static_cast<size_t>(i - known + 1) * width, width)) ==
                  wanted.at(i))
          << "token " << i;
    }
    if (shares.size() > 1) {
      EXPECT_TRUE(copy_of(logits.last(width)) == wanted_other.at(other_done - 1));
    }
    done = right;
  }
}

TEST(DeltaRunner, GoesOnFromACopiedState) {
  at::set_num_threads(1);
  for (const bool on_cpu : {true, false}) {
    const auto runner = on_cpu ? make_cpu_runner(untied()) : make_aten_runner(untied());
    const StepPrompt prompt(*untied(), 40, kNoImage, 6);
    const auto wanted = run_alone(*runner, prompt, 40, 16);
    for (const int64_t fork : {3, 16, 33}) {
      runner->reserve({8, 16, /*num_states=*/3}, 40);
      const std::vector<int32_t> table{0, 1, 2}, copy{3, 4, 5};
      runner->forward(test::make_step({{&prompt, 0, fork, table, 1, 0}}));
      for (int32_t block = 0; block < 3; ++block) runner->copy_block(block, block + 3, 16);
      runner->copy_state(0, 2);
      // the first continues in between
      runner->forward(test::make_step({{&prompt, fork, 40, table, 1, 0}}));
      const Logits found =
          copy_of(runner->forward(test::make_step({{&prompt, fork, 40, copy, 1, 2}})));
      if (on_cpu) {
        EXPECT_TRUE(found == wanted.at(39)) << fork;
      }
      const Logits& last = wanted.at(39);
      for (size_t i = 0; i < last.size(); ++i) ASSERT_NEAR(found[i], last[i], 1e-4) << fork;
    }
  }
}

TEST(DeltaRunner, ForgetsTheSequenceThatHadTheSlotBefore) {
  at::set_num_threads(1);
  for (const bool on_cpu : {true, false}) {
    const auto runner = on_cpu ? make_cpu_runner(untied()) : make_aten_runner(untied());
    const StepPrompt first(*untied(), 70, kNoImage, 7);
    for (const int64_t length : {1, 2, 30}) {
      const StepPrompt second(*untied(), length, kNoImage, 8);
      const auto wanted = run_alone(*runner, second, length, 16);
      run_alone(*runner, first, 70, 16);
      const std::vector<int32_t> table{0, 1, 2, 3, 4};
      const Logits found = copy_of(runner->forward(test::make_step({{&second, 0, length, table}})));
      EXPECT_TRUE(found == wanted.at(length - 1)) << length << " tokens";
    }
  }
}

TEST(DeltaRunner, AStateTakesTheSameMemoryForAnyLength) {
  const auto runner = make_cpu_runner(tied());
  const DeltaDescription& delta = *tied()->description().text.delta();
  // three layers; 2 key heads of 8, each with two value heads of 8 in panels of 32
  EXPECT_EQ(tied()->description().text.num_delta_layers(), 3);
  EXPECT_EQ(
      runner->state_bytes(),
      3 * delta.num_key_heads * 4 * (8 * 32 + 16 * (2 * 8 + 2 * 8) + 2 * (8 * 32 + 32 * 32 + 32)));
  EXPECT_EQ(make_aten_runner(tied())->state_bytes(),
            3 * 4 * (delta.state_size() + delta.window_size()));
  EXPECT_EQ(runner->max_drafts(), kernels::kMaxDeltaDrafts);
  // only the layer with attention has blocks
  EXPECT_EQ(runner->block_bytes(16), 2 * 16 * 32 * 4);
}

TEST(DeltaRunner, ComputesBfloat16WeightsInFloat32) {
  at::set_num_threads(1);
  const std::shared_ptr<Model> half = load("delta_tied", at::kBFloat16);
  const StepPrompt prompt(*tied(), 100, kImage, 9);
  const auto runner = make_cpu_runner(half);
  const auto found = run_alone(*runner, prompt, 1, 16);
  expect_the_models_logits(*tied(), prompt, found, 3e-2);
  expect_same_bits(run_alone(*runner, prompt, 19, 3), found, "bfloat16");
}

}  // namespace rematch
