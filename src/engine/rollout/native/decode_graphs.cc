#include "engine/rollout/native/decode_graphs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace rematch {
namespace {

// Recording costs about two steps.
constexpr int64_t kUsesBeforeRecording = 3;
constexpr int64_t kFewSequences = 8, kTokenGranularity = 128;
// Relative to the largest logit; kernels may sum in a different order.
constexpr double kTolerance = 1e-2;

void copy_inputs(const DecodeInputs& from, DecodeInputs& to) {
  to.token_ids_S.copy_(from.token_ids_S);
  to.positions_3S.copy_(from.positions_3S);
  to.slots_S.copy_(from.slots_S);
  to.cached_slots_SL.copy_(from.cached_slots_SL);
  to.mask_S11L.copy_(from.mask_S11L);
}

DecodeInputs clone_inputs(const DecodeInputs& from) {
  return {from.token_ids_S.clone(), from.positions_3S.clone(), from.slots_S.clone(),
          from.cached_slots_SL.clone(), from.mask_S11L.clone()};
}

bool is_near(const at::Tensor& found, const at::Tensor& wanted) {
  const double largest = wanted.abs().max().item<double>(),
               difference = (found - wanted).abs().max().item<double>();
  return difference <= kTolerance * largest;  // false for NaN
}

}  // namespace

bool DecodeGraphs::can_run(const Step& step) const {
  const auto decodes = [](const StepSequence& sequence) {
    return sequence.num_rows == 1 && sequence.num_logits == 1;
  };
  return make_graph_ && step.visual_rows.empty() &&
         std::all_of(step.sequences.begin(), step.sequences.end(), decodes);
}

std::pair<int64_t, int64_t> DecodeGraphs::padded_size(int64_t num_sequences, int64_t num_tokens) {
  int64_t rows = 1;
  while (rows < num_sequences) rows = rows < kFewSequences ? 2 * rows : rows + kFewSequences;
  return {rows, (num_tokens + kTokenGranularity - 1) / kTokenGranularity * kTokenGranularity};
}

at::Tensor DecodeGraphs::run(const DecodeInputs& padded, int64_t num_sequences) {
  Size& size = sizes_[{padded.cached_slots_SL.size(0), padded.cached_slots_SL.size(1)}];
  if (size.graph != nullptr) {
    copy_inputs(padded, size.inputs);
    size.graph->replay();
    return size.logits_SV.narrow(0, 0, num_sequences);
  }
  const at::Tensor logits_SV = compute_(padded);
  if (++size.num_uses >= kUsesBeforeRecording) record(size, padded, logits_SV);
  return logits_SV.narrow(0, 0, num_sequences);
}

void DecodeGraphs::record(Size& size, const DecodeInputs& padded, const at::Tensor& logits_SV) {
  size.inputs = clone_inputs(padded);
  size.logits_SV = at::empty_like(logits_SV);
  std::unique_ptr<StepGraph> graph;
  try {
    graph = make_graph_();
    graph->capture([&] { size.logits_SV.copy_(compute_(size.inputs)); });
    size.logits_SV.zero_();
    graph->replay();
    if (!is_near(size.logits_SV, logits_SV))
      return turn_off("a replay differs from the step it repeats");
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    return turn_off(reason.substr(0, reason.find('\n')));
  }
  size.graph = std::move(graph);
}

void DecodeGraphs::turn_off(const std::string& reason) {
  fmt::print(stderr, "native: steps run without recorded graphs ({})\n", reason);
  make_graph_ = {};
  sizes_.clear();
}

}  // namespace rematch
