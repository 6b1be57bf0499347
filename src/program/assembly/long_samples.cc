#include "program/assembly/long_samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/augment/augmentation.h"
#include "learn/estep/sample_lengths.h"
#include "learn/evaluate/advice.h"
#include "program/assembly/plan_request.h"
#include "tools/plan/engine.h"

namespace rematch {
namespace {

constexpr int kMultiple = 64;  ///< of tokens, for an answer budget

/// True when the order of a sample's objects varies during a run.
bool orders_vary(const Settings& settings) {
  const bool follows_rollout = settings.is_stage_2() && settings.target.policy == "rewrite" &&
                               settings.target.rewrite_order != RewriteOrder::kTruth;
  return follows_rollout || settings.data.object_ordering != ObjectOrdering::kSorted;
}

/// Largest distance of shown coordinates. Rollouts and noise may show any number.
int coord_slack_bins(const Settings& settings) {
  return settings.is_stage_2() || settings.data.coord_input_noise > 0 ? kNumBins : 0;
}

std::vector<SampleLength> measure(const Dataset& dataset, const Settings& settings,
                                  const ModelFiles& files, const AugmentSettings& augment,
                                  Report& report) {
  const bool moves = augment.moves_objects();
  const MeasureOptions options{.ordering = settings.data.object_ordering,
                               .seed = settings.seed,
                               .any_order = orders_vary(settings) || moves,
                               .coord_slack_bins = moves ? kNumBins : coord_slack_bins(settings),
                               .num_new_vertices = augment.crop < 1 ? kMaxNewVertices : 0,
                               .augment = augment,
                               .patches = files.patches};
  const auto show = [&](int64_t num_done) {
    throw_if_interrupted();
    report.progress({.phase = "measure", .done = num_done, .total = dataset.size()});
  };
  std::vector<SampleLength> lengths =
      measure_samples(dataset, *files.prompts, *files.format, options, show);
  report.finish_progress();
  return lengths;
}

// "line 5 (4200 = 3900 + 300), …".
std::string list_samples(const Dataset& dataset, const std::vector<SampleLength>& lengths,
                         const std::vector<int64_t>& which) {
  Strings texts;
  for (const int64_t i : which) {
    const SampleLength& length = lengths[i];
    const Sample& sample = dataset.samples()[i];
    texts.push_back(fmt::format(
        "{} ({} = {} + {})",
        dataset.parts().size() > 1 ? sample.where : fmt::format("line {}", sample.sample_id + 1),
        length.total(), length.prompt_len, length.answer_len));
  }
  return join(texts, ", ");
}

// In the worst case a rollout of max_new_tokens finds nothing and the whole truth is appended.
void warn_of_long_rollouts(const Dataset& dataset, const std::vector<SampleLength>& lengths,
                           const Settings& settings, int64_t cap, Report& report) {
  if (!settings.is_stage_2() || settings.target.policy != "append") return;
  const int max_new_tokens = settings.generation.max_new_tokens;
  int64_t num_at_risk = 0, longest = 0;
  for (const SampleLength& length : lengths) {
    const int64_t worst = int64_t{length.total()} + max_new_tokens;
    if (length.total() > cap) continue;
    num_at_risk += worst > cap ? 1 : 0;
    longest = std::max(longest, worst);
  }
  if (num_at_risk == 0) return;
  report.warn(fmt::format(
      advice::kLongRollouts, num_at_risk, dataset.size(), dataset.path(), cap, max_new_tokens,
      longest, settings.data.on_bad_sample == OnBadSample::kSkip ? "is left out" : "is an error"));
}

}  // namespace

int64_t settle_long_samples(Dataset& dataset, const Settings& settings, const ModelFiles& files,
                            const AugmentSettings& augment, Report& report) {
  const int64_t cap = settings.model.global_max_length.value_or(0);
  if (cap <= 0) return 0;
  const std::vector<SampleLength> lengths = measure(dataset, settings, files, augment, report);
  std::vector<int64_t> too_long;
  int longest = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    longest = std::max(longest, lengths[i].total());
    if (lengths[i].total() > cap) too_long.push_back(static_cast<int64_t>(i));
  }
  const auto num_long = std::ssize(too_long);
  const bool deletes = settings.data.truncation_strategy == LongSamples::kDelete;
  if (num_long > 0 && (!deletes || num_long == dataset.size())) {
    throw data_error(
        {.error = fmt::format("{} of {} samples are longer than global_max_length", num_long,
                              dataset.size()),
         .where = dataset.path(),
         .what = fmt::format("cap {} tokens; prompt + answer of {}", cap,
                             list_samples(dataset, lengths, too_long)),
         .fix = fmt::format(
             "raise global_max_length ({} holds them all), lower template.max_pixels for smaller "
             "images{}",
             longest,
             num_long == dataset.size()
                 ? ""
                 : ", or drop them with template.truncation_strategy: delete")});
  }
  warn_of_long_rollouts(dataset, lengths, settings, cap, report);
  if (num_long == 0) return 0;
  report.warn(fmt::format(
      "template.truncation_strategy: delete dropped {} of {} samples of {}, longer than "
      "global_max_length ({}): {}",
      num_long, dataset.size(), dataset.path(), cap, list_samples(dataset, lengths, too_long)));
  dataset = dataset.copy_without(too_long);
  return num_long;
}

std::string answer_budget_warning(const Dataset& data, const Settings& settings,
                                  const ModelFiles& files, const at::Device& device) {
  const std::vector<SampleLength> lengths = measure_samples(
      data, *files.prompts, *files.format,
      {.ordering = settings.data.object_ordering, .seed = settings.seed, .patches = files.patches},
      [](int64_t) { throw_if_interrupted(); });
  const auto prompt = std::ranges::max_element(lengths, {}, &SampleLength::prompt_len);
  if (prompt == lengths.end()) return "";
  if (settings.generation.native.kv_cache_gib > 0)
    check_native_cache(plan_request(settings, {.on_gpu = !device.is_cpu()}), prompt->prompt_len,
                       data.samples()[prompt - lengths.begin()].where);
  const int most = settings.generation.max_new_tokens;
  const auto longest = std::ranges::max_element(lengths, {}, &SampleLength::answer_len);
  if (longest->answer_len <= most) return "";
  const auto num_longer =
      std::ranges::count_if(lengths, [&](const auto& one) { return one.answer_len > most; });
  const int holds = (longest->answer_len * 5 / 4 + kMultiple - 1) / kMultiple * kMultiple;
  return fmt::format(advice::kLongAnswers, data.path(), longest->answer_len,
                     data.samples()[longest - lengths.begin()].where, most, num_longer,
                     counted(data.size(), "true answer"), settings.is_stage_2() ? "rollouts, " : "",
                     holds);
}

}  // namespace rematch
