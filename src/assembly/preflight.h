#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace rematch {

/// What `train` would find out before its first step, without loading the model.
struct Preflight {
  /// what it would refuse; ranks, devices and backends first
  std::vector<std::pair<ErrorKind, Problem>> problems;
  std::vector<std::string> warnings;  ///< beside those of the configuration
  /// what is there: "model", "train_jsonl", …
  std::vector<std::pair<std::string, std::string>> facts;
};

/// Checks a configuration against what it names: device, rollout backend, every header of the
/// model, adapter targets, records and image headers of the data, lengths, the checkpoint to resume
/// from and the run directory. One part that fails does not hide the others. Writes nothing. Cost:
/// linear in the data; one read of a checkpoint that is resumed.
/// @param device  value of --device. @param num_ranks  that will train, on one host
Preflight preflight(const ConfigResult& config, const std::string& device, int num_ranks);

}  // namespace rematch
