#include "engine/rollout/native/cpu/runner.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/adapter.h"
#include "model/tiny_checkpoint.h"
#include "rollout/cpu_runner_scene.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

// Counts what the program allocates, for the test that a step allocates nothing.
void* operator new(size_t size) {
  ++num_allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rematch {
namespace {

using test::Logits;
using test::run_alone;
using test::StepPrompt;

constexpr GridThw kImage{1, 4, 6}, kNoImage{0, 0, 0};

std::shared_ptr<Model> load(const std::string& directory, at::ScalarType dtype = at::kFloat) {
  return Model::load(directory, {.dtype = dtype});
}

const std::shared_ptr<Model>& tiny() {
  static const std::shared_ptr<Model> model = load(test::tiny_tied());
  return model;
}

// The number of ATen's threads until it dies.
struct Threads {
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before); }
  int before = at::get_num_threads();
};

void expect_the_models_logits(const Model& model, const StepPrompt& prompt,
                              const std::map<int64_t, Logits>& found, double tolerance) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits_TV =
      model.head_KV(model.forward_TH(prompt.row, prompt.features)).to(at::kFloat);
  for (const auto& [position, values] : found) {
    const at::Tensor row = logits_TV[position];
    const at::Tensor mine = at::tensor(values);
    ASSERT_EQ(mine.sizes(), row.sizes());
    EXPECT_LE((mine - row).abs().max().item<float>(), tolerance * row.abs().max().item<float>())
        << "position " << position;
  }
}

void expect_same_bits(const std::map<int64_t, Logits>& found,
                      const std::map<int64_t, Logits>& wanted, const std::string& what) {
  for (const auto& [position, values] : found)
    EXPECT_TRUE(values == wanted.at(position)) << what << ", position " << position;
}

}  // namespace

TEST(CpuRunner, GivesTheModelsLogits) {
  for (const std::string& directory :
       {test::tiny_tied(), test::tiny_untied(), test::source_path("tests/shapes/model")}) {
    const std::shared_ptr<Model> model = load(directory);
    const auto runner = make_cpu_runner(model);
    for (const auto& grid : {kNoImage, kImage}) {
      const StepPrompt prompt(*model, 30, grid, 1);
      SCOPED_TRACE(fmt::format("{} with {} tokens", directory, prompt.length()));
      expect_the_models_logits(*model, prompt, run_alone(*runner, prompt, 1, 16), 1e-5);
      expect_the_models_logits(*model, prompt, run_alone(*runner, prompt, 100, 16), 1e-5);
    }
  }
}

TEST(CpuRunner, GivesTheModelsLogitsInALongContext) {
  const StepPrompt prompt(*tiny(), 700, kImage, 2);
  expect_the_models_logits(*tiny(), prompt, run_alone(*make_cpu_runner(tiny()), prompt, 100, 16),
                           1e-5);
}

TEST(CpuRunner, GivesTheSameBitsForAnyCutOfThePrompt) {
  const StepPrompt prompt(*tiny(), 300, kImage, 3);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted = run_alone(*runner, prompt, 1, 16);
  for (const int64_t chunk : {2, 3, 7, 16, 33, 64, 250, 1000}) {
    expect_same_bits(run_alone(*runner, prompt, chunk, 16), wanted,
                     fmt::format("chunks of {}", chunk));
  }
}

TEST(CpuRunner, GivesTheSameBitsForAnyBlockLength) {
  const StepPrompt prompt(*tiny(), 280, kImage, 4);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted = run_alone(*runner, prompt, 13, 16);
  for (const int64_t block_len : {1, 2, 5, 8, 31, 32}) {
    expect_same_bits(run_alone(*runner, prompt, 13, block_len), wanted,
                     fmt::format("blocks of {}", block_len));
  }
}

TEST(CpuRunner, GivesTheSameBitsForAnyNumberOfThreads) {
  const StepPrompt prompt(*tiny(), 600, kImage, 5);
  const auto runner = make_cpu_runner(tiny());
  const Threads one(1);
  const auto whole = run_alone(*runner, prompt, 590, 16);
  for (const int count : {2, 3}) {
    const Threads threads(count);
    expect_same_bits(run_alone(*runner, prompt, 590, 16), whole, fmt::format("{} threads", count));
  }
}

TEST(CpuRunner, GivesTheSameBitsInAnyCompany) {
  const StepPrompt first(*tiny(), 50, kImage, 6), second(*tiny(), 290, kNoImage, 7),
      third(*tiny(), 9, kImage, 8);
  const auto runner = make_cpu_runner(tiny());
  const std::vector<const StepPrompt*> prompts{&first, &second, &third};
  std::vector<std::map<int64_t, Logits>> wanted;
  for (const StepPrompt* prompt : prompts) wanted.push_back(run_alone(*runner, *prompt, 1, 8));

  // Three tables that take turns: 64 blocks, every third one's.
  std::vector<std::vector<int32_t>> tables(3);
  for (int32_t i = 0; i < 150; ++i) tables[static_cast<size_t>(i % 3)].push_back(i);
  for (const int count : {1, 2}) {
    const Threads threads(count);
    runner->reserve({150, 8}, 64);
    std::vector<int64_t> done(3, 0);
    for (int round = 0;; ++round) {
      std::vector<test::StepShare> shares;
      std::vector<size_t> who;
      for (size_t i = 0; i < 3; ++i) {
        // Now a chunk, now a token, so that prefill and decoding meet in every combination; the
        // last one joins late.
        const int64_t length = prompts[i]->length(),
                      take = (round + static_cast<int>(i)) % 4 == 0 ? 17 : 1;
        if (done[i] == length || (i == 2 && round < 5)) continue;
        shares.push_back({prompts[i], done[i], std::min(length, done[i] + take), tables[i]});
        who.push_back(i);
        done[i] = shares.back().end;
      }
      if (shares.empty()) break;
      const std::span<float> logits = runner->forward(test::make_step(shares));
      const size_t width = logits.size() / shares.size();
      for (size_t s = 0; s < shares.size(); ++s) {
        const Logits row(logits.begin() + static_cast<int64_t>(s * width),
                         logits.begin() + static_cast<int64_t>((s + 1) * width));
        EXPECT_TRUE(row == wanted[who[s]].at(shares[s].end - 1))
            << "prompt " << who[s] << ", position " << shares[s].end - 1;
      }
    }
  }
}

TEST(CpuRunner, GivesLogitsOnlyToThoseThatWantThem) {
  const StepPrompt prompt(*tiny(), 20, kNoImage, 9);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted = run_alone(*runner, prompt, 20, 16);
  const std::vector<int32_t> tables{0, 1, 2, 3};
  runner->reserve({4, 16}, 40);
  Step step = test::make_step(
      {{&prompt, 0, 20, std::span(tables).first(2)}, {&prompt, 0, 20, std::span(tables).last(2)}});
  step.sequences[0].num_logits = 0;
  const std::span<float> one = runner->forward(step);
  EXPECT_TRUE(Logits(one.begin(), one.end()) == wanted.at(19));
  step.sequences[1].num_logits = 0;
  EXPECT_TRUE(runner->forward(step).empty());
}

TEST(CpuRunner, GivesSeveralRowsOfASequenceTheLogitsTheyHaveAlone) {
  // As with drafts: some sequences want the logits of their last rows, next to others that want one
  // or none, in every order.
  const StepPrompt first(*tiny(), 30, kNoImage, 11), second(*tiny(), 25, {1, 4, 4}, 12);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted_first = run_alone(*runner, first, 1, 8),
             wanted_second = run_alone(*runner, second, 1, 8);
  const std::vector<int32_t> tables{0, 1, 2, 3, 4, 5, 6, 7};
  const auto table = [&](size_t i) { return std::span(tables).subspan(4 * i, 4); };
  for (const int count : {1, 2}) {
    const Threads threads(count);
    for (const auto& [num_first, num_second] :
         std::vector<std::pair<int64_t, int64_t>>{{3, 1}, {1, 5}, {4, 4}, {10, 0}, {0, 6}}) {
      runner->reserve({8, 8}, 64);
      const int64_t begin = 20, end = 30, all = second.length();
      runner->forward(
          test::make_step({{&first, 0, begin, table(0)}, {&second, 0, all - 8, table(1)}}));
      const std::span<float> logits =
          runner->forward(test::make_step({{&first, begin, end, table(0), num_first},
                                           {&second, all - 8, all, table(1), num_second}}));
      const size_t width = logits.size() / static_cast<size_t>(num_first + num_second);
      for (int64_t i = 0; i < num_first + num_second; ++i) {
        const Logits row(logits.begin() + i * static_cast<int64_t>(width),
                         logits.begin() + (i + 1) * static_cast<int64_t>(width));
        const int64_t position =
            i < num_first ? end - num_first + i : all - num_second + i - num_first;
        EXPECT_TRUE(row == (i < num_first ? wanted_first : wanted_second).at(position))
            << num_first << ", " << num_second << ": row " << i;
      }
    }
  }
}

TEST(CpuRunner, GoesOnFromACopiedBlock) {
  const StepPrompt prompt(*tiny(), 40, kNoImage, 10);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted = run_alone(*runner, prompt, 1, 16);
  runner->reserve({8, 16}, 40);
  const std::vector<int32_t> table{0, 1, 2}, copy{0, 5, 6};
  runner->forward(test::make_step({{&prompt, 0, 24, table}}));
  runner->copy_block(1, 5, 8);
  for (int64_t t = 24; t < 40; ++t) {
    const std::span<float> logits = runner->forward(test::make_step({{&prompt, t, t + 1, copy}}));
    EXPECT_TRUE(Logits(logits.begin(), logits.end()) == wanted.at(t)) << t;
  }
}

TEST(CpuRunner, ReadsTheTrainingWeightsInPlace) {
  const std::shared_ptr<Model> model = load(test::tiny_untied());
  const auto runner = make_cpu_runner(model);
  const StepPrompt prompt(*model, 25, kNoImage, 11);
  const auto before = run_alone(*runner, prompt, 25, 16);
  {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : model->parameters())
      at::Tensor(parameter.tensor).mul_(1.1);
  }
  runner->refresh();
  const auto after = run_alone(*runner, prompt, 25, 16);
  EXPECT_FALSE(before.at(24) == after.at(24));
  expect_the_models_logits(*model, prompt, after, 1e-5);
}

TEST(CpuRunner, MergesAnAdapterWhenItRefreshes) {
  for (const bool use_dora : {false, true}) {
    const std::shared_ptr<Model> model = load(test::tiny_untied());
    std::vector<std::string> names;
    for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
    const auto adapter = Adapter::create(*model, select_targets(model->description(), names, {}),
                                         {.lora = {.rank = 2, .alpha = 4, .use_dora = use_dora}});
    const auto runner = make_cpu_runner(model);
    const StepPrompt prompt(*model, 25, kImage, 12);
    for (int change = 0; change < 2; ++change) {
      {
        const at::NoGradGuard no_grad;
        at::manual_seed(change);
        for (const NamedParameter& parameter : adapter->parameters())
          at::Tensor(parameter.tensor).add_(0.1 * at::randn_like(parameter.tensor));
      }
      runner->refresh();
      const StepPrompt now(*model, 25, kImage, 12);
      expect_the_models_logits(*model, now, run_alone(*runner, now, 25, 16), 2e-5);
    }
  }
}

TEST(CpuRunner, ComputesBfloat16WeightsInFloat32) {
  // The checkpoint is stored as bfloat16, so both models have the same weights; only cached keys
  // and values are rounded.
  const std::shared_ptr<Model> half = load(test::tiny_untied(), at::kBFloat16);
  const std::shared_ptr<Model> single = load(test::tiny_untied());
  const StepPrompt prompt(*single, 60, kImage, 13);
  const auto runner = make_cpu_runner(half);
  const auto found = run_alone(*runner, prompt, 1, 16);
  expect_the_models_logits(*single, prompt, found, 3e-2);
  expect_same_bits(run_alone(*runner, prompt, 19, 3), found, "bfloat16");
  EXPECT_EQ(2 * runner->block_bytes(16), make_cpu_runner(single)->block_bytes(16));
}

TEST(CpuRunner, AllocatesNothingInAStepLikeTheOneBefore) {
  const StepPrompt prompt(*tiny(), 40, kImage, 15);
  const auto runner = make_cpu_runner(tiny());
  runner->reserve({4, 16}, 40);
  const std::vector<int32_t> table{0, 1, 2, 3};
  for (const int64_t num_rows : {40, 1}) {
    const Step step = test::make_step({{&prompt, 0, num_rows, table}});
    runner->forward(step);
    const float* const logits = runner->forward(step).data();
    const int64_t before = num_allocations;
    EXPECT_EQ(runner->forward(step).data(), logits);
    EXPECT_EQ(num_allocations - before, 0) << num_rows << " rows";
  }
}

TEST(CpuRunner, StartsAgainAfterRelease) {
  const StepPrompt prompt(*tiny(), 20, kNoImage, 14);
  const auto runner = make_cpu_runner(tiny());
  const auto wanted = run_alone(*runner, prompt, 20, 16);
  runner->release();
  expect_same_bits(run_alone(*runner, prompt, 20, 16), wanted, "released");
}

}  // namespace rematch
