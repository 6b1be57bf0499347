#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// Dumps of pictures and texts of some rollouts during training
/// (`custom.extra.rollout_matching.monitor_dump`); no effect on results.
struct MonitorSettings {
  bool enabled = false;
  std::optional<int64_t> every_steps;  ///< none = logging_steps
  bool dump_first_step = false;        ///< dump step 1 too
  int64_t max_events = 20;             ///< most dumps per run, ≥ 0
  int64_t max_samples = 1;             ///< most samples per dump, ≥ 1
  int64_t max_text_chars = 4000;       ///< most bytes of a text, ≥ 1
  std::optional<std::string> out_dir;  ///< none = RUN_DIR/monitor
  bool write_markdown = true;

  bool operator==(const MonitorSettings&) const = default;
};

}  // namespace rematch
