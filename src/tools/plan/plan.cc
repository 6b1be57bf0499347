#include "tools/plan/plan.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "learn/mstep/loss/loss_term.h"
#include "model/checkpoint/hf_dir.h"
#include "model/feature_cache.h"
#include "model/vision/pixel_store.h"

namespace rematch {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kChunkCopies = 4;  // of a chunk's logits, see LossOptions::chunk_bytes
// A CUDA context with its libraries and cuBLAS's workspaces (torch takes 32 MiB for each stream on
// an H100); an estimate.
constexpr int64_t kRuntimeOnGpu = 768 * kMib;
// An estimate, not measured: up to 32 channels, each with buffers for its three protocols,
// for a neighbour in a ring and one in a tree. In use: 0.3 to 1 GiB.
constexpr int64_t kNcclChannels = 32, kNcclPeers = 2,
                  kNcclChannelBytes = 8 * 512 * 8 * 16 + 120 * 640 * 8 * 8 + 4 * kMib;
constexpr int64_t kRuntimeOnCpu = 190 * kMib;  // the program and libtorch; measured
// Messages in flight and the largest one (learn/mstep/rank_gradients.cc).
constexpr int64_t kMessages = 2, kLargestMessage = 25 * kMib;
constexpr double kUsable = 0.94;  // the rest: fragmentation, other programs

// Bytes of the training state on one rank.
class State {
 public:
  explicit State(const PlanRequest& request)
      : request_(request),
        trained_(trained_parameters(request.model, request.tuner, request.four_bit)) {}

  const TrainedParameters& trained() const { return trained_; }
  int64_t weights() const {
    return base_bytes(request_.value_bytes) + trained_.packed_bytes +
           trained_.num_adapter * kFloatBytes - absent_weights();
  }
  /// Frozen weights that only other ranks hold (engine/ranks/frozen_shards.h).
  int64_t absent_weights() const {
    if (request_.device.zero_stage < 3 || request_.device.num_ranks == 1) return 0;
    const int64_t all = trained_.num_in_blocks * request_.value_bytes;
    return std::max<int64_t>(0, all - share(all) - trained_.num_whole * request_.value_bytes);
  }
  /// Pages of the checkpoint files.
  int64_t stored() const {
    return request_.stored_in_4bit ? base_bytes(request_.stored_value_bytes) + trained_.packed_bytes
                                   : trained_.counts.total * request_.stored_value_bytes;
  }
  int64_t masters() const {
    return request_.value_bytes == kFloatBytes ? 0 : split(trained_.num_full * kFloatBytes, 1);
  }
  int64_t moments() const { return split(trained_.num_values() * 2 * kFloatBytes, 1); }
  /// Gradients of all trained parameters, kept from row to row.
  int64_t gradients() const { return split(trained_.num_values() * kFloatBytes, 2); }
  int64_t text_gradients() const { return split(trained_.num_text * kFloatBytes, 2); }
  /// With several ranks, while rows are summed: the sums of owned parameters if gradients are sent
  /// after each row (learn/mstep/make_gradient_sum.h), else those of all parameters.
  int64_t row_sums() const {
    const int64_t all = trained_.num_values() * kFloatBytes;
    return sends_rows() ? share(all) : all;
  }
  /// Gradients of a row that wait for those of other owners: a layer's largest matrix for each.
  int64_t waiting_gradients() const {
    const TextDescription& text = request_.model.text;
    return sends_rows() ? kFloatBytes * std::min(trained_.num_values(), request_.device.num_ranks *
                                                                            text.hidden_size *
                                                                            text.intermediate_size)
                        : 0;
  }
  /// Largest gradient of a row and its float32 copy.
  int64_t largest_gradient() const {
    return trained_.trains_head || trained_.trains_embedding
               ? head_values_ * (request_.value_bytes + kFloatBytes)
               : 0;
  }
  bool sends_rows() const {
    return request_.exact_ranks || (messages_on_gpu() && request_.device.zero_stage == 2);
  }
  bool messages_on_gpu() const { return request_.device.on_gpu && request_.device.nccl; }
  /// Buffers of NCCL from its first message on.
  int64_t nccl() const {
    return messages_on_gpu() && request_.device.num_ranks > 1
               ? kNcclChannels * kNcclPeers * kNcclChannelBytes
               : 0;
  }
  /// Gradients in flight between ranks: in a message of parameters that this rank owns it receives
  /// those of every other rank (learn/mstep/rank_gradients.h).
  int64_t messages() const {
    const int64_t bytes = trained_.num_values() * kFloatBytes,
                  num_others = request_.device.num_ranks - 1;
    return num_others * std::min(bytes, kMessages * kLargestMessage);
  }
  /// The head's gradient, summed over the chunks of a row.
  int64_t head_sum() const { return trained_.trains_head ? head_values_ * kFloatBytes : 0; }
  /// The head's gradient of one chunk, in bfloat16.
  int64_t head_extra() const {
    return trained_.trains_head && request_.value_bytes != kFloatBytes
               ? head_values_ * request_.value_bytes
               : 0;
  }
  /// The gradient of a tied embedding, before it is added to the head's.
  int64_t tied_extra() const {
    return trained_.trains_embedding && request_.model.tie_word_embeddings
               ? head_values_ * request_.value_bytes
               : 0;
  }

 private:
  /// Weights in full precision.
  int64_t base_bytes(int64_t value_bytes) const {
    return (trained_.counts.total - trained_.num_packed) * value_bytes;
  }
  int64_t split(int64_t bytes, int from_stage) const {
    return request_.device.zero_stage >= from_stage ? share(bytes) : bytes;
  }
  int64_t share(int64_t bytes) const {
    return (bytes + request_.device.num_ranks - 1) / request_.device.num_ranks;
  }

  const PlanRequest& request_;
  TrainedParameters trained_;
  int64_t head_values_ = request_.model.text.vocab_size * request_.model.text.hidden_size;
};

// Memory at the peak of the M-step: activations shrink while gradients grow.
struct MStepPeak {
  int64_t gradients = 0, activations = 0, head = 0;
  int64_t total() const { return gradients + activations + head; }
};

int64_t chunk_bytes(const PlanRequest& request) {
  const int64_t position = request.model.text.vocab_size * kFloatBytes;
  const LossOptions loss;
  const int64_t positions = std::clamp<int64_t>(
      (request.device.on_gpu ? loss.device_chunk_bytes : loss.chunk_bytes) / position, 1,
      std::min(loss.chunk_positions, std::max<int64_t>(1, request.row_tokens())));
  return kChunkCopies * positions * position;
}

MStepPeak m_step_peak(const PlanRequest& request, const State& state) {
  const int64_t tokens = request.row_tokens();
  const RowShape row{
      .num_tokens = tokens,
      .num_visual_tokens = request.visual_tokens(tokens),
      .is_packed = request.pack.enabled || request.batches.per_device_train_batch_size > 1};
  const RowMemory memory = request.rows->measure(request.model, state.trained(),
                                                 {.value_bytes = request.value_bytes,
                                                  .on_gpu = request.device.on_gpu,
                                                  .checkpointing = request.gradient_checkpointing,
                                                  .lora = request.tuner.lora,
                                                  .four_bit = request.four_bit},
                                                 row);
  // From a window's second row on, all gradients exist from the start.
  const bool is_sum = request.batches.gradient_accumulation_steps > 1 ||
                      (request.pack.enabled && request.window_samples() > 1);
  const bool alone = request.device.num_ranks == 1;
  const int64_t sum = !is_sum ? 0 : alone ? state.gradients() : state.row_sums();
  const int64_t all =
      alone ? state.gradients() : sum + state.largest_gradient() + state.waiting_gradients();
  const int64_t text = alone ? std::max(sum, state.text_gradients()) : all;
  const MStepPeak moments[] = {
      {sum, memory.vision + memory.text,
       state.head_sum() + state.head_extra() + chunk_bytes(request)},
      {sum, memory.vision + memory.text + memory.text_transient, state.head_sum()},
      {text, memory.vision + memory.vision_transient, state.tied_extra()},
      {all, 0, state.tied_extra()},
  };
  return *std::ranges::max_element(moments, {}, &MStepPeak::total);
}

// Pixels of the images of this window and the previous one, on the host.
int64_t pixel_bytes(const PlanRequest& request) {
  const VisionDescription& vision = request.model.vision;
  const double patches = static_cast<double>(request.sample_tokens) * request.visual_share *
                         static_cast<double>(vision.merge_area());
  const double bytes = 2.0 * static_cast<double>(request.window_samples()) * patches *
                       static_cast<double>(vision.patch_width() * kFloatBytes);
  return static_cast<int64_t>(
      std::min(bytes, static_cast<double>(PixelStore::Options{}.cache_bytes)));
}

int64_t feature_cache_bytes(const PlanRequest& request, const TrainedParameters& trained) {
  if (request.m_steps <= 1 || trained.reaches_mergers) return 0;
  const double tokens = static_cast<double>(request.sample_tokens) * request.visual_share *
                        static_cast<double>(request.window_samples());
  const auto width = static_cast<double>(request.model.text.hidden_size * request.value_bytes);
  const double bytes =
      tokens * width * static_cast<double>(1 + request.model.vision.deepstack_mergers.size());
  return static_cast<int64_t>(
      std::min(bytes, static_cast<double>(FeatureCache::Options{}.max_bytes)));
}

// The largest file of a checkpoint: each one is mapped for a moment to hash it.
int64_t saved_pages(const PlanRequest& request, const State& state) {
  if (request.device.on_gpu || !request.saves_state) return 0;
  const int64_t model =
      state.trained().num_adapter > 0 ? state.trained().num_adapter * kFloatBytes : state.weights();
  return std::max(std::min(model, SaveOptions{}.max_shard_bytes),
                  state.masters() + state.moments());
}

// The heap keeps freed memory for the next step (program/cli/allocator.cc), so the peak stays
// resident on the host.
int64_t freed_bytes(const std::vector<PlanPhase>& phases, int64_t live_bytes) {
  int64_t most = live_bytes;
  for (const PlanPhase& phase : phases) {
    if (phase.name != "load") most = std::max(most, phase.total());
  }
  return most - live_bytes;
}

PlanPhase with(std::string name, const NamedBytes& base,
               std::initializer_list<std::pair<std::string, int64_t>> more) {
  PlanPhase phase{.name = std::move(name), .bytes = base};
  for (const auto& entry : more) {
    if (entry.second > 0) phase.bytes.push_back(entry);
  }
  return phase;
}

// Bytes of page-locked memory for copies of these tensors: torch rounds each up to a power of two.
int64_t locked_bytes(const PlanRequest& request, const State& state, const std::string& name) {
  const bool is_weights = name == "weights";
  const int64_t value_bytes = is_weights ? request.value_bytes : kFloatBytes;
  const int64_t copies = name == "moments" ? 2 : 1;
  int64_t sum = 0;
  for (const ParameterSize& parameter : parameter_sizes(request.model)) {
    if (!is_weights && state.trained().full.count(parameter.name) == 0) continue;
    sum += copies * static_cast<int64_t>(
                        std::bit_ceil(static_cast<uint64_t>(parameter.num_values * value_bytes)));
  }
  return sum;
}

// Moves offloaded memory to the host while vLLM works; no effect with other backends.
void offload(PlanPhase& phase, const PlanRequest& request, const State& state) {
  if (request.backend != "vllm" || !request.device.on_gpu) return;
  for (auto& [name, bytes] : phase.bytes) {
    const bool moves = name == "weights" ? request.offload.moves_model() && !state.absent_weights()
                                         : (name == "masters" || name == "moments") &&
                                               request.offload.moves_optimizer();
    if (!moves) continue;
    phase.host_bytes.emplace_back(name, std::max(bytes, locked_bytes(request, state, name)));
    bytes = 0;
  }
  std::erase_if(phase.bytes, [](const auto& entry) { return entry.second == 0; });
}

// At sleep level 1 vLLM copies its weights into page-locked memory until it wakes.
void add_sleeping_weights(std::vector<PlanPhase>& phases, const PlanRequest& request,
                          const State& state) {
  if (request.backend != "vllm" || request.vllm.sleep_level_on(request.device.on_gpu) != 1) return;
  const int64_t num_parts =
      std::clamp(request.vllm.tensor_parallel_size, 1, std::max(1, request.device.num_ranks));
  for (PlanPhase& phase : phases) {
    if (phase.name == "m-step" || phase.name == "update" || phase.name == "save")
      phase.host_bytes.emplace_back("vllm weights",
                                    state.trained().counts.total * request.value_bytes / num_parts);
  }
}

std::vector<PlanPhase> make_phases(const PlanRequest& request, const State& state,
                                   int64_t usable_bytes) {
  const bool on_gpu = request.device.on_gpu;
  NamedBytes base{{"weights", state.weights()}};
  std::vector<PlanPhase> phases;
  // Files are mapped, and pages given back tensor by tensor; embedding and head are the largest.
  const TextDescription& text = request.model.text;
  const int64_t matrix = text.vocab_size * text.hidden_size * request.stored_value_bytes,
                largest = request.model.tie_word_embeddings ? matrix : 2 * matrix,
                pages = on_gpu ? 0 : std::min(state.stored(), largest);
  const std::pair<std::string, int64_t> runtime{"runtime", on_gpu ? kRuntimeOnGpu : kRuntimeOnCpu};
  phases.push_back(with("load", base, {{"checkpoint pages", pages}, runtime}));

  if (state.masters() > 0) base.emplace_back("masters", state.masters());
  base.emplace_back("moments", state.moments());
  if (state.nccl() > 0) base.emplace_back("nccl", state.nccl());
  const std::pair<std::string, int64_t> pixels{"pixels", on_gpu ? 0 : pixel_bytes(request)};
  if (!request.backend.empty()) {
    PlanPhase rollout =
        with(request.trains_on_rollouts ? "rollout" : "evaluate", base, {pixels, runtime});
    offload(rollout, request, state);
    const NamedBytes engine =
        engine_memory(request, state.trained(), usable_bytes - rollout.total());
    rollout.bytes.insert(rollout.bytes.end(), engine.begin(), engine.end());
    phases.push_back(std::move(rollout));
  }
  const std::pair<std::string, int64_t> vllm{
      "vllm", request.vllm.sleep_level_on(request.device.on_gpu) == 0 ? vllm_share(request) : 0};
  const bool host_messages = on_gpu && !state.messages_on_gpu();
  const std::pair<std::string, int64_t> messages{"messages", host_messages ? 0 : state.messages()};
  const MStepPeak peak = m_step_peak(request, state);
  phases.push_back(with("m-step", base,
                        {{"gradients", peak.gradients},
                         {"activations", peak.activations},
                         {"head", peak.head},
                         {"features", feature_cache_bytes(request, state.trained())},
                         messages,
                         vllm,
                         pixels,
                         runtime}));
  phases.push_back(
      with("update", base, {{"gradients", state.gradients()}, messages, vllm, pixels, runtime}));
  if (host_messages && state.messages() > 0) {
    for (auto phase = phases.end() - 2; phase != phases.end(); ++phase)
      phase->host_bytes.emplace_back("messages", state.messages());
  }
  PlanPhase save = with("save", base, {vllm, pixels, runtime});
  if (!on_gpu) save.bytes.emplace_back("freed memory", freed_bytes(phases, save.total()));
  if (const int64_t saved = saved_pages(request, state); saved > 0)
    save.bytes.emplace_back("checkpoint pages", saved);
  phases.push_back(std::move(save));
  add_sleeping_weights(phases, request, state);
  return phases;
}

// The largest number from 1 to `most` for which `fits` is true; 0 = none. `fits` is monotonic.
int64_t largest(int64_t most, const std::function<bool(int64_t)>& fits) {
  int64_t good = 0;
  for (int64_t bad = most + 1; bad - good > 1;) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

int64_t PlanPhase::total() const {
  int64_t sum = 0;
  for (const auto& [name, entry_bytes] : bytes) sum += entry_bytes;
  return sum;
}

const PlanPhase& MemoryPlan::phase(const std::string& name) const {
  const auto found = std::ranges::find(phases, name, &PlanPhase::name);
  REMATCH_CHECK(found != phases.end(), name);
  return *found;
}

MemoryPlan make_plan(const PlanRequest& request) {
  const State state(request);
  MemoryPlan plan{
      .parameters = state.trained().counts,
      .num_trainable = state.trained().num_values(),
      .usable_bytes =
          static_cast<int64_t>(kUsable * static_cast<double>(request.device.memory_bytes)),
      .least_bytes = state.weights() + state.masters() + state.moments() + state.gradients()};
  plan.phases = make_phases(request, state, plan.usable_bytes);
  for (const PlanPhase& phase : plan.phases) {
    if (phase.total() <= plan.peak_bytes) continue;
    plan.peak_bytes = phase.total();
    plan.peak_phase = phase.name;
  }
  plan.fits = plan.usable_bytes == 0 || plan.peak_bytes <= plan.usable_bytes;
  return plan;
}

int64_t largest_row(const PlanRequest& request) {
  constexpr int64_t kStep = 64, kMost = int64_t{1} << 20;
  return kStep * largest(kMost / kStep, [changed = PlanRequest(request)](int64_t steps) mutable {
           changed.sample_tokens = steps * kStep;
           return make_plan(changed).fits;
         });
}

int64_t largest_batch(const PlanRequest& request) {
  return largest(4096, [changed = PlanRequest(request)](int64_t samples) mutable {
    changed.batches.per_device_train_batch_size = static_cast<int>(samples);
    return make_plan(changed).fits;
  });
}

}  // namespace rematch
