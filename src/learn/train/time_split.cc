#include "learn/train/time_split.h"

#include <fmt/core.h>

#include <algorithm>

namespace rematch {
namespace {

struct Activity {
  const char* metric;
  const char* name;
};

// In the order of a step.
constexpr Activity kActivities[] = {{"time/rollout_generate_s", "rollouts"},
                                    {"time/rollout_parse_match_s", "matching"},
                                    {"time/rollout_teacher_encode_s", "targets"},
                                    {"time/post_rollout_pack_s", "packing"},
                                    {"time/forward_s", "forward"},
                                    {"time/backward_s", "backward"},
                                    {"time/optimizer_s", "update"}};
constexpr double kMinShown = 0.005;

}  // namespace

void TimeSplit::add(const MetricsBag& step) {
  for (const Activity& activity : kActivities) seconds_[activity.name] += step.sum(activity.metric);
  steps_s_ += step.sum("time/step_s");
}

std::string TimeSplit::text(double total_s) const {
  if (steps_s_ <= 0 || total_s <= 0) return "";
  // Each time is that of the slowest rank, so their sum may exceed the step: scale them down.
  double named_s = 0;
  for (const Activity& activity : kActivities) named_s += seconds_.at(activity.name);
  const double scale = named_s > steps_s_ ? steps_s_ / named_s : 1;
  total_s = std::max(total_s, steps_s_);
  std::string text;
  const auto add_share = [&](const char* name, double seconds) {
    if (seconds >= kMinShown * total_s)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, 100 * seconds / total_s);
  };
  for (const Activity& activity : kActivities)
    add_share(activity.name, scale * seconds_.at(activity.name));
  add_share("other", steps_s_ - scale * named_s);
  add_share("evaluation and saving", total_s - steps_s_);
  return text;
}

}  // namespace rematch
