#include "tools/plan/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/host_memory.h"
#include "base/text.h"

namespace rematch {
namespace {

struct Remedy {
  const char* text;
  void (*apply)(PlanRequest&);  ///< changes nothing where it does not apply
};

// In the order in which they are tried: first those that do not change the result of training.
constexpr Remedy kRemedies[] = {
    {"set training.gradient_checkpointing: true",
     [](PlanRequest& r) { r.gradient_checkpointing = Checkpointing::kOn; }},
    {"set vllm.sleep_level: 1",
     [](PlanRequest& r) {
       if (r.vllm.sleep_level_on(r.device.on_gpu) == 0) r.vllm.sleep_level = 1;
     }},
    {"set offload.enabled, offload_model and offload_optimizer: true",
     [](PlanRequest& r) { r.offload = {.enabled = true, .model = true, .optimizer = true}; }},
    {"set rollout_backend: native",
     [](PlanRequest& r) {
       if (r.backend == "vllm") r.backend = "native";
     }},
    {"train with zero_stage: 2",
     [](PlanRequest& r) { r.device.zero_stage = std::max(r.device.zero_stage, 2); }},
    {"set training.per_device_train_batch_size: 1, with more gradient_accumulation_steps",
     [](PlanRequest& r) {
       if (r.pack.enabled) return;
       r.batches.gradient_accumulation_steps *=
           std::exchange(r.batches.per_device_train_batch_size, 1);
     }},
    {"set model.torch_dtype: bfloat16", [](PlanRequest& r) { r.value_bytes = 2; }},
    {"freeze the vision tower (tuner.freeze_vit: true)",
     [](PlanRequest& r) {
       if (!r.tuner.freeze.llm) r.tuner.freeze.vit = true;
     }},
    {"train an adapter (tuner.train_type: lora)",
     [](PlanRequest& r) { r.tuner.train_type = TrainType::kLora; }},
    {"train with zero_stage: 3",
     [](PlanRequest& r) {
       if (r.tuner.train_type == TrainType::kLora && !r.four_bit &&
           (r.backend.empty() || r.backend == "vllm"))
         r.device.zero_stage = 3;
     }},
    {"set model.load_in_4bit: true",
     [](PlanRequest& r) {
       if (r.tuner.train_type == TrainType::kLora && !r.four_bit && r.backend != "vllm" &&
           r.device.zero_stage < 3)
         r.four_bit = FourBitSettings{};
     }},
};

std::string peak_text(const MemoryPlan& plan) {
  return fmt::format("{} at most, {}", gib_text(plan.peak_bytes),
                     plan.fits ? "which fits" : "still too much");
}

PlanRequest with_all(PlanRequest request, const std::vector<const Remedy*>& chosen,
                     const Remedy* but = nullptr) {
  for (const Remedy* remedy : chosen) {
    if (remedy != but) remedy->apply(request);
  }
  return request;
}

// Those that help, in order, until it fits; then the last ones, which change most, go first where
// the others are enough.
std::vector<const Remedy*> combine(const PlanRequest& request) {
  std::vector<const Remedy*> chosen;
  MemoryPlan sum = make_plan(request);
  for (const Remedy& remedy : kRemedies) {
    if (sum.fits) break;
    PlanRequest next = with_all(request, chosen);
    remedy.apply(next);
    MemoryPlan changed = make_plan(next);
    if (changed.peak_bytes >= sum.peak_bytes) continue;
    sum = std::move(changed);
    chosen.push_back(&remedy);
  }
  for (size_t i = chosen.size(); sum.fits && i-- > 0;) {
    const auto at = chosen.begin() + i;
    if (make_plan(with_all(request, chosen, *at)).fits) chosen.erase(at);
  }
  return chosen;
}

// Lists every remedy that is enough alone; if none is, combines as few as possible.
void try_remedies(const PlanRequest& request, Strings& lines) {
  for (const Remedy& remedy : kRemedies) {
    PlanRequest alone = request;
    remedy.apply(alone);
    const MemoryPlan changed = make_plan(alone);
    if (changed.fits) lines.push_back(fmt::format("{}: {}", remedy.text, peak_text(changed)));
  }
  if (!lines.empty()) return;
  const std::vector<const Remedy*> chosen = combine(request);
  if (chosen.empty()) return;
  const PlanRequest together = with_all(request, chosen);
  const MemoryPlan sum = make_plan(together);
  Strings texts;
  for (const Remedy* remedy : chosen) texts.emplace_back(remedy->text);
  lines.push_back(fmt::format("together: {}: {}", join(texts, "; "), peak_text(sum)));
  const int64_t tokens = sum.fits ? 0 : largest_row(together);
  if (tokens > 0)
    lines.push_back(
        fmt::format("and then samples of at most {} tokens (global_max_length)", tokens));
}

// The fastest checkpointing that fits, if it is faster.
Strings faster_checkpointing(PlanRequest request) {
  const Checkpointing now = request.gradient_checkpointing;
  for (const Checkpointing faster : {Checkpointing::kOff, Checkpointing::kSelective}) {
    if (faster == now) break;
    request.gradient_checkpointing = faster;
    if (const MemoryPlan plan = make_plan(request); plan.fits)
      return {fmt::format("for speed set training.gradient_checkpointing: {}: {}", name_of(faster),
                          peak_text(plan))};
  }
  return {};
}

}  // namespace

std::string gib_text(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kBytesPerGib);
}

std::string count_text(int64_t count) {
  return count >= 1'000'000'000 ? fmt::format("{:.2f} B", static_cast<double>(count) / 1e9)
                                : fmt::format("{:.2f} M", static_cast<double>(count) / 1e6);
}

Strings make_advice(const PlanRequest& request, const MemoryPlan& plan) {
  if (plan.usable_bytes == 0) return {};
  if (plan.fits) return faster_checkpointing(request);
  Strings lines;
  if (const int64_t tokens = largest_row(request); tokens > 0) {
    lines.push_back(fmt::format("set global_max_length: {} or less instead of {}", tokens,
                                request.sample_tokens));
  }
  try_remedies(request, lines);
  if (plan.least_bytes > plan.usable_bytes) {
    lines.push_back(
        fmt::format("shorter rows are not enough: weights, optimizer and gradients alone are {}",
                    gib_text(plan.least_bytes)));
  }
  return lines;
}

}  // namespace rematch
