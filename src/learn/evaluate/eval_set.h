#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Inputs of an evaluation besides the model. Scores over different sets cannot be compared.
struct EvalSet {
  int64_t num_records = 0;  ///< after val_sample_limit
  std::string records;      ///< hash of the file
  std::string labels;       ///< LabelMatch::identity()
  std::string system_prompt, user_prompt;
  std::string scoring;  ///< settings of decoding and matching; empty = the defaults
};

/// The set in one line, stored with every score as `eval_set`: "32 records 9f…, labels normalized,
/// prompts 5d…", and ", scoring 1b…" where that is not as usual.
std::string eval_set_text(const EvalSet& set);

/// The part of eval_set_text() that a reader understands: "32 records".
std::string shown_eval_set(const std::string& text);

/// The parts in which two sets differ, in words: "records", "label_match", "prompts" and "decoding
/// or matching".
/// @param a, b  eval_set_text(); empty = not known
Strings eval_set_differences(const std::string& a, const std::string& b);

}  // namespace rematch
