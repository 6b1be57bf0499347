#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "ranks/group.h"
#include "observe/terminal.h"
#include "settings/settings.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

// The first steps of a session, which `rematch check` takes one by one. In session.cc.

/// Reads a JSONL and checks its records and the headers of its images; warns on the terminal.
/// @param on_bad  kSkip: images that cannot be used are found when they are needed, here only the
/// first are named. @throws UserError
Dataset load_checked(const std::string& path, std::optional<int64_t> limit, bool single_image,
                     const Tokenizer& tokenizer, const PatchOptions& patches, OnBadSample on_bad,
                     Terminal& terminal);

/// The prompts of a configuration in the model's chat template. @throws UserError for a damaged
/// template
std::unique_ptr<PromptEncoder> make_prompts(const Settings& settings,
                                            std::shared_ptr<const Tokenizer> tokenizer,
                                            const PatchOptions& patches, Terminal& terminal);

}  // namespace rematch
