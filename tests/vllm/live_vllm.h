#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/rollout/engine_factory.h"

namespace rematch::test {

/// The reason why the real vLLM cannot be used here; empty when it can. Computed once.
const std::string& why_no_vllm();

/// Skips the test with the reason where vLLM is not installed.
#define REMATCH_NEEDS_VLLM()                                                       \
  if (const std::string& reason = ::rematch::test::why_no_vllm(); !reason.empty()) \
  GTEST_SKIP() << reason

/// A model and questions to it, with real pictures in a temporary directory.
struct Questions {
  std::shared_ptr<Model> model;
  EngineParts parts;
  std::vector<Prompt> prompts;
  std::vector<int> stop_ids;

  GenerateOptions options(int max_new_tokens) const {
    return {{.max_new_tokens = max_new_tokens, .batch_size = 8}, 0, stop_ids};
  }
  std::vector<std::vector<int>> answers(RolloutEngine& engine) const;
};

/// Pictures of many sizes asked about.
/// @param model_dir  with tokenizer and image processor
Questions questions(const std::string& model_dir, int num_prompts);
/// The same of image files.
Questions questions_about(const std::string& model_dir, const std::vector<std::string>& paths);

/// Runs a recipe of dev/goldens with the Python that has vLLM; a failure fails the test.
void make_goldens(const std::string& arguments);

/// The demonstration's architecture with random weights and an untied head, whose processor
/// resizes to areas of 4096 to 32768 pixels; made once, in a temporary directory.
const std::string& random_model();

/// A random Qwen2.5-VL checkpoint as transformers writes it, with the same areas; made once.
const std::string& windows_model();

/// Difference of two lists of greedy answers: rows that differ where the two best logits of `model`
/// do not nearly tie, and rows that do.
struct Differences {
  int unexplained = 0;
  int near_ties = 0;
};
Differences compare(const Questions& asked, const std::vector<std::vector<int>>& hf,
                    const std::vector<std::vector<int>>& vllm);

}  // namespace rematch::test
