#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/post_processor.h"
#include "text/tokenizer.h"

namespace rematch {

/// A `Split` step of the pre-tokenizer as the file gives it.
struct SplitSpec {
  std::string pattern;
  bool is_literal = false;  ///< {"String": …} instead of {"Regex": …}
};

/// The content of a tokenizer's files, checked for everything that is not implemented.
struct TokenizerSpec {
  std::string where;  ///< path of the file, for errors
  /// entry as spelled (byte-level alphabet), id
  std::vector<std::pair<std::string, TokenId>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  ///< in rank order
  std::vector<AddedToken> added_tokens;
  std::vector<SplitSpec> splits;
  bool nfc = false;              ///< text between added tokens is normalised before it is split
  PostProcessor post_processor;  ///< special tokens around a text, which no prompt gets
};

/// The fix for a damaged file, and for one that needs a part that is not implemented.
inline constexpr const char* kRestoreTokenizer =
    "restore the file from the checkpoint it belongs to, or write it again with "
    "AutoTokenizer.from_pretrained(...).save_pretrained(...)";
inline constexpr const char* kOtherTokenizer =
    "use a model of a supported family: their tokenizers are byte-level BPE";

/// @throws UserError (data), always. @param where  the file
[[noreturn]] inline void fail_tokenizer(const std::string& where, const std::string& error,
                                        const std::string& what,
                                        const std::string& fix = kRestoreTokenizer) {
  throw UserError(ErrorKind::kData, {.error = error, .where = where, .what = what, .fix = fix});
}

/// Largest id a file may use; real vocabularies stay below 300 000, and tables are as long as the
/// largest id.
inline constexpr TokenId kMaxTokenId = (1 << 24) - 1;

/// Reads a tokenizer.json. @throws UserError (environment) when unreadable, (data) when damaged or
/// when it needs an unimplemented part
TokenizerSpec read_tokenizer_json(const std::string& path);

/// The same for a file's content. @param where  its name in errors
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& where);

/// Reads vocab.json, merges.txt and tokenizer_config.json's `added_tokens_decoder` with NFC and the
/// split pattern of the family's tokenizer.
/// @throws UserError (data) for another `tokenizer_class`
TokenizerSpec read_vocab_and_merges(const std::string& directory);

}  // namespace rematch
