#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/rollout/engine_factory.h"
#include "engine/rollout/vllm/plugin_api.h"
#include "model/vision/patches.h"

namespace rematch::test {

/// A small vLLM without Python: with its own model, whose weights come by load_weights() alone,
/// pads that it expands itself, pictures that it pre-processes itself. Decodes with the engine `hf`
/// on that model.
class ToyPlugin : public VllmPlugin {
 public:
  ToyPlugin(const EngineParts& parts, const GenerateOptions& options, const PatchOptions& patches);

  std::string import_engine(const std::string&) override { return "toy"; }
  int64_t cuda_memory_bytes(int) override { return 0; }
  int64_t start(const std::string& text) override {
    description = text;
    return ++number_;
  }
  int64_t running() const override { return number_; }
  void stop() override { number_ = 0; }
  void begin_sync() override { version_ = -1; }
  void load_weights(const std::vector<std::pair<std::string, at::Tensor>>& layer) override;
  std::vector<std::string> end_sync(int64_t version) override;
  int64_t weights_version() override { return version_; }
  void add(const VllmRequest& request) override;
  bool has_unfinished() override { return !waiting_.empty(); }
  std::vector<VllmAnswer> step() override;
  void abort() override { waiting_.clear(); }
  void sleep(int) override {}

  std::string description;  ///< what it was started with
  int num_syncs = 0;
  int num_requests = 0;
  size_t drift_at = SIZE_MAX;  ///< position at which reported prompt ids are wrong

 private:
  EngineParts parts_;  ///< with its own model
  GenerateOptions options_;
  PatchOptions patches_;
  std::map<std::string, std::shared_ptr<const Patches>> pixels_;
  std::vector<std::pair<std::string, Prompt>> waiting_;
  int64_t number_ = 0;
  int64_t version_ = -1;
};

}  // namespace rematch::test
