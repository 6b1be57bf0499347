#include "engine/rollout/vllm/vllm_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "engine/rollout/vllm/vllm_errors.h"
#include "model/families/family.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

// Memory for the workspace and Python, in addition to weights and cache.
constexpr int64_t kWorkspaceBytes = int64_t{256} << 20;

std::optional<ModelDescription> find_model(const std::string& model_dir) {
  if (!is_file(join_path(model_dir, "config.json"))) return std::nullopt;
  return describe_model(model_dir);
}

// `max_position_embeddings`, the size of vLLM's position tables. 0 = unknown.
int64_t num_positions(const std::string& model_dir) {
  const std::string path = join_path(model_dir, "config.json");
  if (!is_file(path)) return 0;
  const Json config = read_json_file(path);
  const Json text =
      config.value("text_config", config);  // older files have these keys at the top level
  return text.is_object() && text.contains("max_position_embeddings") &&
                 text["max_position_embeddings"].is_number_integer()
             ? text["max_position_embeddings"].get<int64_t>()
             : 0;
}

int64_t bytes_per_value(const VllmOptions& options) { return options.bfloat16 ? 2 : 4; }

// Size of the engine's weights: that of the files, converted to its dtype; twice on a CPU, which
// keeps the original and a packed copy.
int64_t weight_bytes(const VllmOptions& options) {
  std::error_code ignored;
  int64_t stored = 0;
  for (const auto& entry : fs::directory_iterator(options.model_dir, ignored)) {
    if (entry.path().extension() == ".safetensors")
      stored += static_cast<int64_t>(entry.file_size(ignored));
  }
  const Json config = read_json_file(join_path(options.model_dir, "config.json"));
  const auto is_half = [&config](const char* key) {
    return config.contains(key) && config[key].is_string() && config[key] != "float32";
  };
  const int64_t stored_bytes_per_value = is_half("dtype") || is_half("torch_dtype") ? 2 : 4;
  return stored / stored_bytes_per_value * bytes_per_value(options) * (options.on_cpu ? 2 : 1) /
         options.tensor_parallel_size;
}

int64_t cache_bytes_per_token(const VllmOptions& options, const TextDescription& text) {
  const int64_t kv_heads =
      std::max<int64_t>(1, text.num_key_value_heads / options.tensor_parallel_size);
  return text.num_attention_layers() * 2 * kv_heads * text.head_dim * bytes_per_value(options);
}

void check_heads(const VllmOptions& options, const ModelDescription& model) {
  const int64_t tp = options.tensor_parallel_size;
  const int64_t heads = model.text.num_attention_heads, kv_heads = model.text.num_key_value_heads,
                vision = model.vision.num_heads;
  const bool splits =
      heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0) && vision % tp == 0;
  if (splits) return;
  throw vllm_error(ErrorKind::kEnvironment,
                   "the model's heads cannot be divided among the ranks of an engine",
                   kVllmSection + ".tensor_parallel_size",
                   fmt::format("tensor_parallel_size {}; {} attention heads, {} key/value heads, "
                               "{} heads of the vision tower",
                               tp, heads, kv_heads, vision),
                   "set vllm.tensor_parallel_size: 1 or another divisor of the heads");
}

void check_memory(const VllmOptions& options, const ModelDescription& model,
                  const MemoryBytes& memory) {
  if (memory.total <= 0) return;
  const int64_t weights = weight_bytes(options);
  const int64_t sequence =
      std::max<int64_t>(options.max_model_len, 1) * cache_bytes_per_token(options, model.text);
  const int64_t needed = weights + sequence + kWorkspaceBytes;
  const auto granted =
      static_cast<int64_t>(options.gpu_memory_utilization * static_cast<double>(memory.total));
  const bool fits = needed <= granted && (memory.available <= 0 || needed <= memory.available);
  if (fits) return;
  throw vllm_error(ErrorKind::kEnvironment,
                   "memory is insufficient for a vLLM engine next to training",
                   kVllmSection + ".gpu_memory_utilization",
                   fmt::format("needed: {:.2f} GiB (weights {:.2f}, cache of one sequence of {} "
                               "tokens {:.2f}, workspace {:.2f}); granted: "
                               "{:.2f} of {:.2f} GiB; free: {:.2f}",
                               static_cast<double>(needed) / kBytesPerGib,
                               static_cast<double>(weights) / kBytesPerGib, options.max_model_len,
                               static_cast<double>(sequence) / kBytesPerGib,
                               static_cast<double>(kWorkspaceBytes) / kBytesPerGib,
                               static_cast<double>(granted) / kBytesPerGib,
                               static_cast<double>(memory.total) / kBytesPerGib,
                               static_cast<double>(memory.available) / kBytesPerGib),
                   "raise vllm.gpu_memory_utilization, lower vllm.max_model_len, enable offload");
}

}  // namespace

void check_vllm_ranks(const VllmOptions& options) {
  const int tp = options.tensor_parallel_size, ranks = options.world_size;
  if (ranks % tp == 0) return;
  const int divisor = std::gcd(ranks, tp);
  throw vllm_error(
      ErrorKind::kEnvironment, "the ranks of this run cannot be divided into engines",
      kVllmSection + ".tensor_parallel_size",
      fmt::format("world_size {} is not a multiple of tensor_parallel_size {} (the default is 4)",
                  ranks, tp),
      fmt::format("set vllm.tensor_parallel_size: {}, or start {} processes (docs/distributed.md)",
                  divisor == 1 ? "1" : fmt::format("{} or 1", divisor), (ranks / tp + 1) * tp));
}

void check_vllm_hosts(const Strings& hosts, int tensor_parallel_size) {
  const auto size = static_cast<size_t>(tensor_parallel_size);
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const size_t first = rank / size * size;
    if (hosts[rank] == hosts[first]) continue;
    throw vllm_error(ErrorKind::kEnvironment, "the ranks of a vLLM engine are on different hosts",
                     kVllmSection + ".tensor_parallel_size",
                     fmt::format("tensor_parallel_size {}: rank {} is on {}, rank {} on {}", size,
                                 first, hosts[first], rank, hosts[rank]),
                     "set vllm.tensor_parallel_size to a divisor of the number of ranks on each "
                     "host, and give neighbouring ranks one host");
  }
}

void check_vllm_arithmetic(const VllmOptions& options, const MemoryBytes& memory) {
  REMATCH_CHECK(options.tensor_parallel_size >= 1 && options.world_size >= 1);
  check_vllm_ranks(options);
  const std::optional<ModelDescription> model = find_model(options.model_dir);
  if (!model) return;
  check_heads(options, *model);
  check_memory(options, *model, memory);
}

void set_max_model_len(VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                       const std::string& where) {
  const int64_t positions = num_positions(options.model_dir);
  if (options.max_model_len == 0) options.max_model_len = prompt_tokens + max_new_tokens;
  if (positions > 0) options.max_model_len = std::min(options.max_model_len, positions);
  check_vllm_lengths(options, prompt_tokens, max_new_tokens, where);
}

void check_vllm_lengths(const VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                        const std::string& where) {
  const int64_t needed = prompt_tokens + max_new_tokens;
  if (options.max_model_len == 0 || needed <= options.max_model_len) return;
  const std::string sum = fmt::format("prompt {} + max_new_tokens {} = {} tokens", prompt_tokens,
                                      max_new_tokens, needed);
  if (needed > num_positions(options.model_dir) &&
      options.max_model_len == num_positions(options.model_dir)) {
    throw vllm_error(ErrorKind::kConfig, "a prompt and its answer exceed the model's positions",
                     where,
                     fmt::format("{}; max_position_embeddings of {} is {}", sum, options.model_dir,
                                 options.max_model_len),
                     "lower max_new_tokens, use smaller images");
  }
  throw vllm_error(
      ErrorKind::kConfig, "vllm.max_model_len cannot hold a prompt and its answer", where,
      fmt::format("{}; vllm.max_model_len (from global_max_length) {}", sum, options.max_model_len),
      fmt::format("set vllm.max_model_len: {} or more, lower max_new_tokens, use smaller images",
                  needed));
}

MemoryBytes rank_memory(const VllmOptions& options) {
  const MemoryBytes host = host_memory();
  return {host.total / options.ranks_on_host, host.available / options.ranks_on_host};
}

int64_t kv_cache_bytes(const VllmOptions& options, const MemoryBytes& memory) {
  const std::optional<ModelDescription> model = find_model(options.model_dir);
  REMATCH_CHECK(model.has_value(), options.model_dir);
  const int64_t per_token = cache_bytes_per_token(options, model->text);
  // 1024 tokens more, for partial blocks (up to 128 tokens) and the engine's own bookkeeping.
  const int64_t sequence = (options.max_model_len + 1024) * per_token;
  const int64_t wanted = sequence * std::max(1, options.max_num_seqs);
  if (memory.total <= 0) return wanted;
  const auto granted =
      static_cast<int64_t>(options.gpu_memory_utilization * static_cast<double>(memory.total)) -
      weight_bytes(options);
  return std::max(sequence, std::min({wanted, granted, memory.available / 2}));
}

}  // namespace rematch
