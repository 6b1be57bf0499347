#pragma once
#include <string>

#include "base/error.h"

namespace rematch {

/// Section of the configuration, for errors.
inline const std::string kVllmSection = "custom.extra.rollout_matching.vllm";

/// An error of the vLLM backend; its fix also names backend `hf`.
inline UserError vllm_error(ErrorKind kind, const std::string& error, const std::string& where,
                            const std::string& what, const std::string& fix) {
  return UserError(
      kind,
      {.error = error, .where = where, .what = what, .fix = fix + ", or set rollout_backend: hf"});
}

}  // namespace rematch
