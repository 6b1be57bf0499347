#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings/data.h"
#include "base/settings/pack.h"
#include "base/settings/tuner.h"
#include "model/checkpoint/image_area.h"
#include "model/model.h"

namespace rematch {

/// The identity of a run: a resumed run must have the same `fixed` values; a difference in
/// `settings` only gives a warning. Pairs of a name that users know, mostly a configuration key,
/// and its value as text.
struct Fingerprint {
  std::vector<std::pair<std::string, std::string>> fixed;
  std::vector<std::pair<std::string, std::string>> settings;

  bool operator==(const Fingerprint&) const = default;

  friend void fields(auto& wire, Fingerprint& print) { wire(print.fixed, print.settings); }
};

/// The inputs of a fingerprint. All of them are fixed, except `settings` and the prompt files of
/// the model directory.
struct FingerprintInput {
  /// `model.model`: the contents of its config.json and tokenizer.json count, not its path
  std::string model_dir;
  /// if the configuration sets it; a checkpoint's processor files then contain it
  std::optional<ImageArea> image_area;
  std::vector<NamedParameter> parameters;
  /// Weights of the base model of an adapter. Their values count, because no checkpoint of the run
  /// contains them. Cost: one pass over them.
  std::vector<NamedParameter> base_parameters;
  std::string dataset_hash;  ///< Dataset::content_hash()
  int64_t num_samples = 0;   ///< after train_sample_limit
  /// samples dropped as longer than global_max_length; counts if there are any
  int64_t num_long_dropped = 0;
  /// `custom.answer_format`, resolved; counts if it is not kDefaultAnswerFormat
  std::string answer_format = {};
  int world_size = 1;
  BatchSettings batches;
  uint64_t seed = 42;
  std::string trainer_variant;
  PackSettings pack;  ///< its scope, like the next two, counts only with packing
  int packing_length = 0;
  std::string stream_rows;  ///< StreamPacking::fingerprint() in stage 1 with packing, else empty
  int64_t m_steps = 1;      ///< optimizer steps per window; the number of epochs depends on it
  FreezeSettings freeze;
  /// the effective configuration, key → value; may include fixed keys
  std::vector<std::pair<std::string, std::string>> settings;
};

/// @throws UserError (environment) if the model's config.json or tokenizer.json cannot be read
Fingerprint make_fingerprint(const FingerprintInput& input);

/// False for keys about logging, saving and the like, which may differ between ranks and in resumed
/// runs.
bool affects_training(const std::string& key);

/// Compares the fingerprint of a checkpoint with that of the run that resumes from it. The number
/// of ranks and the accumulation steps may differ if their product does not: the windows are the
/// same.
/// @param checkpoint  its path, for errors
/// @return a warning "KEY: old → new" for each different setting that affects training
/// @throws UserError (data) with one problem for each different fixed value
Strings compare_fingerprints(const Fingerprint& saved, const Fingerprint& now,
                             const std::string& checkpoint);

/// compare_fingerprints() before a model is loaded: ignores the parameters and their dtype.
/// @param now  without parameters
void compare_known_values(Fingerprint saved, Fingerprint now, const std::string& checkpoint);

}  // namespace rematch
