#pragma once
#include "data/dataset.h"
#include "estep/answer/answer_format.h"
#include "observe/terminal.h"
#include "settings/settings.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

/// Inputs of a measurement besides the samples.
struct SampleEncoding {
  const PromptEncoder& prompts;
  const AnswerFormat& format;
  const PatchOptions& patches;
  AugmentSettings augment{};  ///< of training samples
};

/// Measures all samples under a progress bar and settles those that are longer than
/// `global_max_length` before a model is loaded (BEHAVIOUR 2.9): `template.truncation_strategy:
/// delete` drops them from `dataset`. Without a cap nothing is measured. In stage 2 it warns of
/// samples whose rollouts may still take them beyond the cap.
/// @return samples dropped
/// @throws UserError (data) that lists them all with `raise`, or when none would be left;
/// Interrupted
int64_t settle_long_samples(Dataset& dataset, const Settings& settings,
                            const SampleEncoding& encoding, Terminal& terminal);

}  // namespace rematch
