#pragma once
#include "program/cli/arguments.h"
#include "program/cli/eval_answers.h"

namespace rematch {

/// Arguments of `rematch eval`.
struct EvalArguments : AskArguments {
  AnswersArguments answers;  ///< of another program, in place of the model's
  bool all_scores = false;   ///< prints every score, and tables of classes and object counts
};

/// Evaluates on `custom.val_jsonl`, prints a table, writes eval_results.json into the run
/// directory.
/// @return the exit code;
/// @throws UserError
int run_eval(const EvalArguments& arguments);

}  // namespace rematch
