#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/choices.h"
#include "base/flow/parsed.h"
#include "base/flow/rollout.h"
#include "base/flow/segment.h"
#include "base/settings/data.h"
#include "model/text/prompt.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// An object of a fully taught answer: its text (model input) and its target bins.
struct AnswerEntry {
  SceneObject shown;             ///< desc, and the bins in the text
  std::vector<int> taught_bins;  ///< as many as shown.geometry.bins
  SlotSource source = SlotSource::kAppend;
  /// ParsedObject::written of the prediction that gives the shown bins; empty = write the bins
  std::vector<int> written = {};
};

/// Supervision of a token of the answer.
struct TaughtToken {
  TokenId id = 0;            ///< model input
  int label = kIgnoreLabel;  ///< target of cross-entropy
  /// ≥ 0: target of a coord slot, in place of a label
  int bin = -1;
  SlotSource source = SlotSource::kAppend;  ///< of the coord slot
};

/// An answer, or its last part, with supervision.
struct TaughtAnswer {
  std::string text;
  std::vector<TaughtToken> tokens;
};

/// The name of every object, true or answered, in a format without names.
inline constexpr const char* kNameless = "object";

/// True if the numbers of a format are pixels of the resized image.
bool answers_in_pixels(const std::string& format);

/// The target policy where none is configured: bins cannot be appended to an answer in digits.
inline std::string default_target_policy(bool has_coord_tokens) {
  return has_coord_tokens ? "append" : "rewrite";
}

/// Writes and parses answers (BEHAVIOUR 19); one file for each format. Immutable and thread-safe.
class AnswerFormat {
 public:
  /// @throws UserError (data) when the tokenizer has no `<|im_end|>`.
  /// @param where  the model directory, for the error
  AnswerFormat(std::shared_ptr<const Tokenizer> tokenizer, const std::string& where);
  virtual ~AnswerFormat() = default;

  /// Parses a response strictly, up to the first of `stop_ids`. Never throws for a bad response.
  ParsedRollout parse(const std::vector<TokenId>& response_token_ids,
                      const std::vector<TokenId>& stop_ids, const Prompt& prompt) const;

  /// Writes the whole answer of a scene, numbered from 1, with supervision.
  /// @throws UserError (data) for a geometry that the format cannot write
  virtual TaughtAnswer teach(const std::vector<AnswerEntry>& entries,
                             const Prompt& prompt) const = 0;

  /// Writes the missing objects after the kept prefix of a rollout (`target_policy: append`).
  /// @throws UserError (config) in formats without coord tokens
  virtual TaughtAnswer teach_rest(const ParsedRollout& kept, const Objects& missing) const;

  /// @throws UserError (data) for a geometry that the format cannot write
  /// @param where  "path:line" of the record
  virtual void check_geometry(GeometryKind, const std::string& where) const;

  /// Coord tokens of the format; null for a format with digits.
  virtual const CoordVocab* coords() const { return nullptr; }
  /// Their ids in bin order; zeros for a format with digits.
  std::array<TokenId, 1000> coord_token_ids() const {
    return coords() != nullptr ? coords()->ids() : std::array<TokenId, 1000>{};
  }

  /// The target policy where none is configured.
  std::string default_policy() const { return default_target_policy(coords() != nullptr); }

  /// True when the number of tokens of an answer depends on its coordinates.
  virtual bool lengths_vary_with_coords() const { return false; }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  TokenId im_end_id() const { return im_end_id_; }

 private:
  /// @param token_ids  the response, without the stop token
  virtual ParsedRollout read(std::vector<TokenId> token_ids, const Prompt& prompt) const = 0;

  std::shared_ptr<const Tokenizer> tokenizer_;
  TokenId im_end_id_ = 0;
};

/// An entry of the table of formats. A new format needs its file and its entry.
struct AnswerFormatRow {
  std::string name;
  std::string meaning;
  /// Coordinates are coord tokens. This allows `append` and the losses on coordinates, and requires
  /// the tokens in the tokenizer.
  bool has_coord_tokens = false;
  /// Answers name their objects. Without names every object is called kNameless.
  bool has_names = true;
  /// Start of the key that opens an entry; `repeat_terminate.max_object_keys` counts it.
  std::string entry_key;
  /// Default prompt texts.
  PromptTexts (*built_in_prompt)(ObjectOrdering ordering) = nullptr;
  std::unique_ptr<const AnswerFormat> (*make)(std::shared_ptr<const Tokenizer> tokenizer,
                                              const std::string& where) = nullptr;
};

/// Values of `custom.answer_format`.
Choices<AnswerFormatRow>& answer_formats();

/// Makes the format of a name.
/// @param where  the model directory, for errors
/// @throws UserError (config) for an unknown name, (data) when the tokenizer lacks its tokens
std::unique_ptr<const AnswerFormat> make_answer_format(const std::string& name,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       const std::string& where);

// The formats, one file each.
AnswerFormatRow coord_token_format();
AnswerFormatRow relative_digits_format();
AnswerFormatRow pixel_digits_format();
AnswerFormatRow relative_boxes_format();
AnswerFormatRow pixel_boxes_format();

}  // namespace rematch
