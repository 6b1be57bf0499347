#include "engine/rollout/vllm/vllm_engine.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/ranks/device.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/engine_failure.h"
#include "engine/rollout/repeat_guard.h"
#include "engine/rollout/sampler.h"
#include "engine/rollout/vllm/engine_description.h"
#include "engine/rollout/vllm/layer_weights.h"
#include "engine/rollout/vllm/vllm_checks.h"
#include "engine/rollout/vllm/vllm_errors.h"
#include "model/text/stop_ids.h"

namespace rematch {
namespace {

const std::string kLogAdvice =
    "see the engine's log (vllm.log in the run directory; vllm-N.log of rank N)";

std::string describe_sample(const Prompt& prompt) {
  return sample_name(prompt.sample_id, prompt.where);
}

EngineFailure failure(ErrorKind kind, const std::string& error, const std::string& where,
                      const std::string& what) {
  return EngineFailure(kind, {.error = error,
                              .where = where,
                              .what = what,
                              .fix = kLogAdvice + ", or set rollout_backend: hf"});
}

/// The log-probabilities of the first tokens of an answer; empty if vLLM returns none.
/// @throws EngineFailure naming the sample if one is not finite, or some are missing
std::vector<float> check_logprobs(const Prompt& prompt, const VllmAnswer& answer, size_t num_kept) {
  if (answer.token_logprobs.empty()) return {};
  if (answer.token_logprobs.size() != answer.token_ids.size()) {
    throw failure(ErrorKind::kEnvironment, "vLLM did not return a log-probability for each token",
                  describe_sample(prompt),
                  fmt::format("{} log-probabilities of {} tokens", answer.token_logprobs.size(),
                              answer.token_ids.size()));
  }
  std::vector<float> logprobs;
  for (size_t i = 0; i < num_kept; ++i) {
    logprobs.push_back(static_cast<float>(answer.token_logprobs[i]));
    if (std::isfinite(logprobs.back())) continue;
    throw failure(ErrorKind::kData, "vLLM returned a log-probability that is not finite",
                  describe_sample(prompt), fmt::format("position {}: {}", i, logprobs.back()));
  }
  return logprobs;
}

/// Smallest index of an unanswered request; 0 if there is none.
size_t first_waiting(const std::map<std::string, size_t>& waiting) {
  size_t first = waiting.empty() ? 0 : waiting.begin()->second;
  for (const auto& [id, place] : waiting) first = std::min(first, place);
  return first;
}

}  // namespace

VllmEngine::VllmEngine(VllmPlugin& plugin, const EngineParts& parts, const GenerateOptions& options,
                       const PatchOptions& patches)
    : plugin_(plugin),
      parts_(parts),
      options_(options),
      patches_(patches),
      ranks_(parts.vllm.ranks, [this] { stop_shared_engine(); }),
      synced_version_(kCurrentWeights) {
  check_sampling_options(options_);
  if (options_.repeat_terminate.enabled) check_repeat_guard_options(options_.repeat_terminate);
  sync_weights(kCurrentWeights);
}

void VllmEngine::start() {
  ranks_.attempt([&] {
    try {
      engine_number_ = plugin_.start(engine_description(parts_.vllm, rank_memory(parts_.vllm)));
    } catch (const PythonError& error) {
      throw_if_interrupted();  // the signal ended a helper process
      throw vllm_error(ErrorKind::kEnvironment, "the vLLM engine cannot start", kVllmSection,
                       error.what(),
                       kLogAdvice +
                           "; lower vllm.gpu_memory_utilization or vllm.max_model_len if memory is "
                           "insufficient");
    }
  });
  ranks_.after_last_step();
}

void VllmEngine::stop_shared_engine() {
  try {
    plugin_.stop();
  } catch (const PythonError&) {  // the original failure is reported
  }
}

void VllmEngine::send_weights() {
  const at::NoGradGuard no_grad;
  Strings missing;
  try {
    plugin_.begin_sync();
    for_each_layer(*parts_.model, [&](const LayerWeights& layer) { plugin_.load_weights(layer); });
    missing = plugin_.end_sync(++num_syncs_);
  } catch (const PythonError& error) {
    throw_if_interrupted();
    throw vllm_error(ErrorKind::kEnvironment, "vLLM does not accept the weights", kVllmSection,
                     error.what(),
                     kLogAdvice + "; use the release that scripts/setup-vllm installs");
  }
  if (missing.empty()) return;
  throw vllm_error(ErrorKind::kEnvironment, "vLLM does not accept all of the weights", kVllmSection,
                   fmt::format("{} of its parameters have no value, the first is {}",
                               missing.size(), missing.front()),
                   "use the release that scripts/setup-vllm installs");
}

void VllmEngine::sync_weights(int64_t version) {
  const std::shared_ptr<BlockWeights>& blocks = parts_.model->blocks();
  if (!blocks) return sync_own(version);
  try {
    sync_own(version);
  } catch (const PeerStopped&) {
    throw;
  } catch (...) {
    blocks->meet();  // other engines still need this rank's parts
    throw;
  }
  blocks->meet();
}

void VllmEngine::sync_own(int64_t version) {
  release_cached_memory(parts_.model->device());  // which vLLM takes when it starts or wakes
  if (version != kCurrentWeights && version == synced_version_ &&
      plugin_.weights_version() == num_syncs_)
    return;
  synced_version_ = kCurrentWeights;
  if (plugin_.running() != engine_number_) start();
  send_weights();
  synced_version_ = version;
}

void VllmEngine::check_weights() const {
  const int64_t found = plugin_.running() == engine_number_ ? plugin_.weights_version() : -1;
  if (found == num_syncs_) return;
  throw failure(ErrorKind::kEnvironment,
                "the vLLM engine has different weights from those it was given", kVllmSection,
                fmt::format("weights_version {}, expected {}", found, num_syncs_));
}

void VllmEngine::check_prompt_ids(const Prompt& prompt, const VllmAnswer& answer) const {
  const auto [ours, theirs] =
      std::mismatch(prompt.token_ids.begin(), prompt.token_ids.end(),
                    answer.prompt_token_ids.begin(), answer.prompt_token_ids.end());
  if (ours == prompt.token_ids.end() && theirs == answer.prompt_token_ids.end()) return;
  const auto shown = [](auto at, auto end) {
    return at == end ? std::string("the end") : std::to_string(*at);
  };
  throw failure(
      ErrorKind::kData, "vLLM used a different prompt from the one that is trained on",
      describe_sample(prompt),
      fmt::format("first difference at position {}: expected {}, vLLM has {}; {} and {} ids",
                  ours - prompt.token_ids.begin(), shown(ours, prompt.token_ids.end()),
                  shown(theirs, answer.prompt_token_ids.end()), prompt.token_ids.size(),
                  answer.prompt_token_ids.size()));
}

Rollout VllmEngine::check_answer(const Prompt& prompt, const VllmAnswer& answer) const {
  const auto refuse = [&](const std::string& error, const std::string& what) {
    return failure(ErrorKind::kEnvironment, error, describe_sample(prompt), what);
  };
  check_prompt_ids(prompt, answer);
  if (answer.token_ids.empty()) {
    throw refuse("vLLM returned no tokens",
                 fmt::format("finish reason \"{}\"; even an empty answer ends with a stop token",
                             answer.finish_reason));
  }
  if (std::ssize(answer.token_ids) > options_.max_new_tokens) {
    throw refuse(
        "vLLM returned more tokens than requested",
        fmt::format("{} ids, max_new_tokens {}", answer.token_ids.size(), options_.max_new_tokens));
  }
  Rollout rollout{.sample_id = prompt.sample_id, .prompt_token_ids = prompt.token_ids};
  const int64_t vocab_size = parts_.model->description().text.vocab_size;
  bool stopped = false;
  for (size_t i = 0; i < answer.token_ids.size() && !stopped; ++i) {
    const int64_t id = answer.token_ids[i];
    if (id < 0 || id >= vocab_size) {
      throw refuse("vLLM returned an id outside the vocabulary",
                   fmt::format("position {}: id {}, {} tokens", i, id, vocab_size));
    }
    stopped = is_stop_id(static_cast<TokenId>(id), options_.stop_ids);
    if (!stopped) rollout.response_token_ids.push_back(static_cast<TokenId>(id));
  }
  const bool is_full = std::ssize(answer.token_ids) == options_.max_new_tokens;
  if (!stopped && !is_full) {
    throw refuse("vLLM ended an answer for an unknown reason",
                 fmt::format("finish reason \"{}\" after {} of {} tokens, the last is {}",
                             answer.finish_reason, answer.token_ids.size(), options_.max_new_tokens,
                             answer.token_ids.back()));
  }
  rollout.finish_reason = stopped ? FinishReason::kStop : FinishReason::kLength;
  if (options_.repeat_terminate.enabled) {
    const RepeatGuard::Cut cut = RepeatGuard::cut(
        rollout.response_token_ids, options_.repeat_terminate, parts_.tokenizer.get());
    if (cut.triggered) {
      rollout.response_token_ids.resize(cut.num_kept);
      rollout.finish_reason = FinishReason::kRepeat;
    }
  }
  rollout.token_logprobs = check_logprobs(prompt, answer, rollout.response_token_ids.size());
  return rollout;
}

bool VllmEngine::step(const Prompt* prompts, VllmAnswer* answers, Waiting& waiting,
                      const std::function<void(int)>& on_finished) {
  try {
    if (!plugin_.has_unfinished()) return false;
    for (VllmAnswer& answer : plugin_.step()) {
      const auto found = waiting.find(answer.id);
      if (found == waiting.end()) {
        throw failure(ErrorKind::kEnvironment, "vLLM answered a request that is not waiting",
                      describe_sample(prompts[0]), answer.id);
      }
      answers[found->second] = std::move(answer);
      waiting.erase(found);
      on_finished(1);
    }
    return true;
  } catch (const PythonError& error) {
    throw_if_interrupted();
    throw failure(ErrorKind::kEnvironment, "vLLM failed while generating",
                  describe_sample(prompts[first_waiting(waiting)]), error.what());
  }
}

void VllmEngine::add(const Prompt& prompt, const VllmRequest& request) {
  try {
    plugin_.add(request);
  } catch (const PythonError& error) {
    throw failure(ErrorKind::kEnvironment, "vLLM rejects a prompt", describe_sample(prompt),
                  error.what());
  }
}

// Prepares the images of a prompt on another thread while the engine works on the ones before it.
// One step for each prompt, so that what shares a step does not depend on time.
void VllmEngine::add_while_working(const Prompt* prompts, VllmAnswer* answers, size_t count,
                                   Waiting& waiting, const std::function<void(int)>& on_finished) {
  const auto prepare = [&](size_t i) {
    return std::async(std::launch::async, [this, &prompt = prompts[i],
                                           id = fmt::format("rematch-{}", ++num_requests_)] {
      VllmRequest request = make_request(prompt, id);
      request.images = load_images(prompt);
      return request;
    });
  };
  std::future<VllmRequest> next = prepare(0);
  for (size_t i = 0; i < count; ++i) {
    const VllmRequest request = next.get();
    waiting[request.id] = i;
    add(prompts[i], request);
    if (i + 1 == count) break;
    next = prepare(i + 1);
    step(prompts, answers, waiting, on_finished);
  }
}

void VllmEngine::generate_together(const Prompt* prompts, VllmAnswer* answers, size_t count,
                                   const std::function<void(int)>& on_finished) {
  Waiting waiting;
  // The ranks of a shared engine work in step, and a CPU has no time to spare.
  const bool overlaps = parts_.vllm.ranks == nullptr && !parts_.vllm.on_cpu && count > 0;
  if (overlaps) {
    add_while_working(prompts, answers, count, waiting, on_finished);
  } else {
    const std::vector<VllmRequest> requests = make_requests_of_all(prompts, count);
    ranks_.together([&] {
      for (size_t i = 0; i < count; ++i) {
        waiting[requests[i].id] = i;
        add(prompts[i], requests[i]);
      }
    });
  }
  bool has_unfinished = true;
  while (has_unfinished && !waiting.empty()) {
    ranks_.before_step();
    ranks_.attempt([&] { has_unfinished = step(prompts, answers, waiting, on_finished); });
  }
  ranks_.after_last_step();
  if (waiting.empty()) return;
  throw failure(ErrorKind::kEnvironment, "vLLM did not answer a prompt",
                describe_sample(prompts[first_waiting(waiting)]),
                fmt::format("{} of {} requests were never answered", waiting.size(), count));
}

std::vector<Rollout> VllmEngine::generate(const std::vector<Prompt>& prompts,
                                          const std::function<void(int)>& on_progress) {
  ranks_.together([&] {
    for (const Prompt& prompt : prompts) {
      check_vllm_lengths(parts_.vllm, std::ssize(prompt.token_ids), options_.max_new_tokens,
                         describe_sample(prompt));
    }
    check_weights();
  });
  std::vector<VllmAnswer> answers(prompts.size());
  int num_done = 0;
  const auto on_finished = [&](int num_finished) {
    num_done += num_finished;
    if (on_progress) on_progress(num_done);
  };
  const size_t together = parts_.vllm.infer_batch_size > 0
                              ? static_cast<size_t>(parts_.vllm.infer_batch_size)
                              : std::max<size_t>(prompts.size(), 1);
  try {
    for (size_t first = 0; first < prompts.size(); first += together) {
      generate_together(prompts.data() + first, answers.data() + first,
                        std::min(together, prompts.size() - first), on_finished);
    }
  } catch (...) {
    // The next call must start with an empty engine. The original error is reported, not one of
    // abort().
    try {
      if (plugin_.running() == engine_number_) plugin_.abort();
    } catch (const PythonError&) {
    }
    throw;
  }
  std::vector<Rollout> rollouts;
  for (size_t i = 0; i < prompts.size(); ++i)
    rollouts.push_back(check_answer(prompts[i], answers[i]));
  return rollouts;
}

void VllmEngine::release() {
  const int64_t sleep_level = parts_.vllm.sleep_level_on(!parts_.vllm.on_cpu);
  if (sleep_level == 0 || plugin_.running() != engine_number_) return;
  try {
    plugin_.sleep(static_cast<int>(sleep_level));
  } catch (const PythonError& error) {
    throw failure(ErrorKind::kEnvironment, "vLLM does not release its memory",
                  kVllmSection + ".sleep_level", error.what());
  }
}

}  // namespace rematch
