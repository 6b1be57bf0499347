#pragma once
#include <string>

#include "estep/answer/answer_format.h"
#include "model/model.h"
#include "observe/terminal.h"
#include "settings/settings.h"
#include "text/tokenizer.h"

namespace rematch {

/// Finds a mistyped adapter target before data and weights are read: the names of the model's
/// tensors are sufficient.
/// @throws UserError (config) as select_targets
void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer);

/// Attaches the configured adapter to the model. @param saved_dir  adapter directory to take values
/// from; empty = a fresh adapter Warns when rows of coord tokens were never trained, and are not
/// now.
void attach_adapter(Model& model, const Settings& settings, const AnswerFormat& format,
                    const std::string& saved_dir, Terminal& terminal);

}  // namespace rematch
