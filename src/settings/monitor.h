#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// Pictures and texts of some rollouts while training
/// (`custom.extra.rollout_matching.monitor_dump`); changes no result.
struct MonitorSettings {
  bool enabled = false;
  std::optional<int64_t> every_steps;  ///< none = logging_steps
  bool dump_first_step = false;        ///< step 1 too
  int64_t max_events = 20;             ///< dumps of a run, ≥ 0
  int64_t max_samples = 1;             ///< of a dump, ≥ 1
  int64_t max_text_chars = 4000;       ///< of a text, ≥ 1
  std::optional<std::string> out_dir;  ///< none = RUN_DIR/monitor
  bool write_markdown = true;

  bool operator==(const MonitorSettings&) const = default;
};

}  // namespace rematch
