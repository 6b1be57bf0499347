#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"
#include "model/checkpoint/safetensors.h"

namespace rematch {

// BEHAVIOUR 4.2: rollouts may differ from the oracle's where two logits nearly tie, and that is
// counted.
TEST(NearTies, AreToldAtTheEndOfARun) {
  test::Program program;
  const std::string directory = program.dir().file("model"),
                    weights = directory + "/model.safetensors";
  std::filesystem::copy(test::Program::model(), directory);
  std::vector<TensorEntry> tensors;
  {
    const auto file = SafetensorsFile::open(weights);
    for (const std::string& name : file->names()) {
      at::Tensor tensor = file->tensor(name).clone();
      // every token has the same logit
      if (name.ends_with("embed_tokens.weight")) tensor.copy_(tensor[0].clone().expand_as(tensor));
      tensors.push_back({name, tensor});
    }
  }
  write_safetensors(weights, tensors);
  const auto told = [&](const std::string& more) {
    const test::ProcessResult result =
        program.run("train " + program.config("training: {max_steps: 1}\n" + more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err.find("greedy choices between logits that nearly tie") != std::string::npos;
  };
  for (const std::string backend : {"hf", "native"}) {
    const std::string line =
        "custom: {extra: {rollout_matching: {max_new_tokens: 3, rollout_backend: " + backend +
        "}}}\n";
    EXPECT_FALSE(told(line)) << backend;
    EXPECT_TRUE(told("model: {model: " + directory + "}\n" + line)) << backend;
  }
}

}  // namespace rematch
