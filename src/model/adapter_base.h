#pragma once
#include <string>

#include "model/checkpoint/hf_dir.h"
#include "model/checkpoint/peft.h"

namespace rematch {

// An adapter works with the weights that it was trained on and with no others. Its directory names
// them by a hash, because a path may lead to other weights later.

/// Hash of all stored weights: names, dtypes, shapes and values. The same for any number of shards.
/// Cost: one pass over the weights files; under a second for 8 GB that were just read.
std::string stored_weights_hash(const HfDir& weights);

/// The base model as an adapter directory records it.
struct AdapterBase {
  std::string
      path;  ///< without links; relative if it lies in the current directory and was given so
  std::string weights_hash;
  std::string config_hash;  ///< of what config.json says of the model, without versions and dtypes
};

/// @throws UserError as HfDir::open
AdapterBase describe_base(const std::string& model_dir);

/// An adapter and the base model that a command is about to use it with.
struct AdapterUse {
  const PeftAdapter& adapter;
  std::string adapter_dir;
  std::string base_dir;
  bool force_base = false;  ///< accept other weights (`--force-base`)
};

/// Compares the base model's weights and config.json with those that the adapter was trained on.
/// @return a text for the user: other weights were forced, or the adapter records no hash; else ""
/// @throws UserError (data) for others, unless `force_base`
std::string check_adapter_base(const AdapterUse& use);

}  // namespace rematch
