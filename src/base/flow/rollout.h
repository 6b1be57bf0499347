#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "base/flow/token.h"

namespace rematch {

/// A model's input: expanded token ids and the images of their pads.
struct Prompt {
  int64_t sample_id = 0;
  int64_t epoch = 0;               ///< with the seed and sample_id, the key of sampling randomness
  std::vector<TokenId> token_ids;  ///< every image pad present (`grid/merge²` of them per image)
  std::vector<ImageRef> images;    ///< in the order of their pads
  /// width and height of the first image as the model sees it; 0 without one
  std::array<int, 2> resized_px{};
  std::string where;  ///< "path:line" of the sample, for errors

  friend void fields(auto& wire, Prompt& prompt) {
    wire(prompt.sample_id, prompt.epoch, prompt.token_ids, prompt.images, prompt.resized_px,
         prompt.where);
  }
};

enum class FinishReason {
  kStop,    ///< the model wrote a stop token
  kLength,  ///< max_new_tokens reached
  kRepeat,  ///< the repeat guard ended it
};

inline const char* finish_reason_name(FinishReason reason) {
  return reason == FinishReason::kStop     ? "stop"
         : reason == FinishReason::kLength ? "length"
                                           : "repeat";
}

/// A model's answer.
struct Rollout {
  int64_t sample_id = 0;
  std::vector<TokenId> prompt_token_ids;    ///< as the backend used them (expanded)
  std::vector<TokenId> response_token_ids;  ///< without the stop token and anything after it
  /// log-probability of each response token (BEHAVIOUR 20.1); empty if the backend gives none
  std::vector<float> token_logprobs;
  FinishReason finish_reason = FinishReason::kStop;

  friend void fields(auto& wire, Rollout& rollout) {
    wire(rollout.sample_id, rollout.prompt_token_ids, rollout.response_token_ids,
         rollout.token_logprobs, rollout.finish_reason);
  }
};

}  // namespace rematch
