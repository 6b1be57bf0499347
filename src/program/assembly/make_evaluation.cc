#include "program/assembly/make_evaluation.h"

#include <utility>

#include "learn/evaluate/eval_set.h"
#include "program/assembly/loss_keys.h"
#include "program/assembly/truth.h"

namespace rematch {
namespace {

/// Identity of the validation set.
std::string describe_eval_set(const Job& job) {
  const Dataset& data = *job.data.val;
  return eval_set_text({.num_records = data.size(),
                        .records = data.content_hash(),
                        .labels = label_match(job).identity(),
                        .system_prompt = job.files.prompts->system_prompt(),
                        .user_prompt = job.files.prompts->user_prompt()});
}

}  // namespace

std::unique_ptr<Evaluation> make_evaluation(const Job& job, const std::shared_ptr<Model>& model,
                                            const std::optional<Engine>& engine,
                                            std::vector<double> extra_gates) {
  const Settings& settings = job.settings();
  std::optional<Evaluation::Answers> answers;
  if (engine)
    answers.emplace(make_scorer(job, *job.data.val, scoring_options(job), *engine),
                    engine->source());
  std::optional<Evaluation::Truth> truth;
  if (measures_truth(job.use, settings)) {
    truth.emplace(validation_truth(job),
                  [model = make_row_model(job, model),
                   options = loss_options(settings, job.files.format->coord_token_ids())](
                      const PackedRow& row) { return teacher_forced_loss(model, row, options); });
  }
  const int batch_size =
      engine ? engine->batch_size : settings.evaluation.per_device_eval_batch_size;
  return std::make_unique<Evaluation>(std::move(answers), std::move(truth), job.data.val->size(),
                                      Evaluation::Options{.settings = settings.evaluation,
                                                          .batch_size = batch_size,
                                                          .extra_gates = std::move(extra_gates),
                                                          .eval_set = describe_eval_set(job),
                                                          .group = &job.group});
}

}  // namespace rematch
