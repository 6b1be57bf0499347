#include "estep/prompt_lengths.h"

#include <fmt/core.h>

#include <vector>

#include "base/error.h"
#include "estep/examiner.h"

namespace rematch {
namespace {

constexpr size_t kMaxProblems = 20;

}  // namespace

void check_prompt_lengths(const Dataset& data, const PromptEncoder& prompts, const PatchOptions& patches, int cap_tokens) {
  if (cap_tokens <= 0) return;
  std::vector<Problem> problems;
  for (const Sample& sample : data.samples()) {
    const size_t length = make_prompt(sample, 0, prompts, patches).token_ids.size();
    if (length < static_cast<size_t>(cap_tokens)) continue;  // the end of the answer takes a token
    problems.push_back({.error = "a prompt is longer than a segment may be",
                        .where = sample.where,
                        .what = fmt::format("{} tokens of prompt and image ({} x {} px); global_max_length is {}, with the answer", length,
                                            sample.width_px, sample.height_px, cap_tokens),
                        .fix = "raise global_max_length, scale the image down, or shorten template.system and custom.user_prompt"});
    if (problems.size() == kMaxProblems) break;
  }
  if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
}

}  // namespace rematch
