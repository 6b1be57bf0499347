#include "plan/engine.h"

#include <algorithm>

#include "rollout/native/cache_size.h"
#include "rollout/native/native_engine.h"

namespace rematch {
namespace {

// The work of an engine in one window.
struct Demand {
  int64_t prompt_tokens = 0, answer_tokens = 0, num_prompts = 0;
  int64_t tokens() const { return prompt_tokens + answer_tokens; }
};

Demand get_demand(const PlanRequest& request) {
  const int64_t answer = request.generation.max_new_tokens;
  // A sample is a prompt and an answer: the longest prompt leaves space for an answer, up to half
  // of the sample.
  return {.prompt_tokens = std::max(request.sample_tokens - answer, request.sample_tokens / 2),
          .answer_tokens = answer,
          .num_prompts = request.window_samples()};
}

int64_t cache_bytes_per_token(const PlanRequest& request) {
  const TextDescription& text = request.model.text;
  return text.num_layers() * 2 * text.num_key_value_heads * text.head_dim * request.value_bytes;
}

int64_t sample_patches(const PlanRequest& request) {
  return static_cast<int64_t>(static_cast<double>(request.sample_tokens) * request.visual_share) *
         request.model.vision.merge_area();
}

// Copies of the matrices in the CPU kernels' layout: every Linear, the head, the patch embedding.
int64_t packed_bytes(const PlanRequest& request) {
  const VisionDescription& vision = request.model.vision;
  int64_t num_values = vision.hidden_size * vision.patch_width();
  for (const LinearDescription& linear : request.model.linears())
    num_values += linear.num_outputs * linear.num_inputs;
  return num_values * request.value_bytes;
}

// Activations of a pass without a graph: a few times the widest layer.
int64_t pass_bytes(const PlanRequest& request, int64_t num_rows, int64_t value_bytes) {
  const TextDescription& text = request.model.text;
  const int64_t heads =
      (2 * text.num_attention_heads + 2 * text.num_key_value_heads) * text.head_dim;
  return num_rows * (4 * text.hidden_size + 3 * text.intermediate_size + heads) * value_bytes;
}

int64_t image_pass_bytes(const PlanRequest& request, int64_t num_patches, int64_t value_bytes) {
  const VisionDescription& vision = request.model.vision;
  const int64_t width = std::max(vision.patch_width(), vision.intermediate_size) +
                        9 * vision.hidden_size + vision.intermediate_size;
  return num_patches * width * value_bytes;
}

// Image features waiting for their prompts, float32 on the host.
int64_t feature_bytes(const PlanRequest& request, int64_t num_prompts) {
  const VisionDescription& vision = request.model.vision;
  const auto num_features = static_cast<int64_t>(1 + vision.deepstack_mergers.size());
  return num_prompts * sample_patches(request) / vision.merge_area() *
         request.model.text.hidden_size * num_features * kFloatBytes;
}

NamedBytes native_memory(const PlanRequest& request, const TrainedParameters& trained,
                         int64_t free_bytes) {
  const Demand demand = get_demand(request);
  const bool on_gpu = request.device.on_gpu;
  const NativeSettings& native = request.generation.native;
  const int64_t num_live = std::min<int64_t>(native.max_num_seqs, demand.num_prompts);
  const std::vector<int64_t> prompt_lens(static_cast<size_t>(demand.num_prompts),
                                         demand.prompt_tokens);
  const int64_t block_bytes = native.block_len * cache_bytes_per_token(request);
  const int64_t num_blocks = num_cache_blocks({.prompt_lens = prompt_lens,
                                               .max_new_tokens = demand.answer_tokens,
                                               .block_bytes = block_bytes},
                                              native, std::max<int64_t>(0, free_bytes));
  NamedBytes bytes;
  if (!on_gpu) bytes.emplace_back("engine weights", packed_bytes(request));
  if (on_gpu && trained.num_adapted > 0)
    bytes.emplace_back("engine weights", trained.num_adapted * request.value_bytes);
  bytes.emplace_back("kv cache", num_blocks * block_bytes);
  const int64_t step_rows =
      std::max<int64_t>(on_gpu ? kStepRowsOnDevices : kStepRowsOnCpu, num_live);
  const int64_t rows = std::min(step_rows, num_live * demand.prompt_tokens);
  int64_t scratch = pass_bytes(request, rows, on_gpu ? request.value_bytes : kFloatBytes) +
                    num_live * request.model.text.vocab_size * 2 * kFloatBytes +
                    image_pass_bytes(request, sample_patches(request),
                                     on_gpu ? request.value_bytes : kFloatBytes);
  if (on_gpu) {
    // the mask of a prompt while it is built
    scratch += rows * demand.tokens() * (2 * kFloatBytes + request.value_bytes);
    // the gathered cache of a layer
    scratch += num_live * demand.tokens() * cache_bytes_per_token(request) /
               std::max<int64_t>(1, request.model.text.num_layers());
  } else {
    scratch += feature_bytes(request, num_live);
  }
  bytes.emplace_back("engine scratch", scratch);
  return bytes;
}

NamedBytes hf_memory(const PlanRequest& request, const TrainedParameters& trained) {
  const Demand demand = get_demand(request);
  const int64_t batch = std::min<int64_t>(request.generation.batch_size, demand.num_prompts);
  NamedBytes bytes;
  if (trained.num_adapted > 0)
    bytes.emplace_back("engine weights", trained.num_adapted * request.value_bytes);
  // A growing cache is copied into a larger one.
  bytes.emplace_back("kv cache", batch * (demand.tokens() + demand.prompt_tokens) *
                                     cache_bytes_per_token(request));
  const int64_t rows = batch * demand.prompt_tokens;
  const int64_t mask = rows * demand.prompt_tokens * (3 + 2 * kFloatBytes + request.value_bytes);
  bytes.emplace_back(
      "engine scratch",
      pass_bytes(request, rows, request.value_bytes) + mask +
          batch * request.model.text.vocab_size * 2 * kFloatBytes +
          image_pass_bytes(request, batch * sample_patches(request), request.value_bytes));
  return bytes;
}

}  // namespace

int64_t vllm_share(const PlanRequest& request) {
  if (request.backend != "vllm") return 0;
  return static_cast<int64_t>(request.vllm.gpu_memory_utilization *
                              static_cast<double>(request.device.memory_bytes));
}

NamedBytes engine_memory(const PlanRequest& request, const TrainedParameters& trained,
                         int64_t free_bytes) {
  if (request.backend == "vllm") return {{"vllm", vllm_share(request)}};
  if (request.backend == "native") return native_memory(request, trained, free_bytes);
  if (request.backend == "hf") return hf_memory(request, trained);
  return {};
}

}  // namespace rematch
