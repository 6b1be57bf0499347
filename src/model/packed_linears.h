#pragma once
#include <string>

#include "base/error.h"
#include "base/settings/model.h"
#include "model/families/description.h"

namespace rematch {

// Quantisation while a model is loaded packs the Linears of its towers. The head stays in full, and
// so does every module that `model.llm_int8_skip_modules` names, by its path or by whole components
// of it.

/// True if a Linear of the model is packed.
/// @param head  module that is never packed
bool is_packed_at_load(const FourBitSettings& options, const std::string& head,
                       const std::string& module);

/// Checks the names of modules that stay in full.
/// @throws UserError (config) for a name that fits no module
void check_skip_modules(const FourBitSettings& options, const ModelDescription& model);

/// For a parameter in 4 bits that would be trained or replaced in full: it has no values for that.
[[noreturn]] void refuse_packed_in_full(const std::string& parameter, ErrorKind kind,
                                        const std::string& where);

}  // namespace rematch
