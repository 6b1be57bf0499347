#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "learn/estep/truth_segments.h"
#include "learn/evaluate/evaluate.h"
#include "learn/mstep/mstep.h"
#include "learn/pack/stream_packing.h"
#include "model/feature_cache.h"
#include "model/row.h"
#include "program/assembly/engine.h"

namespace rematch {

/// Returns a getter of the patches of images. It turns errors into BadSample, which names the
/// record of the image and says how to continue the run. The job must outlive it.
PixelGetter sample_pixels(const Job& job);

/// The rule that compares labels, in the form of the job's tokenizer.
LabelMatch label_match(const Job& job);
/// Options of a scorer for samples as they are, without the stop ids.
RolloutScorer::Options scoring_options(const Job& job);
/// The same with augmentation, for training samples.
RolloutScorer::Options training_options(const Job& job);

/// Makes the builder of full ground-truth segments of the training data, with noise and
/// augmentation. The job must outlive it, as in the functions below.
/// @param row_tokens  cap of a packed micro-batch; 0 = none
std::unique_ptr<TruthSegments> training_truth(const Job& job, int row_tokens);

/// Packs the training data of stage 1 by length, with a progress bar. Null when the rows of a run
/// are not packed beforehand.
/// @throws UserError (data) for samples that are too long for a row
std::unique_ptr<StreamPacking> make_stream_packing(const Job& job);

/// Makes the model of the M-step.
/// @param features  cache of the features of recurring rows; may be null
RowModel make_row_model(const Job& job, const std::shared_ptr<Model>& model,
                        FeatureCache* features = nullptr);

/// Makes a function that every rank calls after its passes through the model: it returns when all
/// have. Empty if ranks need each other for no pass.
std::function<void()> meeting_of(const Model& model);

/// Makes the evaluation on the job's validation records: answers if there is an engine, and in
/// stage 1 the loss on the whole truth, where the job measures it. The parts must outlive it.
/// @param extra_gates  further IoU gates to score at
std::unique_ptr<Evaluation> make_evaluation(const Job& job, const std::shared_ptr<Model>& model,
                                            const std::optional<Engine>& engine,
                                            std::vector<double> extra_gates = {});

}  // namespace rematch
