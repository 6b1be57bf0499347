#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "rollout/generate_golden.h"
#include "support/paths.h"

namespace rematch::test {

/// Prompts and answers of transformers, loaded once.
inline const GenerateGolden& golden() {
  static const GenerateGolden loaded =
      load_generate_golden(source_path("tests/golden/rollout_generate.json"));
  return loaded;
}

/// A model that a test may change.
inline std::shared_ptr<Model> fresh_model() {
  return Model::load(source_path("tests/golden/rollout_model"), {});
}

/// The two runners of the native engine.
enum class Runner { kAten, kCpu };

/// An engine on a runner of that kind.
inline NativeEngine engine_on(Runner runner, const std::shared_ptr<const Model>& model,
                              const GenerateOptions& options,
                              const PixelGetter& pixels = synthetic_pixels) {
  return NativeEngine(
      {.model = model,
       .tokenizer = rollout_model().tokenizer,
       .pixels = pixels,
       .runner = runner == Runner::kAten ? make_aten_runner(model) : make_cpu_runner(model),
       .encoder = runner == Runner::kAten ? make_aten_encoder(model) : make_cpu_encoder(model)},
      options);
}

/// Greedy decoding, as many tokens as the golden answers have.
inline GenerateOptions greedy(const NativeSettings& native = {}, double repetition_penalty = 1.0) {
  return {{.max_new_tokens = golden().new_tokens,
           .repetition_penalty = repetition_penalty,
           .native = native}};
}

/// `native.kv_cache_gib` that gives this many blocks: 3 layers, keys and values, 2 heads of 16
/// floats.
inline double gib_of(int64_t num_blocks, int64_t block_len) {
  return (static_cast<double>(num_blocks) + 0.5) *
         static_cast<double>(block_len * 3 * 2 * 2 * 16 * 4) / (1 << 30);
}

/// The whole engine on each of the two runners.
class NativeEngineOn : public testing::TestWithParam<Runner> {
 protected:
  NativeEngine engine(const GenerateOptions& options,
                      const PixelGetter& pixels = synthetic_pixels) const {
    return engine_on(GetParam(), rollout_model().model, options, pixels);
  }
  std::vector<Rollout> answer(const GenerateOptions& options,
                              const std::vector<Prompt>& prompts = golden().prompts) const {
    return engine(options).generate(prompts, {});
  }
};

}  // namespace rematch::test
