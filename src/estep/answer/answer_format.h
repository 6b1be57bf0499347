#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/choices.h"
#include "flow/parsed.h"
#include "flow/rollout.h"
#include "flow/segment.h"
#include "settings/data.h"
#include "text/prompt.h"
#include "text/tokenizer.h"

namespace rematch {

/// An object of an answer that is taught as a whole: what the model is shown and what it is taught
/// there.
struct AnswerEntry {
  SceneObject shown;             ///< desc, and the bins that stand in the text
  std::vector<int> taught_bins;  ///< as many as shown.geometry.bins
  SlotSource source = SlotSource::kAppend;
  /// ParsedObject::written of the prediction whose bins are shown; empty = written from the bins
  std::vector<int> written = {};
};

/// What a target teaches at a token of the answer.
struct TaughtToken {
  TokenId id = 0;            ///< the token that is shown
  int label = kIgnoreLabel;  ///< cross-entropy on this id
  /// ≥ 0: a coord slot with this bin (then there is no label)
  int bin = -1;
  SlotSource source = SlotSource::kAppend;  ///< of the coord slot
};

/// An answer, or its last part, as a target teaches it.
struct TaughtAnswer {
  std::string text;
  std::vector<TaughtToken> tokens;
};

/// How answers are written and read (BEHAVIOUR 19): one file for each format. Immutable, safe to
/// share between threads.
class AnswerFormat {
 public:
  /// @throws UserError (data) when the tokenizer has no `<|im_end|>`. @param where  the model
  /// directory, for the error
  AnswerFormat(std::shared_ptr<const Tokenizer> tokenizer, const std::string& where);
  virtual ~AnswerFormat() = default;

  /// Reads a response strictly, cut at the first of `stop_ids`. Never throws for a bad response.
  /// @param prompt  of the response
  ParsedRollout parse(const std::vector<TokenId>& response_token_ids,
                      const std::vector<TokenId>& stop_ids, const Prompt& prompt) const;

  /// The whole answer of a scene, numbered from 1 and encoded as one piece, with what is taught at
  /// each token. @throws UserError (data) for a geometry that the format cannot write
  virtual TaughtAnswer teach(const std::vector<AnswerEntry>& entries,
                             const Prompt& prompt) const = 0;

  /// The missing objects behind the kept prefix of a rollout (`target_policy: append`).
  /// @throws UserError (config) in formats whose row says that they cannot append
  virtual TaughtAnswer teach_rest(const ParsedRollout& kept,
                                  const std::vector<SceneObject>& missing) const;

  /// @throws UserError (data) for a geometry that the format cannot write. @param where
  /// "path:line" of the record
  virtual void check_geometry(GeometryKind, const std::string& where) const;

  /// The coord tokens that the format writes; null when it writes none.
  virtual const CoordVocab* coords() const { return nullptr; }
  /// Their ids in bin order; zeros when it writes none.
  std::array<TokenId, 1000> coord_token_ids() const {
    return coords() != nullptr ? coords()->ids() : std::array<TokenId, 1000>{};
  }

  /// True when the number of tokens of an answer depends on its coordinates.
  virtual bool lengths_vary_with_coords() const { return false; }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  TokenId im_end_id() const { return im_end_id_; }

 private:
  /// @param token_ids  of the response, cut
  virtual ParsedRollout read(std::vector<TokenId> token_ids, const Prompt& prompt) const = 0;

  std::shared_ptr<const Tokenizer> tokenizer_;
  TokenId im_end_id_ = 0;
};

/// A row of the table of formats: a new format is its file and its row.
struct AnswerFormatRow {
  std::string name;
  std::string meaning;
  /// Coordinates are coord tokens: `append` and the losses on coordinates are possible, and the
  /// tokenizer needs the tokens.
  bool has_coord_tokens = false;
  /// Key that opens an entry, or its beginning; `repeat_terminate.max_object_keys` counts it.
  std::string entry_key;
  /// Texts that ask for this format when a configuration gives none.
  PromptTexts (*built_in_prompt)(ObjectOrdering ordering) = nullptr;
  std::unique_ptr<const AnswerFormat> (*make)(std::shared_ptr<const Tokenizer> tokenizer,
                                              const std::string& where) = nullptr;
};

/// Values of `custom.answer_format`.
Choices<AnswerFormatRow>& answer_formats();

/// The format that a configuration names. @param where  the model directory, for errors
/// @throws UserError (config) for an unknown name, (data) when the tokenizer lacks its tokens
std::unique_ptr<const AnswerFormat> make_answer_format(const std::string& name,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       const std::string& where);

// The formats, one file each.
AnswerFormatRow coord_token_format();
AnswerFormatRow relative_digits_format();
AnswerFormatRow pixel_digits_format();

}  // namespace rematch
