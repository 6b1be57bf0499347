#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/rollout/native/sequence.h"
#include "engine/rollout/padded_batch.h"
#include "engine/rollout/repeat_guard.h"
#include "engine/rollout/sampler.h"
#include "model/model.h"

namespace rematch {

/// One prompt being answered by the native engine.
struct LiveAnswer {
  /// @param is_repeated  a later prompt is the same
  LiveAnswer(size_t prompt_index, const Prompt& prompt_, const GenerateOptions& options,
             const Tokenizer* tokenizer, const Model& model, std::vector<ImageSpan> spans,
             bool is_repeated)
      : prompt_idx(prompt_index),
        prompt(prompt_),
        images(std::move(spans)),
        sampler(prompt_, options, model.description().text.vocab_size),
        guard(options.repeat_terminate, tokenizer),
        sequence({.arrival = static_cast<int64_t>(prompt_index),
                  .prompt_token_ids = {prompt_.token_ids.begin(), prompt_.token_ids.end()},
                  .images = images,
                  .max_new_tokens = options.max_new_tokens,
                  .is_repeated = is_repeated,
                  .who = sample_name(prompt_.sample_id, prompt_.where)},
                 options.native.block_len) {
    positions_3T = model.positions_3T(prompt_row(prompt_)).contiguous();
    first_new_position = positions_3T.max().item<int64_t>() + 1;
  }

  /// mRoPE position of a token, prompt or answer, on one of the three axes.
  int64_t position(int64_t axis, int64_t token_idx) const {
    const int64_t prompt_len = sequence.prompt_len();
    if (token_idx >= prompt_len) return first_new_position + token_idx - prompt_len;
    return positions_3T.const_data_ptr<int64_t>()[axis * prompt_len + token_idx];
  }

  size_t prompt_idx;  ///< also Sequence::arrival()
  const Prompt& prompt;
  std::vector<ImageSpan> images;
  SamplerRow sampler;
  RepeatGuard guard;
  Sequence sequence;
  at::Tensor positions_3T;
  int64_t first_new_position = 0;
};

}  // namespace rematch
