// `coord_tokens`: an object map with one token for each coordinate, the specification's format
// (BEHAVIOUR 2.7, 5).
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/answer/coord_token_text.h"
#include "learn/estep/answer/encode_answer.h"
#include "learn/estep/parse/add_entries.h"
#include "learn/estep/parse/json_reader.h"
#include "learn/estep/parse/object_rules.h"
#include "learn/estep/parse/prefix.h"

namespace rematch {
namespace {

// The default prompt. It names no coord token: a prompt must not contain the text of an added
// token.
constexpr const char* kSystemPrompt =
    "You find the objects in an image. Answer with a single JSON object and nothing else. "
    "Its keys are object_1, object_2 and so on, numbered without gaps. "
    "Each value is an object with exactly two members: \"desc\", a short text that says what it "
    "is, and one geometry, \"bbox_2d\" or "
    "\"poly\". "
    "bbox_2d is the list [x1, y1, x2, y2] of the left, top, right and bottom edge. "
    "poly is a list of [x, y] pairs, one for each corner of the outline, at least three. "
    "Every coordinate is a string that holds one coordinate token; the tokens are numbered 0 to "
    "999, in thousandths of the image's width "
    "for x and of its height for y. ";
constexpr const char* kSortedOrder =
    "List the objects from top to bottom, and from left to right where they begin at the same "
    "height. ";
constexpr const char* kAnyOrder = "List the objects in any order. ";
constexpr const char* kEmptyScene = "If there is no object, answer {}.";
constexpr const char* kUserPrompt = "List every object in this image as JSON.";

PromptTexts built_in_prompt(ObjectOrdering ordering) {
  return {std::string(kSystemPrompt) +
              (ordering == ObjectOrdering::kSorted ? kSortedOrder : kAnyOrder) + kEmptyScene,
          kUserPrompt};
}

// Flags the tokens that overlap a desc.
std::vector<bool> tokens_in_descs(const EncodedAnswer& answer) {
  std::vector<bool> in_desc(answer.token_ids.size(), false);
  for (const ByteSpan& desc : answer.marks) {
    if (desc.begin == desc.end) continue;
    const TokenSpan tokens = answer.bytes.overlapping(desc.begin, desc.end);
    std::fill(in_desc.begin() + tokens.begin, in_desc.begin() + tokens.end, true);
  }
  return in_desc;
}

class CoordTokens : public AnswerFormat {
 public:
  CoordTokens(std::shared_ptr<const Tokenizer> tokenizer, const std::string& where)
      : AnswerFormat(std::move(tokenizer), where),
        coords_(CoordVocab::from(AnswerFormat::tokenizer(), where)) {}

  const CoordVocab* coords() const override { return &coords_; }

  /// Cross-entropy on every other token, desc included; coord slots on every coord token.
  TaughtAnswer teach(const std::vector<AnswerEntry>& entries, const Prompt&) const override {
    Objects shown;
    std::vector<TaughtToken> slots;
    for (const AnswerEntry& entry : entries) {
      shown.push_back(entry.shown);
      for (const int bin : entry.taught_bins) slots.push_back({.bin = bin, .source = entry.source});
    }
    const AnswerText answer = answer_text(shown);
    const EncodedAnswer encoded = encode_answer(answer, tokenizer());
    const std::vector<bool> in_desc = tokens_in_descs(encoded);
    TaughtAnswer taught{.text = answer.text};
    size_t next_slot = 0;
    for (size_t i = 0; i < encoded.token_ids.size(); ++i) {
      const TokenId id = encoded.token_ids[i];
      TaughtToken token;
      if (coords_.bin_of(id) < 0) {
        token.label = id;
      } else if (!in_desc[i]) {
        REMATCH_CHECK(next_slot < slots.size());
        token = slots[next_slot++];
      }
      token.id = id;
      taught.tokens.push_back(token);
    }
    REMATCH_CHECK(next_slot == slots.size());
    return taught;
  }

  /// Cross-entropy on tokens outside coord tokens and descs; coord slots on the coord tokens.
  TaughtAnswer teach_rest(const ParsedRollout& kept, const Objects& missing) const override {
    const int64_t first_index = kept.max_object_index ? *kept.max_object_index + 1 : 1;
    const AnswerText answer = append_text(missing, first_index, !kept.prefix_text.ends_with('{'));
    const EncodedAnswer encoded = encode_answer(answer, tokenizer());
    const std::vector<bool> in_desc = tokens_in_descs(encoded);
    TaughtAnswer taught{.text = answer.text};
    for (size_t i = 0; i < encoded.token_ids.size(); ++i) {
      const TokenId id = encoded.token_ids[i];
      const int bin = coords_.bin_of(id);
      taught.tokens.push_back({.id = id,
                               .label = bin < 0 && !in_desc[i] ? id : kIgnoreLabel,
                               .bin = in_desc[i] ? -1 : bin});
    }
    return taught;
  }

 private:
  ParsedRollout read(std::vector<TokenId> token_ids, const Prompt&) const override {
    ParsedRollout parsed;
    parsed.response_token_ids = std::move(token_ids);
    const TokenBytes tokens = TokenBytes::of_response(parsed.response_token_ids, tokenizer());
    const bool has_unknown_id = tokens.ends.size() < parsed.response_token_ids.size();
    const JsonDocument document = read_json_object(tokens.bytes, has_unknown_id);
    const ResponseTokens response{parsed.response_token_ids, tokens, coords_};
    add_entries(document, tokens, parsed, [&](size_t i) {
      const std::string& key = document.top.keys[i];
      if (const auto index = object_index(key))
        parsed.max_object_index = std::max(parsed.max_object_index.value_or(0), *index);
      return valid_object(key, document.top.items[i], response);
    });
    if (!document.open_end) {
      parsed.prefix_text.push_back('{');
      parsed.prefix_token_ids = tokenizer().encode("{");
      return parsed;
    }
    const size_t cut =
        document.top.items.empty() ? *document.open_end : document.top.items.back().end;
    parsed.prefix_text = tokens.bytes.substr(0, cut);
    parsed.prefix_token_ids = cut_token_ids(parsed.response_token_ids, tokens, cut, tokenizer());
    return parsed;
  }

  CoordVocab coords_;
};

}  // namespace

AnswerFormatRow coord_token_format() {
  return {.name = "coord_tokens",
          .meaning = "an object map with one token for each coordinate",
          .has_coord_tokens = true,
          .entry_key = "object_",
          .built_in_prompt = built_in_prompt,
          .make = [](std::shared_ptr<const Tokenizer> tokenizer,
                     const std::string& where) -> std::unique_ptr<const AnswerFormat> {
            return std::make_unique<CoordTokens>(std::move(tokenizer), where);
          }};
}

}  // namespace rematch
