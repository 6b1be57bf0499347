#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace rematch {

/// PCRE2's text for one of its error codes.
std::string pcre2_message(int code);

/// A regular expression that must match a whole text, as in Python's `re.fullmatch` (PCRE2 in its
/// Perl syntax; UTF-8).
class FullMatch {
 public:
  /// @param where  origin of the pattern for errors, e.g. a key
  /// @throws UserError (config) when it is not UTF-8 or does not compile, with the position
  FullMatch(const std::string& pattern, const std::string& where);
  ~FullMatch();
  FullMatch(const FullMatch&) = delete;
  FullMatch& operator=(const FullMatch&) = delete;

  /// @throws UserError (config) when the text is not UTF-8, or the pattern needs more steps than
  /// PCRE2's limit for it
  bool matches(std::string_view text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
