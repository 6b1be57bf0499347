#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/rollout/native/aten/step_graph.h"
#include "engine/rollout/native/step.h"
#include "model/nn/attention_choice.h"

namespace rematch {

/// Places of the cached keys and values of S sequences: pages that attention reads, or slots that
/// are gathered. L tokens of the longest.
struct CachedTokens {
  PageTable pages;
  at::Tensor slots_SL;   ///< int64; the spare slot after the end of a sequence
  at::Tensor mask_S11L;  ///< added to scores: 0, or −∞ after the end

  bool is_defined() const { return pages.is_defined() || slots_SL.defined(); }
};

/// Inputs of a step in which every sequence decodes one token. S and L may be padded.
struct DecodeInputs {
  at::Tensor token_ids_S;   ///< int64
  at::Tensor positions_3S;  ///< int64
  at::Tensor slots_S;       ///< int64; slot of each row's key and value
  at::Tensor states_S;      ///< int64; slot of each row's state; undefined = the model has none
  CachedTokens cached;

  /// The defined tensors.
  std::vector<at::Tensor*> tensors();
};

/// Replays decoding steps as device graphs. A step is padded to one of a few sizes, and each size
/// is recorded after it has occurred several times. If the first replay of a size differs from the
/// computed result, replays are turned off: a graph that reads stale memory raises no error.
class DecodeGraphs {
 public:
  /// Logits of a step's sequences, float32 on the device: [S, V].
  using Compute = std::function<at::Tensor(const DecodeInputs&)>;

  /// Remembers what computing a step changes and a later step reads; the function puts it back.
  using Remember = std::function<std::function<void()>(const DecodeInputs&)>;

  /// @param make_graph  empty = never replay
  /// @param remember    empty = a step may be computed again
  DecodeGraphs(StepGraphMaker make_graph, Compute compute, Remember remember = {})
      : make_graph_(std::move(make_graph)),
        compute_(std::move(compute)),
        remember_(std::move(remember)) {}

  /// True if run() accepts a step: every sequence decodes after some token and needs logits.
  bool can_run(const Step& step) const;
  /// Padded size of a step of this many sequences and tokens.
  /// @param in_pages  tokens are read in pages, so that their number bounds work and adds none:
  ///                  coarser, for fewer recordings
  static std::pair<int64_t, int64_t> padded_size(int64_t num_sequences, int64_t num_tokens,
                                                 bool in_pages);
  /// Logits [num_sequences, V] of a padded step, replayed or computed.
  at::Tensor run(const DecodeInputs& padded, int64_t num_sequences);
  /// Drops all recordings; call it before the cache or the weights move. A size that was recorded
  /// is recorded again when it occurs first.
  void clear();

 private:
  struct Size {
    int64_t num_uses = 0;
    DecodeInputs inputs;  ///< memory that the recording reads
    at::Tensor logits_SV;
    std::unique_ptr<StepGraph> graph;
  };
  // @return  logits of the step
  at::Tensor record(Size& size, const DecodeInputs& padded);
  void turn_off(const std::string& reason);

  StepGraphMaker make_graph_;
  Compute compute_;
  Remember remember_;
  std::map<std::pair<int64_t, int64_t>, Size> sizes_;
};

}  // namespace rematch
