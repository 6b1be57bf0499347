#pragma once
#include <string>
#include <vector>

#include "engine/rollout/hf_engine.h"

namespace rematch::test {

/// Prompts and transformers' greedy answers as dev/goldens/rollout_generate.py writes them.
struct GenerateGolden {
  std::vector<Prompt> prompts;  ///< image paths are the numbers of the images
  int new_tokens = 0;
  std::vector<std::vector<int>> plain;      ///< repetition_penalty 1.0
  std::vector<std::vector<int>> penalised;  ///< repetition_penalty 1.3
  /// log-probabilities of their tokens under the raw logits
  std::vector<std::vector<double>> plain_logprobs, penalised_logprobs;
};

GenerateGolden load_generate_golden(const std::string& path);

/// The made-up pixels of that script; ImageRef::path is the image's number.
std::shared_ptr<const Patches> synthetic_pixels(const ImageRef& image);

/// Response ids of each rollout.
std::vector<std::vector<int>> responses(const std::vector<Rollout>& rollouts);

/// Expects the log-probabilities of transformers to 1e-5 (relative beyond 1), up to the first token
/// that differs from its ids.
void expect_logprobs(const std::vector<Rollout>& rollouts, const std::vector<std::vector<int>>& ids,
                     const std::vector<std::vector<double>>& logprobs);

/// The engine's model and tokenizer, loaded once per directory in float32.
struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
};
const LoadedModel& rollout_model();

}  // namespace rematch::test
