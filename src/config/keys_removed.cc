// Keys of earlier versions. A configuration that sets one is refused with what to use instead.
#include "config/keys.h"

namespace rematch {

std::vector<KeySpec> removed_keys() {
  return {
      removed(kRolloutMatching + ".dedup_iou",
              "use `target_policy: rewrite`, which shows each object once"),
      removed(kRolloutMatching + ".rewrite_targets",
              "`rewrite` always teaches the truth's bins at matched coordinates; delete the key"),
      removed(kRolloutMatching + ".teach_matched_text",
              "`rewrite` always teaches the text of matched objects; delete the key"),
      removed("training.resume_optimizer_from",
              "carried AdamW averages changed no score; use `training.warmup_steps` or a lower "
              "`training.learning_rate`"),
  };
}

}  // namespace rematch
