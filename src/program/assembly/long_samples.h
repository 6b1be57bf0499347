#pragma once
#include "base/settings/settings.h"
#include "learn/data/dataset.h"
#include "learn/estep/answer/answer_format.h"
#include "model/text/prompt.h"
#include "model/vision/patches.h"
#include "program/assembly/report.h"

namespace rematch {

/// Inputs of the measurement besides the samples.
struct SampleEncoding {
  const PromptEncoder& prompts;
  const AnswerFormat& format;
  const PatchOptions& patches;
  AugmentSettings augment{};  ///< augmentation of training samples
};

/// Finds samples longer than `global_max_length` before a model is loaded (BEHAVIOUR 2.9), with a
/// progress bar. `template.truncation_strategy: delete` drops them from `dataset`. Without a cap
/// nothing is measured. In stage 2 it warns about samples that may exceed the cap with a long
/// rollout.
/// @return number of dropped samples
/// @throws UserError (data) that lists all of them with `raise`, or when none would be left;
/// Interrupted
int64_t settle_long_samples(Dataset& dataset, const Settings& settings,
                            const SampleEncoding& encoding, Report& report);

}  // namespace rematch
