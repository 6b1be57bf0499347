#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "estep/answer/answer_format.h"
#include "observe/terminal.h"
#include "ranks/group.h"
#include "rollout/vllm/vllm_options.h"
#include "settings/settings.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

/// Parts that a command needs; a session reads and builds nothing else.
struct SessionNeeds {
  bool train_data = false;
  bool val_data = false;
  /// evaluate the records of custom.train_jsonl instead of val_jsonl
  bool evaluates_train_data = false;
  /// measure the loss on the full truth of val_data; its samples must fit the cap
  bool val_truth = false;
  bool upright_images = false;    ///< turn images that EXIF declares rotated; else an error
  bool rollouts = false;          ///< make_rollouts() follows: check that its backend can run
  Group* engine_ranks = nullptr;  ///< ranks that share a vLLM engine (split_engine_ranks())
  /// checkpoint with the weights (resume); empty = model.model
  std::string weights_dir;
};

/// Problems of a build. A run throws the first one; `rematch check` collects all.
class Problems {
 public:
  explicit Problems(bool collects) : collects_(collects) {}

  /// Runs a step. @return false when it failed and its problems were collected, each once
  /// @throws what the step throws, unless problems are collected and it is a UserError
  bool attempt(const std::function<void()>& step);
  const std::vector<std::pair<ErrorKind, Problem>>& all() const { return all_; }
  std::vector<std::pair<ErrorKind, Problem>> take() { return std::move(all_); }

 private:
  bool collects_;
  std::vector<std::pair<ErrorKind, Problem>> all_;
};

/// The parts of a session without weights. When problems are collected, failed parts and parts that
/// need them are absent.
struct SessionParts {
  at::Device device = at::kCPU;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string format_name;  ///< in answer_formats()
  std::unique_ptr<const AnswerFormat> format;
  std::optional<PatchOptions> patches;
  std::unique_ptr<PromptEncoder> prompts;
  std::optional<Dataset> train_data;
  std::optional<Dataset> val_data;
  /// samples that `template.truncation_strategy: delete` dropped
  int64_t num_long_dropped = 0, num_long_dropped_val = 0;
};

/// Inputs of a build, the same for a run and for `rematch check`.
struct SessionBuild {
  const Settings& settings;
  std::string device;  ///< value of --device
  SessionNeeds needs;
  /// makes the options of the vLLM backend on a device
  std::function<VllmOptions(const at::Device&)> vllm_options;
  Terminal& terminal;
};

/// Builds the parts, with cheap checks before slow work: backend and device before data are read
/// (BEHAVIOUR 4.3). @throws UserError unless `problems` collects; Interrupted
SessionParts build_session_parts(const SessionBuild& build, Problems& problems);

}  // namespace rematch
