#include "rollout/vllm/shared_engine.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "ranks/agreement.h"

namespace rematch {
namespace {

Json json_of(const Prompt& prompt) {
  Json images = Json::array();
  for (const ImageRef& image : prompt.images) images.push_back({image.path, image.grid_thw});
  return {prompt.sample_id, prompt.epoch, prompt.token_ids, images, prompt.where};
}

Prompt read_prompt(const Json& json) {
  Prompt prompt{.sample_id = json[0],
                .epoch = json[1],
                .token_ids = json[2].get<std::vector<TokenId>>(),
                .where = json[4]};
  for (const Json& image : json[3])
    prompt.images.push_back({.path = image[0], .grid_thw = image[1].get<GridThw>()});
  return prompt;
}

}  // namespace

/// What the ranks have brought, in rank order. Pictures stay where they are: every rank loads those
/// of all from the same data.
struct SharedEngine::Round {
  std::vector<Prompt> prompts;
  size_t first = 0;  ///< of this rank's
  int num_finished = 0;
};

SharedEngine::Round SharedEngine::meet(State state, const std::vector<Prompt>& prompts) {
  Json mine = {static_cast<int>(state), Json::array()};
  for (const Prompt& prompt : prompts) mine[1].push_back(json_of(prompt));
  const std::vector<uint8_t> bytes = Json::to_msgpack(mine);
  const std::vector<std::string> texts = ranks_.all_gather({bytes.begin(), bytes.end()});
  Round round;
  int failed = -1;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) round.first = round.prompts.size();
    const Json brought = Json::from_msgpack(texts[static_cast<size_t>(rank)]);
    if (brought[0] == static_cast<int>(State::kHasFailed) && failed < 0)
      failed = ranks_.run_rank(rank);
    round.num_finished += brought[0] == static_cast<int>(State::kHasFinished);
    for (const Json& prompt : brought[1]) round.prompts.push_back(read_prompt(prompt));
  }
  if (failed < 0) return round;
  is_in_turn_ = false;
  throw PeerFailure(ErrorKind::kEnvironment,
                    {.error = "a rank that shares the vLLM engine has failed",
                     .where = fmt::format("rank {}", failed),
                     .what = "it generates no more",
                     .fix = "look at that rank's own messages"});
}

std::vector<Rollout> SharedEngine::generate(const std::vector<Prompt>& prompts,
                                            const std::function<void(int)>& on_progress) {
  REMATCH_CHECK(is_in_turn_);
  const Round round = meet(State::kAsks, prompts);
  // Of all answers that are there, some are this rank's: its share is as good a measure.
  const auto on_any = [&](int num_done) {
    if (on_progress && !prompts.empty()) {
      on_progress(
          static_cast<int>(static_cast<size_t>(num_done) * prompts.size() / round.prompts.size()));
    }
  };
  std::vector<Rollout> all = engine_->generate(round.prompts, on_any);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(round.first);
  return {std::make_move_iterator(begin),
          std::make_move_iterator(begin + static_cast<std::ptrdiff_t>(prompts.size()))};
}

void SharedEngine::end_turn() {
  while (is_in_turn_) {
    const Round round = meet(State::kHasFinished, {});
    if (round.num_finished == ranks_.size()) {
      is_in_turn_ = false;
    } else {
      engine_->generate(round.prompts, {});
    }
  }
}

void SharedEngine::abandon_turn() noexcept {
  if (!is_in_turn_) return;
  try {
    meet(State::kHasFailed, {});
  } catch (...) {  // it always throws, for the others
  }
  is_in_turn_ = false;
}

}  // namespace rematch
