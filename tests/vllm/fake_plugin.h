#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/rollout/vllm/plugin_api.h"

namespace rematch::test {

/// A plug-in that answers what a test says and writes down what it was asked.
class FakePlugin : public VllmPlugin {
 public:
  using Answer = std::function<VllmAnswer(const VllmRequest&)>;

  std::string import_engine(const std::string&) override { return "0"; }
  int64_t cuda_memory_bytes(int) override { return 0; }
  int64_t start(const std::string& description) override {
    if (!start_error.empty()) throw PythonError(start_error);
    descriptions.push_back(description);
    return number = static_cast<int64_t>(descriptions.size());
  }
  int64_t running() const override { return number; }
  void stop() override {
    ++num_stops;
    number = 0;
  }
  void begin_sync() override {
    if (on_wake) on_wake();
    version = -1;
    layers.clear();
  }
  void load_weights(const std::vector<std::pair<std::string, at::Tensor>>& layer) override {
    if (!load_error.empty()) throw PythonError(load_error);
    layers.emplace_back();
    for (const auto& [name, tensor] : layer) {
      layers.back().push_back(name);
      weights[name] = tensor.clone();
    }
  }
  std::vector<std::string> end_sync(int64_t given) override {
    ++num_syncs;
    version = missing.empty() ? given : -1;
    return missing;
  }
  int64_t weights_version() override { return version; }
  void add(const VllmRequest& request) override {
    requests.push_back(request);
    waiting.push_back(request);
  }
  bool has_unfinished() override { return !waiting.empty(); }
  std::vector<VllmAnswer> step() override {
    ++num_steps;
    if (on_step) on_step();
    if (!step_error.empty()) throw PythonError(step_error);
    std::vector<VllmAnswer> answers;
    for (const VllmRequest& request : waiting) {
      if (lost.count(request.id) == 0) answers.push_back(answer(request));
    }
    waiting.clear();
    return answers;
  }
  void abort() override {
    ++num_aborts;
    waiting.clear();
  }
  void sleep(int level) override { slept = level; }

  Answer answer;  ///< must be set before generate
  std::string start_error, load_error, step_error;
  std::vector<std::string> missing;
  std::set<std::string> lost;  ///< requests that never come back
  std::function<void()> on_step, on_wake;

  std::vector<std::string> descriptions;
  std::vector<std::vector<std::string>> layers;  ///< names, as the lists came
  std::map<std::string, at::Tensor> weights;
  std::vector<VllmRequest> requests, waiting;
  int64_t version = -1, number = 0;
  int num_syncs = 0, num_steps = 0, num_aborts = 0, num_stops = 0, slept = 0;
};

/// `ids` with every image pad as many times as `prompt` has it: what vLLM reports.
inline std::vector<int64_t> wide(const std::vector<int>& ids) { return {ids.begin(), ids.end()}; }

}  // namespace rematch::test
