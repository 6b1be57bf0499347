// Rollouts on a device: tokens are chosen there, attention has few shapes, and the cache of
// `native` does not shrink from window to window.
#include <ATen/DeviceAccelerator.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "base/random.h"
#include "engine/rollout/device_sampler.h"
#include "engine/rollout/engine_factory.h"
#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/aten/step_graph.h"
#include "engine/rollout/native/cache_size.h"
#include "engine/rollout/native/native_engine.h"
#include "engine/rollout/offload.h"
#include "engine/rollout/vllm/vllm_engine.h"
#include "model/adapter.h"
#include "model/tiny_checkpoint.h"
#include "rollout/generate_golden.h"
#include "support/paths.h"
#include "support/pretend_device.h"
#include "vllm/fake_plugin.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#endif

namespace rematch {
namespace {

const at::Device kDevice = test::pretend_device();

const test::GenerateGolden& golden() {
  static const test::GenerateGolden loaded =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json"));
  return loaded;
}

std::shared_ptr<Model> model_there() {
  static const auto model =
      Model::load(test::source_path("tests/golden/rollout_model"), {.device = kDevice});
  return model;
}

std::unique_ptr<RolloutEngine> engine_of(const std::string& backend,
                                         const GenerationSettings& settings) {
  return make_engine(backend,
                     {.model = model_there(),
                      .tokenizer = test::rollout_model().tokenizer,
                      .pixels = test::synthetic_pixels,
                      .vllm = {}},
                     {settings});
}

test::Traffic traffic_of(const std::function<void()>& work) {
  const test::Traffic before = test::traffic();
  work();
  return test::traffic() - before;
}

// Rows of logits with a clear best token, and the rows of a sampler for them.
struct Scene {
  explicit Scene(const GenerateOptions& options_, int64_t num_rows = 6, int64_t vocab_size = 500)
      : options(options_) {
    at::manual_seed(11);
    logits_SV = at::randn({num_rows, vocab_size}) * 3;
    for (int64_t i = 0; i < num_rows; ++i) {
      Prompt prompt{.sample_id = i, .epoch = 2};
      for (int id = 0; id < 40; ++id)
        prompt.token_ids.push_back((id * 7 + static_cast<int>(i)) % 500);
      rows.emplace_back(prompt, options, vocab_size);
    }
  }
  std::vector<ChosenToken> on_host() {
    Sampler sampler(options);
    std::vector<ChosenToken> tokens;
    for (size_t i = 0; i < rows.size(); ++i) {
      at::Tensor row = logits_SV[static_cast<int64_t>(i)].clone();
      SamplerRow copy = rows[i];
      tokens.push_back(
          sampler.next({row.data_ptr<float>(), static_cast<size_t>(row.numel())}, copy));
    }
    return tokens;
  }
  std::vector<ChosenToken> on_device() {
    DeviceSampler sampler(options);
    std::vector<SamplerRow*> pointers;
    for (SamplerRow& row : rows) pointers.push_back(&row);
    return sampler.next(logits_SV.to(kDevice), pointers);
  }

  GenerateOptions options;
  at::Tensor logits_SV;
  std::vector<SamplerRow> rows;
};

}  // namespace

TEST(DeviceSampler, ChoosesTheTokensOfTheHostsSampler) {
  const GenerationSettings cases[] = {
      {},
      {.repetition_penalty = 1.3},
      {.temperature = 0.8},
      {.temperature = 1.0},
      {.temperature = 1.4, .top_k = 9},
      {.temperature = 1.4, .top_p = 0.7},
      {.temperature = 0.9, .top_p = 0.9, .top_k = 40, .repetition_penalty = 1.1}};
  for (const GenerationSettings& settings : cases) {
    Scene scene({settings});
    const auto wanted = scene.on_host(), found = scene.on_device();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found[i].token_id, wanted[i].token_id) << settings.temperature << " row " << i;
      EXPECT_NEAR(found[i].logprob, wanted[i].logprob, 1e-5);
    }
  }
}

TEST(DeviceSampler, NamesTheSampleOfALogitThatIsNotFinite) {
  Scene scene({});
  scene.logits_SV[3][7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(scene.on_device(), UserError);
}

TEST(DecodingBudget, AStepBringsSixteenBytesASequence) {
  Scene scene({});
  const at::Tensor logits = scene.logits_SV.to(kDevice);
  std::vector<SamplerRow*> rows;
  for (SamplerRow& row : scene.rows) rows.push_back(&row);
  DeviceSampler sampler(scene.options);
  const test::Traffic traffic = traffic_of([&] { sampler.next(logits, rows); });
  EXPECT_EQ(traffic.bytes_down, 16 * std::ssize(rows));
  EXPECT_EQ(traffic.waits, 1);
  for (const char* backend : {"hf", "native"}) {
    const auto down = [&](int num_tokens) {
      const auto engine = engine_of(backend, {.max_new_tokens = num_tokens, .batch_size = 8});
      engine->sync_weights(0);
      return traffic_of([&] { engine->generate(golden().prompts, {}); }).bytes_down;
    };
    EXPECT_LE(down(12) - down(4), 8 * 64 * std::ssize(golden().prompts)) << backend;
  }
}

// Features of images stay on the device.
TEST(DecodingBudget, AWindowWithImagesBringsDownOnlyIds) {
  constexpr int kTokens = 4;
  const int64_t num_prompts = std::ssize(golden().prompts);
  int64_t pixel_bytes = 0, num_images = 0;
  for (const Prompt& prompt : golden().prompts) {
    for (const ImageRef& image : prompt.images) {
      pixel_bytes += static_cast<int64_t>(test::synthetic_pixels(image)->pixel_values.size()) * 4;
      ++num_images;
    }
  }
  ASSERT_GT(pixel_bytes, 0);
  const auto engine = engine_of("native", {.max_new_tokens = kTokens});
  engine->sync_weights(0);
  const test::Traffic traffic = traffic_of([&] { engine->generate(golden().prompts, {}); });
  EXPECT_LE(traffic.bytes_down, 16 * kTokens * num_prompts);
  EXPECT_LE(traffic.waits, kTokens + 2);
  EXPECT_EQ(dynamic_cast<NativeEngine&>(*engine).stats().num_images, num_images)
      << "each is encoded once";
  EXPECT_LE(traffic.bytes_up, pixel_bytes + 49152) << "pixels; ids and positions";
}

TEST(DecodingBudget, AnAnswerHasFewShapesOfAttention) {
  constexpr int kTokens = 512;
  std::set<std::vector<int64_t>> shapes;
  test::watch_launches([&](const std::string& name, const auto& sizes) {
    if (name == "aten::_softmax" || name == "aten::_safe_softmax") shapes.insert(sizes.front());
  });
  const auto engine = engine_of("hf", {.max_new_tokens = kTokens, .batch_size = 1});
  engine->generate({golden().prompts.front()}, {});
  test::watch_launches(nullptr);
  EXPECT_GE(shapes.size(), 1);
  EXPECT_LE(std::ssize(shapes), kTokens / 128 + 1 + 2)
      << "with the prefill and the tower: " << testing::PrintToString(shapes);
}

// Layers with the delta rule take the rows of a prompt in chunks of 64, from the states of the rows
// before.
TEST(DecodingBudget, AStepThatContinuesAPromptLaunchesTheSameForManyRows) {
  const std::shared_ptr<Model> model = Model::load(test::delta_tied(), {.device = kDevice});
  const auto launches = [&](int64_t num_rows, int64_t num_cached) {
    const auto runner = make_aten_runner(model, StepGraphMaker());
    runner->reserve({.num_blocks = 2, .block_len = 128, .num_states = 1}, 128);
    const std::vector<int32_t> blocks{0, 1};
    Step step{.token_ids = std::vector<TokenId>(static_cast<size_t>(num_rows), 7),
              .positions_3T = std::vector<int64_t>(static_cast<size_t>(3 * num_rows), num_cached),
              .sequences = {{.num_rows = num_rows,
                             .num_cached = num_cached,
                             .block_table = blocks,
                             .num_logits = 1,
                             .state = 0}},
              .visual_rows = {}};
    return traffic_of([&] { runner->forward(step); }).launches;
  };
  const int64_t few = launches(2, 64);
  EXPECT_LE(launches(64, 64), few) << "a chunk without padding";
  // Three products of the scan a chunk in each of three layers.
  EXPECT_LE(launches(128, 64), few + 3 * 3 + 3);
}

TEST(NativeCache, TheSecondWindowHasTheBlocksOfTheFirst) {
  const auto engine = engine_of("native", {.max_new_tokens = 4});
  auto& native = dynamic_cast<NativeEngine&>(*engine);
  const int64_t before = free_memory_bytes(kDevice);
  engine->sync_weights(0);
  engine->generate(golden().prompts, {});
  const int64_t blocks = native.blocks()->num_blocks();
  engine->sync_weights(1);
  {  // an update, whose memory torch's allocator keeps
    const at::Tensor activations =
        at::zeros({64 << 20}, at::TensorOptions(kDevice).dtype(at::kByte));
  }
  EXPECT_LT(static_cast<int64_t>(at::accelerator::getMemoryInfo(0).first), before - (32 << 20))
      << "the driver has less";
  EXPECT_GE(free_memory_bytes(kDevice), before - (4 << 20));
  engine->generate(golden().prompts, {});
  EXPECT_EQ(native.blocks()->num_blocks(), blocks);
}

TEST(VllmSync, MergesOffloadedAdaptersOnTheDevice) {
  const auto model =
      Model::load(test::source_path("tests/golden/rollout_model"), {.device = kDevice});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter = Adapter::create(*model, select_targets(model->description(), names, {}),
                                       {.lora = {.rank = 2, .alpha = 4}});
  std::vector<at::Tensor> tensors;
  for (const NamedParameter& parameter : adapter->parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor(parameter.tensor).copy_(at::randn(parameter.tensor.sizes()));
    tensors.push_back(parameter.tensor);
  }
  std::map<std::string, at::Tensor> wanted;
  for (const NamedParameter& parameter : model->parameters()) {
    wanted[parameter.name] = adapter->merge(parameter).detach().cpu();
    tensors.push_back(parameter.tensor);
  }
  Offload offload(
      {.settings = {.enabled = true, .model = true}}, [&] { return tensors; }, make_tensor_mover());
  test::FakePlugin plugin;
  int num_products = 0;
  {
    const OffloadScope scope(&offload);
    test::watch_launches(
        [&](const std::string& name, const auto&) { num_products += name == "aten::mm" ? 1 : 0; });
    VllmOptions vllm;
    vllm.on_cpu = false;
    const VllmEngine engine(plugin, {.model = model, .tokenizer = {}, .pixels = {}, .vllm = vllm},
                            {}, {});
    test::watch_launches(nullptr);
  }
  EXPECT_GT(num_products, 0);
  ASSERT_EQ(plugin.weights.size(), wanted.size());
  for (const auto& [name, value] : wanted)
    EXPECT_TRUE(at::equal(plugin.weights[name].cpu(), value)) << name;
}

// vLLM takes its memory when it starts and when a sync wakes it.
TEST(VllmSync, FindsNoMemoryThatTorchKeepsOfFreedTensors) {
  std::vector<int64_t> kept;
  test::FakePlugin plugin;
  plugin.on_wake = [&] {
    const test::DeviceMemory memory = test::pretend_memory_use();
    kept.push_back(memory.reserved - memory.allocated);
  };
  const auto free_tensor = [] {
    at::empty({64 << 20}, at::TensorOptions(kDevice).dtype(at::kByte));
  };
  VllmOptions vllm;
  vllm.on_cpu = false;
  free_tensor();
  VllmEngine engine(plugin, {.model = model_there(), .tokenizer = {}, .pixels = {}, .vllm = vllm},
                    {}, {});
  free_tensor();
  engine.sync_weights(1);
  ASSERT_EQ(kept.size(), 2u);
  for (const int64_t bytes : kept) EXPECT_LT(bytes, 2 << 20);
}

#if __has_include(<ATen/core/GraphImplInterface.h>)
namespace {

std::vector<c10::MempoolId_t> pools_asked_for;

struct FakeGraph : at::GraphImplInterface {
  explicit FakeGraph(const at::GraphImplArgs&) {}
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode) override {
    pools_asked_for.push_back(pool);
  }
  void capture_end() override {}
  void instantiate() override {}
  void replay() override {}
  void reset() override {}
  c10::MempoolId_t pool() const override { return {7, 9}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}
};

}  // namespace

TEST(StepGraphs, AllUseTheMemoryPoolOfTheFirst) {
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(kDevice.type(), /*lower_case=*/false),
      [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<FakeGraph>(args);
      });
  const StepGraphMaker make = device_graphs(kDevice);
  for (int i = 0; i < 3; ++i) make()->capture([] {});
  ASSERT_EQ(pools_asked_for.size(), 3);
  EXPECT_EQ(pools_asked_for[0], (c10::MempoolId_t{0, 0}));
  EXPECT_EQ(pools_asked_for[1], (c10::MempoolId_t{7, 9}));
  EXPECT_EQ(pools_asked_for[2], (c10::MempoolId_t{7, 9}));
}
#endif

}  // namespace rematch
