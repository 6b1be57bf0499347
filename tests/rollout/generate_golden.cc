#include "rollout/generate_golden.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/text/tokenizer.h"
#include "support/paths.h"

namespace rematch::test {

GenerateGolden load_generate_golden(const std::string& path) {
  const Json json = read_json_file(path);
  GenerateGolden golden;
  int number = 0;
  for (const Json& item : json["prompts"]) {
    Prompt prompt{.sample_id = static_cast<int64_t>(golden.prompts.size()), .where = "golden"};
    prompt.token_ids = item["token_ids"].get<std::vector<int>>();
    for (const Json& grid : item["grids"]) {
      prompt.images.push_back({.path = std::to_string(number++), .grid_thw = grid.get<GridThw>()});
    }
    golden.prompts.push_back(std::move(prompt));
  }
  golden.new_tokens = json["new_tokens"].get<int>();
  golden.plain = json["greedy"]["1.0"].get<std::vector<std::vector<int>>>();
  golden.penalised = json["greedy"]["1.3"].get<std::vector<std::vector<int>>>();
  golden.plain_logprobs = json["logprobs"]["1.0"].get<std::vector<std::vector<double>>>();
  golden.penalised_logprobs = json["logprobs"]["1.3"].get<std::vector<std::vector<double>>>();
  return golden;
}

std::shared_ptr<const Patches> synthetic_pixels(const ImageRef& image) {
  const int64_t first_row = 1000 * std::stoll(image.path);
  auto patches = std::make_shared<Patches>();
  patches->grid_thw = image.grid_thw;
  patches->row_width = 3 * 2 * 16 * 16;
  for (int64_t i = first_row; i < first_row + patches->num_rows(); ++i) {
    for (int64_t k = 0; k < patches->row_width; ++k) {
      patches->pixel_values.push_back(
          (static_cast<float>((i * 7919 + k * 104729 + (i * k) % 251) % 256) - 127.5f) / 127.5f);
    }
  }
  return patches;
}

std::vector<std::vector<int>> responses(const std::vector<Rollout>& rollouts) {
  std::vector<std::vector<int>> ids;
  for (const Rollout& rollout : rollouts) ids.push_back(rollout.response_token_ids);
  return ids;
}

void expect_logprobs(const std::vector<Rollout>& rollouts, const std::vector<std::vector<int>>& ids,
                     const std::vector<std::vector<double>>& logprobs) {
  ASSERT_EQ(rollouts.size(), ids.size());
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const Rollout& one = rollouts[i];
    ASSERT_EQ(one.token_logprobs.size(), one.response_token_ids.size());
    const auto num_equal = static_cast<size_t>(std::mismatch(one.response_token_ids.begin(),
                                                             one.response_token_ids.end(),
                                                             ids[i].begin(), ids[i].end())
                                                   .first -
                                               one.response_token_ids.begin());
    // The delta rule's chunks add in another order than transformers': 1.01e-5 was seen.
    for (size_t k = 0; k < num_equal; ++k)
      ASSERT_NEAR(one.token_logprobs[k], logprobs[i][k],
                  2e-5 * std::max(1.0, std::abs(logprobs[i][k])))
          << "answer " << i << " token " << k;
  }
}

const LoadedModel& rollout_model() {
  // Two threads on so small a model mostly wait for each other; with other work on the machine they
  // wait for minutes.
  at::set_num_threads(1);
  static const LoadedModel loaded{Model::load(source_path("tests/golden/rollout_model"), {}),
                                  Tokenizer::load(source_path("tests/golden/rollout_model"))};
  return loaded;
}

}  // namespace rematch::test
