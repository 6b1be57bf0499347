#pragma once
#include <cstdint>
#include <string>

#include "base/settings/augment.h"
#include "base/settings/cadence.h"
#include "base/settings/data.h"
#include "base/settings/generation.h"
#include "base/settings/loss.h"
#include "base/settings/match.h"
#include "base/settings/model.h"
#include "base/settings/monitor.h"
#include "base/settings/optim.h"
#include "base/settings/output.h"
#include "base/settings/pack.h"
#include "base/settings/ranks.h"
#include "base/settings/schedule.h"
#include "base/settings/target.h"
#include "base/settings/tuner.h"
#include "base/settings/vllm.h"

namespace rematch {

/// The trainer of a configuration (`custom.trainer_variant`).
enum class TrainerVariant {
  kSft,              ///< stage 1: supervised on the full answer
  kRolloutMatching,  ///< stage 2: rollout, match, target
};
constexpr auto names_of(TrainerVariant) {
  return std::to_array<EnumName<TrainerVariant>>(
      {{TrainerVariant::kSft, "sft"}, {TrainerVariant::kRolloutMatching, "rollout_matching_sft"}});
}

/// All settings of a configuration, checked and resolved. Each part of the program gets only its
/// struct; assembly/ and cli/ see the whole. The initialisers ARE the defaults (for losses,
/// LossKey::fallback); program/config/keys_*.cc describes the keys that fill them.
struct Settings {
  TrainerVariant variant = TrainerVariant::kSft;
  uint64_t seed = 42;  ///< seed of all random numbers
  DdpBackend ddp_backend = DdpBackend::kAuto;
  int64_t ddp_bucket_cap_mb = 25;  ///< MiB of gradients sent in one message
  /// seconds to wait for a rank that makes no progress
  int64_t ddp_timeout = 1800;
  ModelSettings model;
  DataSettings data;
  AugmentSettings augment;  ///< for training samples only
  PromptSettings prompt;
  ImageSettings images;
  LoaderSettings loader;
  BatchSettings batches;
  TunerSettings tuner;
  OptimSettings optim;
  ScheduleSettings schedule;
  CadenceSettings cadence;
  CheckpointSettings checkpoints;
  EvaluationSettings evaluation;
  OutputSettings output;
  LossSettings losses;
  LossNormalization loss_normalization = LossNormalization::kWindow;
  /// the configuration has a rollout_matching section: stage 1 then evaluates rollouts too
  bool rollouts = false;
  /// `rollout_backend`: "vllm", "hf" or "native"; checked when the engine is created
  std::string backend = "vllm";
  GenerationSettings generation;
  VllmSettings vllm;
  MatchSettings match;
  TargetSettings target;
  PackSettings pack;
  RolloutBufferSettings rollout_buffer;  ///< stage 2 only
  OffloadSettings offload;
  MonitorSettings monitor;  ///< stage 2 only

  bool is_stage_2() const { return variant == TrainerVariant::kRolloutMatching; }
  /// True if a training evaluates on validation data.
  bool evaluates() const { return data.val_jsonl && cadence.eval_when != When::kNever; }
  /// Cap of a segment in tokens; 0 = none.
  int max_length() const { return static_cast<int>(model.global_max_length.value_or(0)); }
  bool operator==(const Settings&) const = default;
};

}  // namespace rematch
