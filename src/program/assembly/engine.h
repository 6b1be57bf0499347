#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/rollout/engine.h"
#include "engine/rollout/offload.h"
#include "learn/estep/roll_out.h"
#include "program/assembly/job.h"

namespace rematch {

/// A running engine.
struct Engine {
  std::unique_ptr<Offload> offload;  ///< null when off or without effect
  std::unique_ptr<RolloutEngine> engine;
  std::vector<TokenId> stop_ids;
  int batch_size = 1;  ///< samples that an evaluation passes to it together

  RolloutSource source() const { return {*engine, offload.get()}; }
};

/// Starts the configured backend while the model is offloaded. Every rank calls it.
/// @param generation  decoding settings
/// @param mover       tests replace it
/// @throws UserError as make_engine(), on all ranks if on any
Engine start_engine(const Job& job, const std::shared_ptr<Model>& model,
                    const GenerationSettings& generation,
                    std::unique_ptr<TensorMover> mover = make_tensor_mover());

/// Makes the scorer of an engine's answers. Job and data must outlive it.
/// @param options  scoring_options(); the engine's stop ids are added
RolloutScorer make_scorer(const Job& job, const Dataset& data, RolloutScorer::Options options,
                          const Engine& engine);

/// A question that is asked: its job, and then the model and the engine that answers.
class Asking {
 public:
  /// Opens the job. Every rank calls it, as the functions below.
  /// @throws UserError as open_job()
  Asking(JobSource source, Use use, const Place& place);

  /// Loads the model, and starts the engine if the job needs one.
  void start();
  /// Answers all records, in order, one process alone.
  void answer_records(const std::function<void(const ScoredRollout&)>& visit) const;

  const Job& job() const { return job_; }
  const std::shared_ptr<Model>& model() const { return model_; }
  const std::optional<Engine>& engine() const { return engine_; }

 private:
  Job job_;
  std::shared_ptr<Model> model_;
  std::optional<Engine> engine_;
};

}  // namespace rematch
