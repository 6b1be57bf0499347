#include "train/time_split.h"

#include <fmt/core.h>

#include <algorithm>

namespace rematch {
namespace {

struct Part {
  const char* metric;
  const char* words;
};

// In the order of a step.
constexpr Part kParts[] = {{"time/rollout_generate_s", "rollouts"},
                           {"time/rollout_parse_match_s", "matching"},
                           {"time/rollout_teacher_encode_s", "targets"},
                           {"time/post_rollout_pack_s", "packing"},
                           {"time/forward_s", "forward"},
                           {"time/backward_s", "backward"},
                           {"time/optimizer_s", "update"}};
constexpr double kWorthSaying = 0.005;

}  // namespace

void TimeSplit::add(const MetricsBag& step) {
  for (const Part& part : kParts) seconds_[part.words] += step.sum(part.metric);
  steps_s_ += step.sum("time/step_s");
}

std::string TimeSplit::text(double total_s) const {
  if (steps_s_ <= 0 || total_s <= 0) return "";
  // On several ranks each time is that of the slowest one, and together they may exceed the step:
  // shown in its proportions.
  double named_s = 0;
  for (const Part& part : kParts) named_s += seconds_.at(part.words);
  const double scale = named_s > steps_s_ ? steps_s_ / named_s : 1;
  total_s = std::max(total_s, steps_s_);
  std::string text;
  const auto say = [&](const char* words, double seconds) {
    if (seconds >= kWorthSaying * total_s)
      text +=
          fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", words, 100 * seconds / total_s);
  };
  for (const Part& part : kParts) say(part.words, scale * seconds_.at(part.words));
  say("other", steps_s_ - scale * named_s);
  say("evaluation and saving", total_s - steps_s_);
  return text;
}

}  // namespace rematch
