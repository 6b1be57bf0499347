#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/token.h"
#include "base/strings.h"

// The interface between the program and librematch_vllm.so, the only code that uses Python. It is
// opened with dlopen only for `rollout_backend: vllm`, and built from the same checkout with the
// same libtorch.
namespace rematch {

/// Incremented with every change below: a library from a different build is rejected.
inline constexpr int kVllmPluginAbi = 4;

/// A Python exception. what() is one line, "TypeName: message"; the traceback is in the engine's
/// log.
class __attribute__((visibility("default"))) PythonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An image in memory, 8-bit RGB, height·width·3 bytes.
struct VllmImage {
  int width_px = 0;
  int height_px = 0;
  std::vector<uint8_t> rgb;
};

/// One prompt for the engine.
struct VllmRequest {
  std::string id;
  std::vector<TokenId> prompt_token_ids;  ///< one pad per image; vLLM expands it
  std::vector<VllmImage> images;
  std::string sampling_json;  ///< arguments of SamplingParams
};

/// One finished request, as returned by the engine; not yet checked.
struct VllmAnswer {
  std::string id;
  std::vector<int64_t> prompt_token_ids;
  std::vector<int64_t> token_ids;  ///< with the stop token
  /// per token, from the raw logits; empty if this release of vLLM provides none
  std::vector<double> token_logprobs;
  std::string finish_reason;
};

/// vLLM in this process, with one engine at a time. Call it from one thread. Every function may
/// throw PythonError.
class VllmPlugin {
 public:
  virtual ~VllmPlugin() = default;

  /// Starts the interpreter and imports torch and vllm; does nothing if already done.
  /// @param executable  the environment's interpreter.
  /// @return vLLM's version
  virtual std::string import_engine(const std::string& executable) = 0;
  /// Total bytes of a CUDA device's memory.
  /// @param device  its index
  virtual int64_t cuda_memory_bytes(int device) = 0;

  /// Starts an engine. Keeps a running one with the same description; stops any other first.
  /// @param description  JSON: `engine_args`, `on_cpu`, `log_path`, and with several ranks `group`.
  /// @return a number for this engine
  virtual int64_t start(const std::string& description) = 0;
  /// Number of the running engine; 0 = none.
  virtual int64_t running() const = 0;

  /// Stops the running engine and closes its connections; ranks that wait for this one get an
  /// exception.
  virtual void stop() = 0;

  /// Starts a sync: load_weights() follows once per layer, then end_sync(). Nothing can be
  /// generated in between.
  virtual void begin_sync() = 0;
  virtual void load_weights(const std::vector<std::pair<std::string, at::Tensor>>& layer) = 0;
  /// Drops all caches of the old weights and records the version.
  /// @return parameters of the engine that received no value
  virtual Strings end_sync(int64_t version) = 0;
  /// Version of the weights in the engine; -1 before the first sync and during a sync.
  virtual int64_t weights_version() = 0;

  virtual void add(const VllmRequest& request) = 0;
  virtual bool has_unfinished() = 0;
  /// Generates one token for every live sequence.
  /// @return requests that finished
  virtual std::vector<VllmAnswer> step() = 0;
  /// Drops all unfinished requests.
  virtual void abort() = 0;
  /// Releases memory until the next sync or step.
  /// @param level  vLLM's sleep level, ≥ 1
  virtual void sleep(int level) = 0;
};

/// Exports of the library: `rematch_vllm_plugin_abi`, `rematch_vllm_plugin_python` (the "3.11" of
/// its headers) and `rematch_vllm_plugin`.
using VllmPluginAbi = int (*)();
using VllmPluginPython = const char* (*)();
using VllmPluginInstance = VllmPlugin* (*)();

}  // namespace rematch
