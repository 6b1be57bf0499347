#include "model/text/post_processor.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_fields.h"
#include "model/text/tokenizer_file.h"

namespace rematch {
namespace {

constexpr TokenId kText = -1;

// Reads the id in ["<token>", id].
TokenId read_pair_id(JsonFields& fields, const char* key) {
  const Json& pair = fields.list(key);
  if (pair.size() != 2 || !pair[1].is_number_integer() || pair[1] < 0 || pair[1] > kMaxTokenId) {
    fields.fail(key, fmt::format("expected a token and its id, found {}", show_json(pair)));
  }
  return pair[1].get<TokenId>();
}

std::vector<TokenId> read_template(JsonFields& fields) {
  JsonFields tokens = fields.object_or_empty("special_tokens");
  std::vector<TokenId> step;
  for (const Json& piece : fields.list("single")) {
    if (piece.is_object() && piece.contains("Sequence")) {
      step.push_back(kText);
      continue;
    }
    if (!piece.is_object() || !piece.contains("SpecialToken") ||
        !piece["SpecialToken"].is_object() || !piece["SpecialToken"].contains("id") ||
        !piece["SpecialToken"]["id"].is_string()) {
      fields.fail("single",
                  fmt::format("expected Sequence or SpecialToken, found {}", show_json(piece)));
    }
    for (const int id :
         tokens.object(piece["SpecialToken"]["id"].get<std::string>()).integers("ids"))
      step.push_back(id);
  }
  return step;
}

}  // namespace

PostProcessor PostProcessor::read(const Json& part, const std::string& where) {
  PostProcessor result;
  if (!part.is_null()) result.add(part, where);
  return result;
}

void PostProcessor::add(const Json& part, const std::string& where) {
  const JsonOrigin origin{.path = where,
                          .error = "the tokenizer's post-processor cannot be read: {}",
                          .fix = kRestoreTokenizer,
                          .null_is_absent = true};
  JsonFields fields(part, origin);
  const std::string type = fields.text("type");
  if (type == "ByteLevel") return;  // it only changes offsets
  if (type == "TemplateProcessing") {
    steps_.push_back(read_template(fields));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const TokenId before = read_pair_id(fields, "cls"), after = read_pair_id(fields, "sep");
    steps_.push_back({before, kText, after});
  } else if (type == "Sequence") {
    for (const Json& processor : fields.list("processors")) add(processor, where);
  } else {
    throw data_error(
        {.error = fmt::format("the tokenizer needs the post-processor {}, which is not implemented",
                              type),
         .where = where,
         .what = show_json(part, 120),
         .fix = kOtherTokenizer});
  }
}

std::vector<TokenId> PostProcessor::apply(std::vector<TokenId> ids) const {
  for (const std::vector<TokenId>& step : steps_) {
    std::vector<TokenId> result;
    for (const TokenId id : step) {
      if (id == kText) {
        result.insert(result.end(), ids.begin(), ids.end());
      } else {
        result.push_back(id);
      }
    }
    ids = std::move(result);
  }
  return ids;
}

}  // namespace rematch
