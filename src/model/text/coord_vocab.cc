#include <fmt/core.h>

#include "base/error.h"
#include "model/text/tokenizer.h"

namespace rematch {

CoordVocab CoordVocab::from(const Tokenizer& tokenizer, const std::string& where) {
  CoordVocab vocab;
  vocab.bin_of_id_.assign(static_cast<size_t>(tokenizer.num_ids()), -1);
  for (int bin = 0; bin < static_cast<int>(vocab.ids_.size()); ++bin) {
    const std::string content = fmt::format("<|coord_{}|>", bin);
    const std::vector<TokenId> ids = tokenizer.encode(content);
    const bool is_token = ids.size() == 1 && tokenizer.token_bytes(ids.front()) == content;
    if (!is_token) {
      throw data_error({.error = fmt::format("the tokenizer has no coord token {}", content),
                        .where = where,
                        .what = fmt::format(
                            "it is encoded as {} tokens; <|coord_0|> … <|coord_999|> must all be "
                            "added tokens",
                            ids.size()),
                        .fix = fmt::format(
                            "run `rematch add-coord-tokens {} OUT` and use OUT as model.model, or "
                            "choose a `custom.answer_format` that writes digits",
                            where)});
    }
    int& slot = vocab.bin_of_id_[ids.front()];
    if (slot >= 0) {
      throw data_error({.error = fmt::format("two coord tokens share the id {}", ids.front()),
                        .where = where,
                        .what = fmt::format("<|coord_{}|> and {}", slot, content),
                        .fix = "give each coord token a different id in tokenizer.json"});
    }
    slot = bin;
    vocab.ids_[bin] = ids.front();
  }
  return vocab;
}

}  // namespace rematch
