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

/// Which trainer a configuration asks for (`custom.trainer_variant`).
enum class TrainerVariant {
  kSft,              ///< stage 1: supervised on the full answer
  kRolloutMatching,  ///< stage 2: rollout, match, target
};
inline constexpr EnumName<TrainerVariant> kTrainerVariants[] = {
    {TrainerVariant::kSft, "sft"}, {TrainerVariant::kRolloutMatching, "rollout_matching_sft"}};
constexpr std::span<const EnumName<TrainerVariant>> names_of(TrainerVariant) {
  return kTrainerVariants;
}

/// Everything a configuration says, checked and resolved. Each part takes its own struct; only
/// assembly/ and cli/ see the whole. The initialisers of the structs ARE the defaults (of losses,
/// LossKey::fallback); the keys that fill them are described in config/keys_*.cc.
struct Settings {
  TrainerVariant variant = TrainerVariant::kSft;
  uint64_t seed = 42;  ///< of all random numbers
  DdpBackend ddp_backend = DdpBackend::kGloo;
  int64_t ddp_bucket_cap_mb = 25;  ///< MiB of gradients that ranks send in one message
  /// seconds to wait for a rank that is alive but makes no progress
  int64_t ddp_timeout = 1800;
  ModelSettings model;
  DataSettings data;
  AugmentSettings augment;  ///< of training samples, never of evaluation
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
  /// the configuration has a rollout_matching section: stage 1 then measures rollouts too
  bool rollouts = false;
  /// `rollout_backend`: "vllm", "hf", "native"; whether it exists is checked when it is created
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
