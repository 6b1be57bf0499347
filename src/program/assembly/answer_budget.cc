#include "program/assembly/answer_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "base/interrupt.h"
#include "base/terminal_text.h"
#include "learn/estep/sample_lengths.h"
#include "learn/evaluate/advice.h"

namespace rematch {
namespace {

constexpr unsigned kMostThreads = 16;
constexpr int kMultiple = 64;

}  // namespace

std::string answer_budget_warning(const Dataset& data, const Settings& settings,
                                  const ModelFiles& files) {
  const MeasureOptions options{.ordering = settings.data.object_ordering,
                               .seed = settings.seed,
                               .patches = files.patches,
                               .num_threads = static_cast<int>(std::clamp(
                                   std::thread::hardware_concurrency(), 1u, kMostThreads))};
  const std::vector<SampleLength> lengths = measure_samples(
      data, *files.prompts, *files.format, options, [](int64_t) { throw_if_interrupted(); });
  const int most = settings.generation.max_new_tokens;
  const auto longest =
      std::max_element(lengths.begin(), lengths.end(),
                       [](const auto& a, const auto& b) { return a.answer_len < b.answer_len; });
  if (longest == lengths.end() || longest->answer_len <= most) return "";
  const auto num_longer = std::count_if(lengths.begin(), lengths.end(),
                                        [&](const auto& one) { return one.answer_len > most; });
  const int holds = (longest->answer_len * 5 / 4 + kMultiple - 1) / kMultiple * kMultiple;
  return fmt::format(advice::kLongAnswers, data.path(), longest->answer_len,
                     data.samples()[static_cast<size_t>(longest - lengths.begin())].where, most,
                     num_longer, counted(data.size(), "true answer"),
                     settings.is_stage_2() ? "rollouts, " : "", holds);
}

}  // namespace rematch
