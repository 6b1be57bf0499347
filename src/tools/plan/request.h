#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/settings/data.h"
#include "base/settings/generation.h"
#include "base/settings/model.h"
#include "base/settings/pack.h"
#include "base/settings/tuner.h"
#include "base/settings/vllm.h"
#include "model/families/description.h"
#include "tools/plan/row_memory.h"

namespace rematch {

/// The machine that a plan is made for.
struct PlanDevice {
  bool on_gpu = false;
  int64_t memory_bytes = 0;  ///< of one GPU, or of the host; 0 = unknown
  int num_ranks = 1;         ///< data-parallel ranks, one device each
  /// 0 none, 1 optimizer split over the ranks, 2 gradients too, 3 frozen weights too
  int zero_stage = 0;
  bool nccl = true;  ///< ranks on GPUs exchange gradients from GPU to GPU
};

/// Everything that determines the memory of a run.
struct PlanRequest {
  ModelDescription model;
  int64_t stored_value_bytes = 2;                ///< of a weight in the checkpoint files
  int64_t value_bytes = 2;                       ///< of a weight in training
  std::optional<FourBitSettings> four_bit = {};  ///< Linears in 4 bits; nullopt = none
  bool stored_in_4bit = false;                   ///< true: in the checkpoint files too
  PlanDevice device;
  Checkpointing gradient_checkpointing = Checkpointing::kOff;
  TunerSettings tuner;
  BatchSettings batches;
  PackSettings pack;
  bool exact_ranks = false;        ///< several ranks: gradients are sent after each row
  int m_steps = 1;                 ///< optimizer steps on a window
  std::string backend;             ///< of rollouts; empty = none
  bool trains_on_rollouts = true;  ///< false: stage 1, which only evaluates with them
  GenerationSettings generation;
  VllmSettings vllm;
  OffloadSettings offload;
  bool saves_state = true;       ///< checkpoints hold what a resume needs
  int64_t sample_tokens = 4096;  ///< longest sample; with packing also the length of a row
  double visual_share = 0.5;     ///< share of image pads among a row's tokens
  /// of this model; copies of a request share its measurements
  std::shared_ptr<RowMeter> rows = std::make_shared<RowMeter>();

  /// Tokens of the longest row; without packing a row is a micro-batch.
  int64_t row_tokens() const {
    return pack.enabled ? sample_tokens : sample_tokens * batches.per_device_train_batch_size;
  }
  /// Image pads among tokens.
  int64_t visual_tokens(int64_t tokens) const {
    return static_cast<int64_t>(static_cast<double>(tokens) * visual_share);
  }
  /// Samples of a window on one rank.
  int64_t window_samples() const {
    return static_cast<int64_t>(batches.per_device_train_batch_size) *
           batches.gradient_accumulation_steps;
  }
};

}  // namespace rematch
