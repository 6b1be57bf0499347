#include "engine/rollout/native/aten/decode_graphs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace rematch {
namespace {

// Recording costs about two steps.
constexpr int64_t kUsesBeforeRecording = 3;
constexpr int64_t kFewSequences = 8, kTokenGranularity = 128, kTokenGranularityInPages = 1024;
// Relative to the largest logit; kernels may sum in a different order.
constexpr double kTolerance = 1e-2;

void copy_inputs(DecodeInputs from, DecodeInputs& to) {
  const std::vector<at::Tensor*> sources = from.tensors(), targets = to.tensors();
  for (size_t i = 0; i < sources.size(); ++i) targets[i]->copy_(*sources[i]);
}

DecodeInputs clone_inputs(DecodeInputs from) {
  for (at::Tensor* tensor : from.tensors()) *tensor = tensor->clone();
  return from;
}

// Sequences and tokens of the longest one.
std::pair<int64_t, int64_t> size_of(const CachedTokens& cached) {
  return cached.pages.is_defined() ? std::pair(cached.pages.pages_SB.size(0), cached.pages.max_len)
                                   : std::pair(cached.slots_SL.size(0), cached.slots_SL.size(1));
}

bool is_near(const at::Tensor& found, const at::Tensor& wanted) {
  const double largest = wanted.abs().max().item<double>(),
               difference = (found - wanted).abs().max().item<double>();
  return difference <= kTolerance * largest;  // false for NaN
}

}  // namespace

std::vector<at::Tensor*> DecodeInputs::tensors() {
  std::vector<at::Tensor*> all{&token_ids_S,
                               &positions_3S,
                               &slots_S,
                               &states_S,
                               &cached.slots_SL,
                               &cached.mask_S11L,
                               &cached.pages.pages_SB,
                               &cached.pages.lens_S,
                               &cached.pages.begins};
  std::erase_if(all, [](const at::Tensor* tensor) { return !tensor->defined(); });
  return all;
}

bool DecodeGraphs::can_run(const Step& step) const {
  const auto decodes = [](const StepSequence& sequence) {
    return sequence.num_rows == 1 && sequence.num_logits == 1 && sequence.num_cached > 0;
  };
  return make_graph_ && step.visual_rows.empty() && std::ranges::all_of(step.sequences, decodes);
}

std::pair<int64_t, int64_t> DecodeGraphs::padded_size(int64_t num_sequences, int64_t num_tokens,
                                                      bool in_pages) {
  const int64_t granularity = in_pages ? kTokenGranularityInPages : kTokenGranularity;
  int64_t rows = 1;
  // without pages each row gathers its keys and values
  while (rows < num_sequences)
    rows = in_pages || rows < kFewSequences ? 2 * rows : rows + kFewSequences;
  return {rows, (num_tokens + granularity - 1) / granularity * granularity};
}

at::Tensor DecodeGraphs::run(const DecodeInputs& padded, int64_t num_sequences) {
  Size& size = sizes_[size_of(padded.cached)];
  if (size.graph != nullptr) {
    copy_inputs(padded, size.inputs);
    size.graph->replay();
    return size.logits_SV.narrow(0, 0, num_sequences);
  }
  const bool is_recorded = ++size.num_uses >= kUsesBeforeRecording;
  return (is_recorded ? record(size, padded) : compute_(padded)).narrow(0, 0, num_sequences);
}

at::Tensor DecodeGraphs::record(Size& size, const DecodeInputs& padded) {
  const std::function<void()> put_back = remember_ ? remember_(padded) : [] {};
  const at::Tensor logits_SV = compute_(padded);
  size.inputs = clone_inputs(padded);
  size.logits_SV = at::empty_like(logits_SV);
  std::string reason;
  std::unique_ptr<StepGraph> graph;
  try {
    graph = make_graph_();
    put_back();
    graph->capture([&] { size.logits_SV.copy_(compute_(size.inputs)); });
    size.logits_SV.zero_();
    put_back();
    graph->replay();
    if (!is_near(size.logits_SV, logits_SV)) reason = "a replay differs from the step it repeats";
  } catch (const std::exception& error) {
    reason = first_line(error.what());
  }
  if (reason.empty()) {
    size.graph = std::move(graph);
    return logits_SV;
  }
  turn_off(reason);
  if (!remember_) return logits_SV;
  put_back();
  return compute_(padded);
}

void DecodeGraphs::clear() {
  for (auto& [rows_and_tokens, size] : sizes_)
    size = {.num_uses = size.num_uses < kUsesBeforeRecording ? 0 : kUsesBeforeRecording};
}

void DecodeGraphs::turn_off(const std::string& reason) {
  fmt::print(stderr, "native: steps run without recorded graphs ({})\n", reason);
  make_graph_ = {};
  sizes_.clear();
}

}  // namespace rematch
