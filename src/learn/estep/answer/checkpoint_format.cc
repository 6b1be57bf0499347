#include "learn/estep/answer/checkpoint_format.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/settings/data.h"
#include "base/text.h"
#include "learn/estep/answer/answer_format.h"
#include "model/families/family.h"

namespace rematch {

void check_stored_format(const StoredPrompt& stored, const std::string& model_dir) {
  const Strings known = answer_formats().names();
  if (contains(known, stored.answer_format)) return;
  throw data_error({.error = fmt::format("the answer format \"{}\" of this checkpoint is not known",
                                         stored.answer_format),
                    .where = join_path(model_dir, kStoredPromptFile),
                    .what = fmt::format("answer_format is none of {}", join(known, ", ")),
                    .fix = "use the version of Rematch that wrote the file, or correct it"});
}

std::string checkpoint_format(const std::optional<std::string>& given, const std::string& model_dir,
                              const Tokenizer& tokenizer) {
  if (given) return *given;
  if (const auto stored = read_stored_prompt(model_dir)) {
    check_stored_format(*stored, model_dir);
    return stored->answer_format;
  }
  // One coord token is enough; CoordVocab reports a missing one. A directory that holds only a
  // tokenizer has no model family.
  if (tokenizer.token_id("<|coord_0|>") || !path_exists(join_path(model_dir, "config.json")))
    return kDefaultAnswerFormat;
  return stock_answer_format(model_dir);
}

}  // namespace rematch
