#pragma once
#include <string>
#include <utility>
#include <vector>

#include "program/assembly/report.h"
#include "program/config/config.h"

namespace rematch {

/// Facts about a run by name: "model", "train_jsonl", …
using RunFacts = std::vector<std::pair<std::string, std::string>>;

/// Checks everything that a configuration names: device, rollout backend, every header of the
/// model, adapter targets, records and image headers of the data, lengths, the checkpoint to resume
/// from and the run directory. A failed check does not hide the others. Writes nothing. Cost:
/// linear in the data, plus one read of the resumed checkpoint.
/// @param device  value of --device.
/// @param num_ranks  ranks of the training, on one host
/// @param report  collects problems (ranks, devices and backends first) and warnings
RunFacts preflight(const ConfigResult& config, const std::string& device, int num_ranks,
                   Report& report);

}  // namespace rematch
