#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "program/assembly/engine.h"

namespace rematch {

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
