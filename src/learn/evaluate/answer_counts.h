#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rematch {

/// Numbers of answers, and of what could be read in them.
struct AnswerCounts {
  int64_t answers = 0;
  int64_t malformed = 0, truncated = 0;  ///< answers
  int64_t with_object = 0;               ///< answers with at least one valid object
  int64_t dropped = 0;                   ///< entries that are not objects of the answer format

  void add(const AnswerCounts& more);
  /// True if every answer broke off or broke the format, or none of their entries is an object.
  bool all_unusable() const {
    return answers > 0 && (malformed + truncated == answers || is_another_format());
  }
  /// True if answers that did not break off have entries, and none of them is an object.
  bool is_another_format() const { return with_object == 0 && dropped > malformed + truncated; }
  /// "6 are malformed, 2 are cut off, none of their 9 entries is an object of this answer format"
  std::string reasons() const;
  /// "no answer of 8 can be read: " and the reasons; empty when an answer has an object, or all are
  /// only cut off.
  std::string finding() const;
};

/// The counts of an evaluation.
/// @param score  a score by its name; nullopt when it is absent
AnswerCounts evaluation_counts(const std::function<std::optional<double>(const char* name)>& score,
                               int64_t num_samples);

}  // namespace rematch
