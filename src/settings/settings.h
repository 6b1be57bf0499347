#pragma once
#include <cstdint>
#include <string>

#include "settings/augment.h"
#include "settings/cadence.h"
#include "settings/data.h"
#include "settings/generation.h"
#include "settings/loss.h"
#include "settings/match.h"
#include "settings/model.h"
#include "settings/monitor.h"
#include "settings/optim.h"
#include "settings/output.h"
#include "settings/pack.h"
#include "settings/ranks.h"
#include "settings/schedule.h"
#include "settings/target.h"
#include "settings/tuner.h"
#include "settings/vllm.h"

namespace rematch {

/// The trainer of a configuration (`custom.trainer_variant`).
enum class TrainerVariant {
  kSft,              ///< stage 1: supervised on the full answer
  kRolloutMatching,  ///< stage 2: rollout, match, target
};
inline constexpr EnumName<TrainerVariant> kTrainerVariants[] = {
    {TrainerVariant::kSft, "sft"}, {TrainerVariant::kRolloutMatching, "rollout_matching_sft"}};
constexpr std::span<const EnumName<TrainerVariant>> names_of(TrainerVariant) {
  return kTrainerVariants;
}

/// All settings of a configuration, checked and resolved. Each part of the program gets only its
/// struct; assembly/ and cli/ see the whole. The initialisers ARE the defaults (for losses,
/// LossKey::fallback); config/keys_*.cc describes the keys that fill them.
struct Settings {
  TrainerVariant variant = TrainerVariant::kSft;
  uint64_t seed = 42;  ///< seed of all random numbers
  DdpBackend ddp_backend = DdpBackend::kGloo;
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
  bool operator==(const Settings&) const = default;
};

}  // namespace rematch
