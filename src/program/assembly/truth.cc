#include "program/assembly/truth.h"

#include <utility>

#include "model/adapter.h"
#include "model/row.h"
#include "program/assembly/sample_pixels.h"

namespace rematch {

LabelMatch label_match(const Job& job) {
  return LabelMatch::from(
      job.settings().match.label_match,
      [own = job.files.tokenizer](std::string_view text) { return own->normalize(text); });
}

RolloutScorer::Options scoring_options(const Job& job) {
  const Settings& settings = job.settings();
  return {.match = settings.match,
          .labels = label_match(job),
          .ordering = settings.data.object_ordering,
          .seed = settings.seed,
          .patches = job.files.patches,
          .backend = settings.backend,
          .usual_prompt = settings.prompt.user_prompt.value_or("")};
}

RolloutScorer::Options training_options(const Job& job) {
  RolloutScorer::Options options = scoring_options(job);
  options.augment = job.settings().augment;
  return options;
}

std::unique_ptr<TruthSegments> validation_truth(const Job& job) {
  return std::make_unique<TruthSegments>(
      *job.data.val, *job.files.prompts, *job.files.format, *job.pixels, scoring_options(job),
      TruthSegments::Caps{.segment_tokens = job.settings().max_length()});
}

std::unique_ptr<TruthSegments> training_truth(const Job& job, int row_tokens) {
  const Settings& settings = job.settings();
  return std::make_unique<TruthSegments>(
      *job.data.train, *job.files.prompts, *job.files.format, *job.pixels, training_options(job),
      TruthSegments::Caps{.segment_tokens = settings.max_length(), .row_tokens = row_tokens},
      InputNoise{.sigma_bins = settings.data.coord_input_noise, .seed = settings.seed});
}

std::unique_ptr<StreamPacking> make_stream_packing(const Job& job) {
  const Settings& settings = job.settings();
  if (!settings.pack.enabled || settings.is_stage_2()) return nullptr;
  const std::shared_ptr<const TruthSegments> source = training_truth(job, /*row_tokens=*/0);
  const StreamSamples samples{
      .num_samples = job.data.train->size(),
      .encoded_len = [source](int64_t sample_idx,
                              int64_t epoch) { return source->encoded_len(sample_idx, epoch); },
      .vary_by_epoch = source->lengths_vary_by_epoch()};
  auto packing = std::make_unique<StreamPacking>(
      samples, StreamOptions{.pack = settings.pack, .packing_length = settings.max_length()},
      [&](int64_t num_measured) {
        job.terminal.progress(
            {.phase = "measure", .done = num_measured, .total = samples.num_samples});
      });
  job.terminal.finish_progress();
  job.terminal.say(packing->start_text());
  return packing;
}

RowModel make_row_model(const Job& job, const std::shared_ptr<Model>& model,
                        FeatureCache* features) {
  return {.hidden_TH =
              [model, features, get = sample_pixels(*job.pixels, job.data.train, job.data.val)](
                  const PackedRow& row) {
                const RowBatch batch = make_row(row, get);
                return forward_row(*model, batch, features);
              },
          .head = Head::of(model->head()),
          .training_row =
              [model](int64_t step, int64_t row_idx) {
                return model->adapter() ? model->adapter()->training_row(step, row_idx)
                                        : RowScope();
              }};
}

}  // namespace rematch
