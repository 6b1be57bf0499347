#include "program/assembly/parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "learn/evaluate/eval_set.h"
#include "learn/train/bad_samples.h"
#include "model/adapter.h"
#include "program/assembly/loss_keys.h"

namespace rematch {
namespace {

/// The first record with an image; null when there is none.
const Sample* find_record(const std::string& image_path, const std::optional<Dataset>& data) {
  if (!data) return nullptr;
  for (const Sample& sample : data->samples()) {
    if (contains(sample.image_paths, image_path)) return &sample;
  }
  return nullptr;
}

}  // namespace

PixelGetter sample_pixels(const Job& job) {
  return [&job](const ImageRef& image) {
    try {
      return job.pixels->get(image);
    } catch (const UserError& error) {
      const Sample* const trained = find_record(image.path, job.data.train);
      const Sample* const record =
          trained != nullptr ? trained : find_record(image.path, job.data.val);
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) {
        if (record != nullptr) problem.where += fmt::format(" ({})", record->where);
        problem.fix += trained != nullptr
                           ? "; a resumed run needs the same records: restore the file, "
                             "or add --resume --set data.on_bad_sample=skip"
                           : "; then resume";
      }
      throw BadSample(error.kind(), std::move(problems));
    }
  };
}

LabelMatch label_match(const Job& job) {
  return LabelMatch::from(
      job.settings().match.label_match,
      [own = job.files.tokenizer](std::string_view text) { return own->normalize(text); });
}

RolloutScorer::Options scoring_options(const Job& job) {
  const Settings& settings = job.settings();
  return {.match = settings.match,
          .labels = label_match(job),
          .ordering = {settings.data.object_ordering, job.order},
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
              [model, features, get = sample_pixels(job)](const PackedRow& row) {
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

std::function<void()> meeting_of(const Model& model) {
  if (!model.blocks()) return {};
  return [blocks = model.blocks()] { blocks->meet(); };
}

std::unique_ptr<Evaluation> make_evaluation(const Job& job, const std::shared_ptr<Model>& model,
                                            const std::optional<Engine>& engine,
                                            std::vector<double> extra_gates) {
  const Settings& settings = job.settings();
  const Dataset& data = *job.data.val;
  std::optional<Evaluation::Answers> answers;
  if (engine)
    answers.emplace(make_scorer(job, data, scoring_options(job), *engine), engine->source());
  std::optional<Evaluation::Truth> truth;
  if (measures_truth(job.use, settings)) {
    truth.emplace(
        std::make_unique<TruthSegments>(
            data, *job.files.prompts, *job.files.format, *job.pixels, scoring_options(job),
            TruthSegments::Caps{.segment_tokens = settings.max_length()}),
        [model = make_row_model(job, model),
         options = loss_options(settings, job.files.format->coord_token_ids())](
            const PackedRow& row) { return teacher_forced_loss(model, row, options); },
        meeting_of(*model));
  }
  const int batch_size =
      engine ? engine->batch_size : settings.evaluation.per_device_eval_batch_size;
  return std::make_unique<Evaluation>(
      std::move(answers), std::move(truth), data.size(),
      Evaluation::Options{
          .settings = settings.evaluation,
          .batch_size = batch_size,
          .extra_gates = std::move(extra_gates),
          .eval_set = eval_set_text({.num_records = data.size(),
                                     .records = data.content_hash(),
                                     .labels = label_match(job).identity(),
                                     .system_prompt = job.files.prompts->system_prompt(),
                                     .user_prompt = job.files.prompts->user_prompt(),
                                     .scoring = scoring_text(job.source.config)}),
          .group = &job.group});
}

}  // namespace rematch
