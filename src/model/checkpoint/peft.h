#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/settings/model.h"
#include "model/checkpoint/peft_targets.h"
#include "model/checkpoint/safetensors.h"

namespace rematch {

/// File of an adapter directory with what adapter_config.json has no place for: PEFT warns about
/// keys that it does not know, and older releases refuse them.
inline constexpr const char* kAdapterBaseFile = "rematch_base.json";

/// The base model that an adapter was trained on, as rematch_base.json records it.
struct BaseRecord {
  std::string weights_hash = {};  ///< of stored_weights_hash(); empty = not recorded
  std::string config_hash = {};   ///< AdapterBase::config_hash; empty in files of older versions
  /// how `model.load_in_4bit` packed it; nullopt = it was used as stored
  std::optional<FourBitSettings> packed = {};
};

/// The supported fields of adapter_config.json, and rematch_base.json.
struct PeftConfig {
  std::string base_model;  ///< `base_model_name_or_path`; may be empty
  BaseRecord base = {};
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  bool use_dora = false;
  PeftTargets targets;
};

/// A PEFT adapter directory in memory (MODEL 9).
struct PeftAdapter {
  PeftConfig config;
  /// names as in the file, without the prefix `base_model.model.`
  std::vector<TensorEntry> tensors;
};

/// True if the directory contains an adapter and no model.
bool is_adapter_dir(const std::string& directory);

/// Reads a directory written by PEFT or ms-swift. Tensors keep their stored dtype.
/// @throws UserError (environment) if it does not exist; (config) for a directory without an
/// adapter; (data) for another kind of adapter, an unsupported setting (which it names), unknown
/// keys and tensor names without PEFT's prefix
PeftAdapter read_peft_adapter(const std::string& directory);

/// The base model that an adapter names.
/// @param directory  of the adapter
/// @throws UserError (config) if it names none
std::string named_base_model(const PeftAdapter& adapter, const std::string& directory);

/// Writes adapter_model.safetensors and adapter_config.json in PEFT's format, and rematch_base.json
/// if the hash is known. Not atomic: write inside a StagedDirectory.
/// @throws UserError (environment)
void write_peft_adapter(const std::string& directory, const PeftAdapter& adapter);

}  // namespace rematch
