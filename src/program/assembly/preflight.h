#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/config/config.h"

namespace rematch {

/// Findings of `train` before its first step, without loading the model.
struct Preflight {
  /// errors; ranks, devices and backends first
  std::vector<std::pair<ErrorKind, Problem>> problems;
  std::vector<std::string> warnings;  ///< without the warnings of the configuration
  /// facts by name: "model", "train_jsonl", …
  std::vector<std::pair<std::string, std::string>> facts;
};

/// Checks everything that a configuration names: device, rollout backend, every header of the
/// model, adapter targets, records and image headers of the data, lengths, the checkpoint to resume
/// from and the run directory. A failed check does not hide the others. Writes nothing. Cost:
/// linear in the data, plus one read of the resumed checkpoint.
/// @param device  value of --device.
/// @param num_ranks  ranks of the training, on one host
Preflight preflight(const ConfigResult& config, const std::string& device, int num_ranks);

}  // namespace rematch
