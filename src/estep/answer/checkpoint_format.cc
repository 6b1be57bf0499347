#include "estep/answer/checkpoint_format.h"

#include <filesystem>

#include "base/file.h"
#include "model/families/family.h"
#include "settings/data.h"
#include "text/stored_prompt.h"

namespace rematch {

std::string checkpoint_format(const std::optional<std::string>& given, const std::string& model_dir,
                              const Tokenizer& tokenizer) {
  if (given) return *given;
  if (const auto stored = read_stored_prompt(model_dir)) return stored->answer_format;
  // One token is enough to tell; CoordVocab names the first that is missing. A directory with a
  // tokenizer alone has no family.
  if (tokenizer.token_id("<|coord_0|>") ||
      !std::filesystem::exists(join_path(model_dir, "config.json")))
    return kDefaultAnswerFormat;
  return stock_answer_format(model_dir);
}

}  // namespace rematch
