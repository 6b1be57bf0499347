#pragma once

namespace rematch {

/// Parts of the program that keys switch on and that may not exist yet.
enum class Capability {
  kPacking,
  kRolloutBuffer,
  kOffload,
  kResume,
  kAdapters,
  kNativeEngine,
  kMonitorDump,
  kGradientCheckpointing,
  kBeamSearch,
  kCoordOffset,
  kPlainCoordinates,
};

/// A row of the ONE table of capabilities: building one means flipping `built`.
struct CapabilityRow {
  Capability id;
  bool built;
  const char* name;       ///< its name in errors
  const char* meanwhile;  ///< what to use until it exists
};

inline constexpr CapabilityRow kCapabilities[] = {
    {Capability::kPacking, true, "post-rollout packing",
     "set `training.packing: false`; a row is then a micro-batch"},
    {Capability::kRolloutBuffer, true, "the rollout buffer",
     "set `rollout_buffer.enabled: false` and `m_steps: 1`"},
    {Capability::kOffload, true, "offload around rollouts",
     "set `offload.enabled: false`; lower `vllm.gpu_memory_utilization` to save memory"},
    {Capability::kResume, true, "resume from a checkpoint",
     "remove the key; to continue from the weights alone, set `model.model` to the checkpoint "
     "directory"},
    {Capability::kAdapters, true, "LoRA and DoRA",
     "set `tuner.train_type: full`; `tuner.freeze_*` saves memory"},
    {Capability::kNativeEngine, true, "the native rollout engine", "set `rollout_backend: hf`"},
    {Capability::kMonitorDump, true, "the monitor dump",
     "set `monitor_dump.enabled: false`; `rematch rollout CONFIG` writes every sample's rollout, "
     "parse and match"},
    {Capability::kGradientCheckpointing, true, "gradient checkpointing",
     "set `training.gradient_checkpointing: false`; lower `training.per_device_train_batch_size` "
     "to save memory"},
    {Capability::kBeamSearch, false, "beam search", "set `decode_mode: greedy`"},
    {Capability::kCoordOffset, false, "the coordinate-offset adapter",
     "set `custom.coord_offset.enabled: false` and `training.optimizer: multimodal`"},
    {Capability::kPlainCoordinates, false, "coordinates without coord tokens",
     "set `custom.coord_tokens.enabled: true`"},
};

/// The row of a capability.
constexpr const CapabilityRow& capability(Capability id) {
  for (const CapabilityRow& row : kCapabilities) {
    if (row.id == id) return row;
  }
  return kCapabilities[0];
}

}  // namespace rematch
