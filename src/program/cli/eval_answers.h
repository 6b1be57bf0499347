#pragma once
#include <string>

#include "program/assembly/ask.h"

namespace rematch {

/// Arguments of `rematch eval --answers FILE`, besides those of `rematch eval`.
struct AnswersArguments {
  std::string answers;         ///< JSON lines of another program; empty: a model is evaluated
  std::string format;          ///< name of the answer format; empty: the model's
  bool answered_only = false;  ///< leave out records without an answer
};

/// Adds the options to `rematch eval`.
void add_answers_options(CLI::App& eval, AnswersArguments& arguments);

/// `rematch eval [MODEL] JSONL --answers FILE`: scores the answers of another program against the
/// truth, with the scores and the files of `rematch eval`, which go to `output/NAME`, NAME being
/// the answers file's. A model gives its image processor and its answer format; none is needed.
/// @param all_scores  prints every score, and tables.
/// @return exit code;
/// @throws UserError
int run_eval_answers(const Asked& asked, const AnswersArguments& arguments, bool all_scores);

}  // namespace rematch
