#pragma once
#include <string>
#include <vector>

#include "base/observe/terminal.h"
#include "base/settings/settings.h"
#include "learn/estep/answer/answer_format.h"
#include "model/adapter_base.h"
#include "model/model.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Finds a mistyped adapter target before data and weights are read. Needs only the names of the
/// model's tensors.
/// @throws UserError (config) as select_targets
void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer);

/// True if weights of the base model are in 4 bits: stored so, or quantised while they are loaded.
bool is_in_four_bits(const ModelSettings& model);

/// @throws UserError (config) for full fine-tuning of a model whose weights are in 4 bits
void require_adapter_in_four_bits(const Settings& settings);

/// Parameters of the model and of its adapter, each once.
std::vector<NamedParameter> all_parameters(const Model& model);

/// Attaches the configured adapter to the model. Warns when the rows of coord tokens were never
/// trained, and the adapter does not train them.
/// @param saved_dir  adapter directory with saved values; empty = a fresh adapter
void attach_adapter(Model& model, const Settings& settings, const AnswerFormat& format,
                    const std::string& saved_dir, Terminal& terminal);

/// Attaches a saved adapter to the loaded model of its base: for commands that ask a checkpoint.
/// Refuses a base with other weights than the adapter was trained on, and says so if it is forced
/// or cannot be known.
/// @throws UserError (data) as check_adapter_base and Adapter::load
void load_adapter(Model& model, const AdapterUse& use, Terminal& terminal);

/// Makes images as large as those that the checkpoint of an adapter was trained with.
/// @param settings  with the base model's directory
/// @return a warning if the base's image processor has other sizes; empty otherwise
/// @throws UserError (data) if it differs in more than sizes (patches, normalisation): answers
/// would be about other pixels than those of training
std::string adopt_image_area(Settings& settings, const std::string& adapter_dir);

}  // namespace rematch
