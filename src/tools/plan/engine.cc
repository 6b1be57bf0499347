#include "tools/plan/engine.h"

#include <algorithm>

#include "engine/rollout/native/cache_size.h"
#include "engine/rollout/native/cpu/states.h"
#include "engine/rollout/native/native_engine.h"
#include "engine/rollout/native/scheduler.h"
#include "model/nn/attention_choice.h"

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
  return text.num_attention_layers() * 2 * text.num_key_value_heads * text.head_dim *
         request.value_bytes;
}

// A sequence's recurrent state in all layers, whatever its length: the kernels of the CPU also keep
// the tokens of a chunk.
int64_t state_bytes(const PlanRequest& request) {
  const TextDescription& text = request.model.text;
  if (text.delta() == nullptr) return 0;
  if (!request.device.on_gpu && request.backend == "native" && !request.four_bit)
    return cpu_state_bytes(text);
  return text.num_delta_layers() * (text.delta()->state_size() * kFloatBytes +
                                    text.delta()->window_size() * request.value_bytes);
}

// Chunks of one layer while the states of several prompts are computed: five matrices of a chunk's
// tokens and about ten of tokens and head widths, float32.
int64_t chunk_scratch_bytes(const PlanRequest& request, int64_t num_sequences) {
  const DeltaDescription* delta = request.model.text.delta();
  if (delta == nullptr) return 0;
  constexpr int64_t kTokens = 64;  // model/nn/chunk_plan.h, model/nn/delta_rule.h
  const int64_t num_chunks = request.device.on_gpu ? 128 : 8;
  const int64_t per_token = 5 * kTokens + 5 * (delta->key_head_dim + delta->value_head_dim);
  return std::max(num_chunks, num_sequences) * delta->num_value_heads * kTokens * per_token *
         kFloatBytes;
}

int64_t sample_patches(const PlanRequest& request) {
  return request.visual_tokens(request.sample_tokens) * request.model.vision.merge_area();
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
  const int64_t attention =
      (2 * text.num_attention_heads + 2 * text.num_key_value_heads) * text.head_dim;
  const DeltaDescription* const delta = text.delta();
  const int64_t heads = delta == nullptr
                            ? attention
                            : std::max(attention + text.num_attention_heads * text.head_dim,
                                       delta->num_channels() + 2 * delta->value_width());
  return num_rows * (4 * text.hidden_size + 3 * text.intermediate_size + heads) * value_bytes;
}

int64_t image_pass_bytes(const PlanRequest& request, int64_t num_patches, int64_t value_bytes) {
  const VisionDescription& vision = request.model.vision;
  const int64_t width = std::max(vision.patch_width(), vision.intermediate_size) +
                        9 * vision.hidden_size + vision.intermediate_size;
  return num_patches * width * value_bytes;
}

// Image features of prompts.
int64_t feature_bytes(const PlanRequest& request, int64_t num_prompts, int64_t value_bytes) {
  const VisionDescription& vision = request.model.vision;
  const auto num_features = static_cast<int64_t>(1 + vision.deepstack_mergers.size());
  return num_prompts * sample_patches(request) / vision.merge_area() *
         request.model.text.hidden_size * num_features * value_bytes;
}

// A weight in 4 bits while it is used; a device makes it from float32 values of a part of it
// (model/nn/four_bit.cc).
int64_t dequantised_bytes(const PlanRequest& request, const TrainedParameters& trained) {
  constexpr int64_t kPart = int64_t{1} << 24, kPartBytes = 6;
  const int64_t part = request.device.on_gpu ? std::min(kPart, trained.largest_packed) : 0;
  return trained.largest_packed * request.value_bytes + part * kPartBytes;
}

// Tokens of a block of the cache.
int64_t block_len(const PlanRequest& request) {
  const AttentionCase attention{.device = request.device.on_gpu ? at::kCUDA : at::kCPU,
                                .dtype = request.value_bytes == 2 ? at::kBFloat16 : at::kFloat,
                                .head_dim = request.model.text.head_dim};
  const bool in_pages = choose_attention(attention, [](const at::Device&, int64_t) {
                          return true;
                        }) == AttentionKernel::kVarlen;
  return in_pages ? kPageTokens : request.generation.native.block_len;
}

NamedBytes native_memory(const PlanRequest& request, const TrainedParameters& trained,
                         int64_t free_bytes) {
  const Demand demand = get_demand(request);
  const bool on_gpu = request.device.on_gpu;
  const bool by_torch = on_gpu || request.four_bit;  // else by the kernels for CPUs
  const int64_t value_bytes = by_torch ? request.value_bytes : kFloatBytes;
  NativeSettings native = request.generation.native;
  native.block_len = static_cast<int>(block_len(request));
  const int64_t num_live = std::min<int64_t>(native.max_num_seqs, demand.num_prompts);
  const std::vector<int64_t> prompt_lens(static_cast<size_t>(demand.num_prompts),
                                         demand.prompt_tokens);
  const int64_t block_bytes = native.block_len * cache_bytes_per_token(request);
  const CacheDemand cache{.prompt_lens = prompt_lens,
                          .max_new_tokens = demand.answer_tokens,
                          .block_bytes = block_bytes,
                          .state_bytes = state_bytes(request)};
  const int64_t cache_bytes = std::max<int64_t>(0, free_bytes),
                num_states = num_cache_states(cache, native, cache_bytes),
                num_blocks = num_cache_blocks(cache, native, cache_bytes);
  NamedBytes bytes;
  if (!by_torch) bytes.emplace_back("engine weights", packed_bytes(request));
  if (by_torch && trained.num_adapted > 0)
    bytes.emplace_back("engine weights", trained.num_adapted * request.value_bytes);
  bytes.emplace_back("kv cache", num_blocks * block_bytes);
  if (num_states > 0) bytes.emplace_back("states", num_states * cache.state_bytes);
  const int64_t step_rows =
      std::max<int64_t>(on_gpu ? kStepRowsOnDevices : kStepRowsOnCpu, num_live);
  const int64_t rows = std::min(step_rows, num_live * demand.prompt_tokens);
  int64_t scratch = pass_bytes(request, rows, value_bytes) +
                    num_live * request.model.text.vocab_size * 2 * kFloatBytes +
                    image_pass_bytes(request, sample_patches(request), value_bytes) +
                    dequantised_bytes(request, trained);
  if (by_torch) {
    // the mask of a prompt while it is built
    scratch += rows * demand.tokens() * (2 * kFloatBytes + request.value_bytes);
    // the gathered cache of a layer
    scratch += num_live * demand.tokens() * cache_bytes_per_token(request) /
               std::max<int64_t>(1, request.model.text.num_attention_layers());
    scratch += chunk_scratch_bytes(request, num_live);
  }
  // Those of all running prompts, on a device those of the prompts in a step.
  const int64_t num_shown =
      on_gpu ? std::min(num_live, rows / std::max<int64_t>(1, demand.prompt_tokens) + 1) : num_live;
  scratch += feature_bytes(request, num_shown, value_bytes);
  bytes.emplace_back("engine scratch", scratch);
  if (on_gpu) {
    // the pool that all recorded decoding steps share: a step of the most sequences
    bytes.emplace_back("decode graphs",
                       pass_bytes(request, num_live, request.value_bytes) +
                           2 * num_live * request.model.text.vocab_size * kFloatBytes +
                           num_live * demand.tokens() * cache_bytes_per_token(request) /
                               std::max<int64_t>(1, request.model.text.num_layers()));
  }
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
  // Removing finished rows copies the states of the others.
  if (const int64_t states = state_bytes(request); states > 0)
    bytes.emplace_back("states", 2 * batch * states);
  const int64_t rows = batch * demand.prompt_tokens;
  const int64_t mask = rows * demand.prompt_tokens * (3 + 2 * kFloatBytes + request.value_bytes);
  bytes.emplace_back(
      "engine scratch",
      pass_bytes(request, rows, request.value_bytes) + mask + dequantised_bytes(request, trained) +
          chunk_scratch_bytes(request, batch) +
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

void check_native_cache(const PlanRequest& request, int64_t prompt_len, const std::string& who) {
  NativeSettings native = request.generation.native;
  if (request.backend != "native") return;
  native.block_len = static_cast<int>(block_len(request));
  const int64_t num_blocks =
      num_cache_blocks({.prompt_lens = {&prompt_len, 1},
                        .max_new_tokens = request.generation.max_new_tokens,
                        .block_bytes = native.block_len * cache_bytes_per_token(request),
                        .state_bytes = state_bytes(request)},
                       native, /*free_bytes=*/0);
  check_fits(prompt_len, request.generation.max_new_tokens, who,
             KvBlocks({.num_blocks = num_blocks, .block_len = native.block_len}));
}

}  // namespace rematch
