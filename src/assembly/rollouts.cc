#include "assembly/rollouts.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "assembly/adapter_setup.h"
#include "assembly/loss_keys.h"
#include "assembly/sample_pixels.h"
#include "evaluate/eval_set.h"
#include "ranks/phase.h"
#include "rollout/engine_factory.h"
#include "text/stop_ids.h"

namespace rematch {
namespace {

std::vector<at::Tensor> parameter_tensors(const Model& model) {
  std::vector<at::Tensor> tensors;
  for (const NamedParameter& parameter : all_parameters(model)) tensors.push_back(parameter.tensor);
  return tensors;
}

std::unique_ptr<Offload> make_offload(const Session& session, Offload::Tensors optimizer,
                                      std::unique_ptr<TensorMover> mover) {
  const Settings& settings = session.settings;
  Terminal& terminal = session.terminal;
  if (!settings.offload.moves_model() && !settings.offload.moves_optimizer()) return nullptr;
  if (!rollout_backends().find(settings.backend).holds_own_weights) {
    terminal.say(fmt::format(
        "offload has no effect with rollout_backend {}: it generates with the training weights",
        settings.backend));
    return nullptr;
  }
  if (!mover->is_on_device(session.model->parameters().front().tensor)) {
    terminal.say(
        fmt::format("offload has no effect on {}: training state is already in host memory",
                    session.device.str()));
    return nullptr;
  }
  const auto warn = [&terminal](const std::string& text) { terminal.warn(text); };
  return std::make_unique<Offload>(
      Offload::Options{.settings = settings.offload, .warn = warn},
      [model = session.model] { return parameter_tensors(*model); }, std::move(mover),
      std::move(optimizer));
}

/// Identity of the validation set.
std::string describe_eval_set(const Session& session) {
  const Dataset& data = *session.val_data;
  return eval_set_text({.num_records = data.size(),
                        .records = data.content_hash(),
                        .labels = session.scorer_options().labels.identity(),
                        .system_prompt = session.prompts->system_prompt(),
                        .user_prompt = session.prompts->user_prompt()});
}

}  // namespace

Rollouts make_rollouts(const Session& session, Offload::Tensors optimizer,
                       std::unique_ptr<TensorMover> mover) {
  const Settings& settings = session.settings;
  PixelStore& pixels = *session.pixels;
  GenerateOptions generate{settings.generation, settings.seed,
                           read_stop_ids(settings.model.directory, *session.tokenizer)};
  generate.repeat_terminate.entry_key = answer_formats().find(session.format_name).entry_key;
  Rollouts rollouts;
  std::optional<OffloadScope> offload_scope;
  // Before a rank starts an engine and waits for the ranks that share it.
  together(session.vllm.ranks != nullptr ? *session.vllm.ranks : alone(), [&] {
    rollouts.offload = make_offload(session, std::move(optimizer), std::move(mover));
    offload_scope.emplace(rollouts.offload.get());
  });
  rollouts.engine =
      make_engine(settings.backend,
                  {.model = session.model,
                   .tokenizer = session.tokenizer,
                   .pixels = sample_pixels(pixels, session.train_data, session.val_data),
                   .vllm = session.vllm},
                  generate);
  offload_scope->restore();
  const auto make_scorer = [&](const std::optional<Dataset>& data, RolloutScorer::Options options) {
    options.stop_ids = generate.stop_ids;
    return data ? std::make_unique<RolloutScorer>(*data, *session.prompts, *session.format, pixels,
                                                  options)
                : nullptr;
  };
  rollouts.train_scorer = make_scorer(session.train_data, session.training_options());
  rollouts.val_scorer = make_scorer(session.val_data, session.scorer_options());
  return rollouts;
}

std::unique_ptr<Evaluation> make_evaluation(const Session& session, const Rollouts& rollouts,
                                            bool teacher_forced, std::vector<double> extra_gates,
                                            Group& group) {
  const Settings& settings = session.settings;
  const Evaluation::TeacherLoss teacher_loss =
      [model = session.row_model(),
       options = loss_options(settings, session.format->coord_token_ids())](const PackedRow& row) {
        return teacher_forced_loss(model, row, options);
      };
  const bool scores = rollouts.val_scorer != nullptr;
  const int batch_size = std::max(settings.evaluation.per_device_eval_batch_size,
                                  scores ? settings.generation.batch_size : 1);
  return std::make_unique<Evaluation>(
      rollouts.val_scorer.get(), scores ? std::optional(rollouts.source()) : std::nullopt,
      teacher_forced ? session.validation_truth() : nullptr, teacher_loss, session.val_data->size(),
      Evaluation::Options{.settings = settings.evaluation,
                          .batch_size = batch_size,
                          .extra_gates = std::move(extra_gates),
                          .eval_set = describe_eval_set(session),
                          .group = &group});
}

}  // namespace rematch
