#include "tools/plan/advice.h"

#include <fmt/core.h>

#include <functional>

#include "base/error.h"
#include "base/host_memory.h"
#include "base/text.h"

namespace rematch {
namespace {

struct Remedy {
  std::string text;
  std::function<bool(const PlanRequest&)> applies;
  std::function<void(PlanRequest&)> apply;
};

// In the order in which they are tried: first those that do not change the result of training.
std::vector<Remedy> remedies() {
  return {
      {"set training.gradient_checkpointing: true",
       [](const PlanRequest& r) { return r.gradient_checkpointing != Checkpointing::kOn; },
       [](PlanRequest& r) { r.gradient_checkpointing = Checkpointing::kOn; }},
      {"set vllm.sleep_level: 1",
       [](const PlanRequest& r) {
         return r.backend == "vllm" && r.vllm.sleep_level_on(r.device.on_gpu) == 0;
       },
       [](PlanRequest& r) { r.vllm.sleep_level = 1; }},
      {"set offload.enabled, offload_model and offload_optimizer: true",
       [](const PlanRequest& r) {
         return r.backend == "vllm" && r.device.on_gpu &&
                !(r.offload.moves_model() && r.offload.moves_optimizer());
       },
       [](PlanRequest& r) { r.offload = {.enabled = true, .model = true, .optimizer = true}; }},
      {"set rollout_backend: native", [](const PlanRequest& r) { return r.backend == "vllm"; },
       [](PlanRequest& r) { r.backend = "native"; }},
      {"train with zero_stage: 2",
       [](const PlanRequest& r) { return r.device.num_ranks > 1 && r.device.zero_stage < 2; },
       [](PlanRequest& r) { r.device.zero_stage = 2; }},
      {"set training.per_device_train_batch_size: 1, with more gradient_accumulation_steps",
       [](const PlanRequest& r) {
         return !r.pack.enabled && r.batches.per_device_train_batch_size > 1;
       },
       [](PlanRequest& r) {
         r.batches.gradient_accumulation_steps *= r.batches.per_device_train_batch_size;
         r.batches.per_device_train_batch_size = 1;
       }},
      {"set model.torch_dtype: bfloat16", [](const PlanRequest& r) { return r.value_bytes == 4; },
       [](PlanRequest& r) { r.value_bytes = 2; }},
      {"freeze the vision tower (tuner.freeze_vit: true)",
       [](const PlanRequest& r) { return !r.tuner.freeze.vit && !r.tuner.freeze.llm; },
       [](PlanRequest& r) { r.tuner.freeze.vit = true; }},
      {"train an adapter (tuner.train_type: lora)",
       [](const PlanRequest& r) { return r.tuner.train_type == TrainType::kFull; },
       [](PlanRequest& r) { r.tuner.train_type = TrainType::kLora; }},
      {"keep the weights in 4 bits (model.load_in_4bit: true)",
       [](const PlanRequest& r) {
         return r.tuner.train_type == TrainType::kLora && !r.four_bit && r.backend != "vllm";
       },
       [](PlanRequest& r) { r.four_bit = FourBitSettings{}; }},
  };
}

std::string verdict(const MemoryPlan& plan) {
  return fmt::format("{} at most, {}", gib_text(plan.peak_bytes),
                     plan.fits ? "which fits" : "still too much");
}

/// The remedies in order, without those that the others make superfluous: the last ones, which
/// change most, go first.
std::vector<Remedy> drop_superfluous(const PlanRequest& request, std::vector<Remedy> chosen) {
  for (size_t left_out = chosen.size(); left_out-- > 0;) {
    PlanRequest without = request;
    bool all_apply = true;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i == left_out) continue;
      all_apply = all_apply && chosen[i].applies(without);
      chosen[i].apply(without);
    }
    if (all_apply && make_plan(without).fits)
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(left_out));
  }
  return chosen;
}

/// The peak with gradient checkpointing of a change that is enough without it; "" if no lower.
std::string checkpointed_text(PlanRequest request, const MemoryPlan& plan) {
  if (request.gradient_checkpointing == Checkpointing::kOn) return "";
  request.gradient_checkpointing = Checkpointing::kOn;
  const int64_t bytes = make_plan(request).peak_bytes;
  return bytes >= plan.peak_bytes
             ? ""
             : fmt::format(" ({} with training.gradient_checkpointing: true)", gib_text(bytes));
}

/// Memory of `selective` where `request` changes checkpointing to `true`; "" if it is too much.
std::string selective_text(PlanRequest request, const PlanRequest& before) {
  if (request.gradient_checkpointing == before.gradient_checkpointing) return "";
  request.gradient_checkpointing = Checkpointing::kSelective;
  const MemoryPlan plan = make_plan(request);
  return plan.fits ? fmt::format(" ({} with selective, which is faster)", gib_text(plan.peak_bytes))
                   : "";
}

// Lists every remedy that is enough alone; if none is, combines as few as possible.
void try_remedies(const PlanRequest& request, const MemoryPlan& plan,
                  std::vector<std::string>& lines) {
  PlanRequest together = request;
  int64_t peak_bytes = plan.peak_bytes;
  std::vector<Remedy> chosen;
  MemoryPlan sum = plan;
  for (const Remedy& remedy : remedies()) {
    if (remedy.applies(request)) {
      PlanRequest alone = request;
      remedy.apply(alone);
      const MemoryPlan changed = make_plan(alone);
      if (changed.fits)
        lines.push_back(fmt::format("{}: {}{}{}", remedy.text, verdict(changed),
                                    checkpointed_text(alone, changed),
                                    selective_text(alone, request)));
    }
    if (sum.fits || !remedy.applies(together)) continue;
    PlanRequest next = together;
    remedy.apply(next);
    const MemoryPlan changed = make_plan(next);
    if (changed.peak_bytes >= peak_bytes) continue;
    together = std::move(next);
    peak_bytes = changed.peak_bytes;
    chosen.push_back(remedy);
    sum = changed;
  }
  if (!lines.empty() || chosen.empty()) return;
  if (sum.fits) {
    chosen = drop_superfluous(request, std::move(chosen));
    together = request;
    for (const Remedy& remedy : chosen) remedy.apply(together);
    sum = make_plan(together);
  }
  std::vector<std::string> texts;
  for (const Remedy& remedy : chosen) texts.push_back(remedy.text);
  lines.push_back(fmt::format("together: {}: {}", join(texts, "; "), verdict(sum)));
  if (sum.fits) return;
  if (const int64_t tokens = largest_row(together); tokens > 0) {
    lines.push_back(
        fmt::format("and then samples of at most {} tokens (global_max_length)", tokens));
  }
}

}  // namespace

std::string gib_text(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kBytesPerGib);
}

std::string count_text(int64_t count) {
  return count >= 1'000'000'000 ? fmt::format("{:.2f} B", static_cast<double>(count) / 1e9)
                                : fmt::format("{:.2f} M", static_cast<double>(count) / 1e6);
}

std::vector<std::string> make_advice(const PlanRequest& request, const MemoryPlan& plan) {
  std::vector<std::string> lines;
  if (plan.fits) return lines;
  if (const int64_t tokens = largest_row(request); tokens > 0) {
    lines.push_back(fmt::format("set global_max_length: {} or less instead of {}", tokens,
                                request.sample_tokens));
  }
  try_remedies(request, plan, lines);
  const int64_t least = least_bytes(request);
  if (least > plan.usable_bytes) {
    lines.push_back(
        fmt::format("shorter rows are not enough: weights, optimizer and gradients alone are {}",
                    gib_text(least)));
  }
  return lines;
}

std::vector<PlanVariant> common_variants(const PlanRequest& request) {
  std::vector<PlanVariant> variants;
  for (const TrainType type : {TrainType::kFull, TrainType::kLora}) {
    for (const Checkpointing checkpointing : {Checkpointing::kOff, Checkpointing::kOn}) {
      PlanRequest changed = request;
      changed.tuner.train_type = type;
      changed.gradient_checkpointing = checkpointing;
      const std::string name =
          type == TrainType::kFull ? "full" : fmt::format("LoRA rank {}", changed.tuner.lora.rank);
      variants.push_back({checkpointing == Checkpointing::kOn ? name + ", checkpointing" : name,
                          std::move(changed)});
    }
  }
  if (!request.four_bit && request.backend != "vllm") {
    PlanRequest changed = variants.back().request;
    changed.four_bit = FourBitSettings{};
    variants.push_back({"  and weights in 4 bits", std::move(changed)});
  }
  // The adapter settings may match no module of this model, which is an error only with LoRA.
  std::erase_if(variants, [](const PlanVariant& variant) {
    try {
      trained_parameters(variant.request.model, variant.request.tuner, variant.request.four_bit);
      return false;
    } catch (const UserError&) {
      return true;
    }
  });
  return variants;
}

}  // namespace rematch
