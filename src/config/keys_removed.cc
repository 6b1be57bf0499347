// Keys of earlier versions. A configuration that sets one is refused, with advice what to use.
#include "config/keys.h"

namespace rematch {

std::vector<KeySpec> removed_keys() {
  return {
      removed_key(kRolloutMatching + ".dedup_iou",
                  "use `target_policy: rewrite`, which shows each object once"),
      removed_key(
          kRolloutMatching + ".rewrite_targets",
          "`rewrite` always teaches the ground truth's bins at matched coordinates; delete the "
          "key"),
      removed_key(kRolloutMatching + ".teach_matched_text",
                  "`rewrite` always teaches the text of matched objects; delete the key"),
      removed_key("training.resume_optimizer_from",
                  "reusing AdamW averages changed no score; use `training.warmup_steps` or a lower "
                  "`training.learning_rate`"),
  };
}

}  // namespace rematch
