#include "evaluate/eval_set.h"

#include <fmt/core.h>

#include <initializer_list>
#include <optional>

#include "base/content_key.h"

namespace rematch {

std::string eval_set_text(const EvalSet& set) {
  const std::string prompts =
      fmt::format("{}:{}{}", set.system_prompt.size(), set.system_prompt, set.user_prompt);
  return fmt::format("{} records {}, labels {}, prompts {}", set.num_records, set.records,
                     set.labels, content_hash_of(prompts));
}

bool same_eval_set(const std::string& a, const ScoreOf& scores_a, const std::string& b,
                   const ScoreOf& scores_b) {
  if (!a.empty() && !b.empty()) return a == b;
  for (const char* count : {"num_samples", "eval_rollout_gt_objects"}) {
    const std::optional<double> one = scores_a(count), other = scores_b(count);
    if (one && other && *one != *other) return false;
  }
  return true;
}

}  // namespace rematch
