#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/text/post_processor.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// A `Split` step of the pre-tokenizer in a tokenizer.json.
struct SplitSpec {
  std::string pattern;
  bool is_literal = false;  ///< {"String": …} instead of {"Regex": …}
};

/// The content of a tokenizer's files; everything in it is implemented.
struct TokenizerSpec {
  std::string where;                                        ///< path of the file, for errors
  std::vector<std::pair<std::string, TokenId>> vocab;       ///< entry in byte-level alphabet, id
  std::vector<std::pair<std::string, std::string>> merges;  ///< in rank order
  std::vector<AddedToken> added_tokens;
  std::vector<SplitSpec> splits;
  bool nfc = false;              ///< normalise text between added tokens before the split
  PostProcessor post_processor;  ///< special tokens around a text; prompts do not use it
};

/// Advice for a damaged file, and for a file that needs a part that is not implemented.
inline constexpr const char* kRestoreTokenizer =
    "restore the file from the checkpoint it belongs to, or write it again with "
    "AutoTokenizer.from_pretrained(...).save_pretrained(...)";
inline constexpr const char* kOtherTokenizer =
    "use a model of a supported family: their tokenizers are byte-level BPE";

/// Throws a UserError (data) about a tokenizer file.
/// @param where  the file
[[noreturn]] inline void fail_tokenizer(const std::string& where, const std::string& error,
                                        const std::string& what,
                                        const std::string& fix = kRestoreTokenizer) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

/// Largest legal id. It limits tables, which are as long as the largest id; real vocabularies have
/// less than 300 000 entries.
inline constexpr TokenId kMaxTokenId = (1 << 24) - 1;

/// Reads a tokenizer.json.
/// @throws UserError (environment) if it is unreadable, (data) if it is damaged or needs a part
/// that is not implemented
TokenizerSpec read_tokenizer_json(const std::string& path);

/// Parses the content of a tokenizer.json.
/// @param where  its name in errors
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& where);

/// Reads vocab.json, merges.txt and `added_tokens_decoder` of tokenizer_config.json; NFC and the
/// split pattern come from the family.
/// @throws UserError (data) if no family has this `tokenizer_class`
TokenizerSpec read_vocab_and_merges(const std::string& directory);

}  // namespace rematch
