#pragma once
#include <string>

#include "program/assembly/open.h"

namespace rematch {

/// Finds samples longer than `global_max_length` before a model is loaded (BEHAVIOUR 2.9), with a
/// progress bar. `template.truncation_strategy: delete` drops them from `dataset`. Without a cap
/// nothing is measured. In stage 2 it warns about samples that may exceed the cap with a long
/// rollout.
/// @param augment  augmentation of training samples
/// @return number of dropped samples
/// @throws UserError (data) that lists all of them with `raise`, or when none would be left;
/// Interrupted
int64_t settle_long_samples(Dataset& dataset, const Settings& settings, const ModelFiles& files,
                            const AugmentSettings& augment, Report& report);

/// Compares the longest true answer of a data set with `max_new_tokens`, which ends rollouts,
/// evaluations and, through rematch_prompt.json of the checkpoints, `predict`; and its longest
/// prompt with the cache of the `native` engine. Reads no image.
/// @return a warning that names a value that holds it, a quarter to spare; empty if it fits
/// @throws UserError (config) as check_native_cache()
std::string answer_budget_warning(const Dataset& data, const Settings& settings,
                                  const ModelFiles& files, const at::Device& device);

}  // namespace rematch
