#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// One `Split` step with behaviour Isolated: each match of a pattern and the text between matches
/// is a piece. Immutable, safe to share between threads.
class SplitRegex {
 public:
  /// @param pcre_pattern  from to_pcre_pattern() or literal_to_pcre_pattern()
  /// @throws UserError (data) if PCRE2 rejects the pattern, or it can match empty text
  SplitRegex(const std::string& pcre_pattern, const std::string& where);
  ~SplitRegex();
  SplitRegex(SplitRegex&&) noexcept;
  SplitRegex& operator=(SplitRegex&&) noexcept;

  /// Appends the pieces of `utf8` in order; concatenated they are the text.
  /// @param utf8  must be valid UTF-8, which is not checked
  /// @throws UserError (data) if a hostile pattern exceeds the matching limits
  void split(std::string_view utf8, std::vector<std::string_view>& pieces) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Cuts normalised text into the words that byte-pair encoding never crosses.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<SplitRegex> steps) : steps_(std::move(steps)) {}

  /// Splits a text into words, in order. Cost: linear for the patterns of real tokenizers.
  /// @param utf8  must be valid UTF-8
  std::vector<std::string_view> words(std::string_view utf8) const;

 private:
  std::vector<SplitRegex> steps_;
};

}  // namespace rematch
