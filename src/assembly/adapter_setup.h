#pragma once
#include <string>
#include <vector>

#include "estep/answer/answer_format.h"
#include "model/model.h"
#include "observe/terminal.h"
#include "settings/settings.h"
#include "text/tokenizer.h"

namespace rematch {

/// Finds a mistyped adapter target before data and weights are read. Needs only the names of the
/// model's tensors.
/// @throws UserError (config) as select_targets
void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer);

/// Parameters of the model and of its adapter, each once.
std::vector<NamedParameter> all_parameters(const Model& model);

/// Attaches the configured adapter to the model. Warns when the rows of coord tokens were never
/// trained, and the adapter does not train them. @param saved_dir  adapter directory with saved
/// values; empty = a fresh adapter
void attach_adapter(Model& model, const Settings& settings, const AnswerFormat& format,
                    const std::string& saved_dir, Terminal& terminal);

/// Makes images as large as those that the checkpoint of an adapter was trained with.
void adopt_image_area(Settings& settings, const std::string& adapter_dir);

}  // namespace rematch
