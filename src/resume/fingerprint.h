#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/image_area.h"
#include "model/model.h"

namespace rematch {

/// The identity of a run: resuming requires all of `fixed` to agree; a difference in `settings` is
/// legal and gives a warning. Pairs of a name that users know, mostly a configuration key, and its
/// value as text.
struct Fingerprint {
  std::vector<std::pair<std::string, std::string>> fixed;
  std::vector<std::pair<std::string, std::string>> settings;

  bool operator==(const Fingerprint&) const = default;
};

/// The inputs of a fingerprint. All of them are fixed, except `settings` and the prompt files of
/// the model directory.
struct FingerprintInput {
  /// `model.model`: its config.json and tokenizer.json count by content, not by path
  std::string model_dir;
  /// of images when the configuration sets it: a checkpoint's processor files then hold it
  std::optional<ImageArea> image_area;
  std::vector<NamedParameter> parameters;
  /// Weights that an adapter is based on: they count by their values, because no checkpoint of the
  /// run contains them. Cost: one pass over them.
  std::vector<NamedParameter> base_parameters;
  std::string dataset_hash;  ///< Dataset::content_hash()
  int64_t num_samples = 0;   ///< after train_sample_limit
  /// samples dropped as longer than global_max_length; counts when there are any
  int64_t num_long_dropped = 0;
  /// `custom.answer_format`, resolved; counts when it is not kDefaultAnswerFormat
  std::string answer_format = {};
  int world_size = 1;
  int per_device_train_batch_size = 1;
  int gradient_accumulation_steps = 1;
  bool drop_last = false;
  uint64_t seed = 42;
  std::string trainer_variant;
  bool packing = false;
  std::string pack_scope;  ///< "micro" or "window"; counts with packing only, as the next
  int packing_length = 0;
  std::string stream_rows;  ///< StreamPacking::fingerprint() in stage 1 with packing, else empty
  int64_t m_steps = 1;      ///< optimizer steps of a full window: the count of epochs depends on it
  bool freeze_llm = false, freeze_vit = false, freeze_aligner = false;
  /// the effective configuration, key → value; may include fixed ones
  std::vector<std::pair<std::string, std::string>> settings;
};

/// @throws UserError (environment) when the model's config.json or tokenizer.json cannot be read
Fingerprint make_fingerprint(const FingerprintInput& input);

/// False for keys that say where a run logs, when it saves and the like: ranks and resumed runs may
/// differ in them.
bool affects_training(const std::string& key);

/// Compares the fingerprint of a checkpoint with that of the run that resumes from it.
/// @return a warning for each setting that differs, "KEY: old → new"; keys that do not affect
/// training (where to log, when to save, …)
///         are left out
/// Number of ranks and accumulation steps may differ when their product does not: the windows are
/// the same.
/// @throws UserError (data) with one problem for each fixed value that differs, old and new. @param
/// checkpoint  its path, for the error
std::vector<std::string> compare_fingerprints(const Fingerprint& saved, const Fingerprint& now,
                                              const std::string& checkpoint);

/// The same for what is known before a model is loaded: all but the parameters and what follows
/// from them. @param now  without parameters
void compare_known_values(Fingerprint saved, Fingerprint now, const std::string& checkpoint);

}  // namespace rematch
