#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "learn/evaluate/evaluate.h"
#include "program/assembly/engine.h"

namespace rematch {

/// Makes the evaluation on the job's validation records: answers if there is an engine, and in
/// stage 1 the loss on the whole truth, where the job measures it. The parts must outlive it.
/// @param extra_gates  further IoU gates to score at
std::unique_ptr<Evaluation> make_evaluation(const Job& job, const std::shared_ptr<Model>& model,
                                            const std::optional<Engine>& engine,
                                            std::vector<double> extra_gates = {});

}  // namespace rematch
