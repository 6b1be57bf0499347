#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace rematch {

/// A chat template: the part of Jinja2 that templates of vision-language models use, with
/// trim_blocks and lstrip_blocks as transformers sets them. Everything else is refused by name when
/// the template is read (or when it runs, if only a value shows it). Immutable, safe to share
/// between threads.
class JinjaTemplate {
 public:
  /// @param source  the template's text
  /// @param where   its path, for errors
  /// @throws UserError (data) with path:line for wrong syntax and unknown constructs
  JinjaTemplate(std::string_view source, std::string where);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  /// Renders the template. Work and output are bounded, so a hostile template ends in an error.
  /// @param variables  an object: the names that the template sees
  /// @throws UserError (data) with path:line, also for raise_exception
  std::string render(const Json& variables) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
