#include "engine/rollout/native/cpu/runner.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/rollout/native/cpu/pass.h"
#include "model/kernels/isa.h"

namespace rematch {
namespace {

class CpuRunner : public StepRunner {
 public:
  explicit CpuRunner(std::shared_ptr<const Model> model)
      : model_(std::move(model)), text_(model_->description().text) {
    cache_.storage =
        model_->dtype() == at::kFloat ? kernels::Storage::kFloat : kernels::Storage::kBfloat16;
    cache_.num_kv_heads = text_.num_key_value_heads;
    cache_.head_dim = text_.head_dim;
  }

  int64_t block_bytes(int64_t block_len) const override {
    return text_.num_attention_layers() * 2 * cache_.block_bytes(block_len);
  }

  int64_t state_bytes() const override { return cpu_state_bytes(text_); }

  void reserve(const CacheShape& shape, int64_t max_rows) override {
    REMATCH_CHECK(
        shape.num_blocks >= 1 && shape.block_len >= 1 && max_rows >= 1,
        fmt::format("{} blocks of {}, {} rows", shape.num_blocks, shape.block_len, max_rows));
    if (weights_.layers.empty()) refresh();
    if (shape.num_blocks != cache_.shape.num_blocks || shape.block_len != cache_.shape.block_len)
      cache_.numbers.release();
    cache_.shape = shape;
    cache_.numbers.reserve(shape.num_blocks * block_bytes(shape.block_len));
    states_.reserve(shape.num_states);
    pass_.reserve_rows(max_rows);
  }

  void refresh() override { weights_ = load_cpu_weights(*model_); }

  // By bench/rollout: with AVX-512 values from 4 to 24 are about equally fast, for models that fit
  // into a cache and for larger ones. Slower instruction sets multiply fewer rows per read.
  double rows_per_reading() const override {
    switch (kernels::isa_in_use()) {
      case kernels::Isa::kAvx512: return 8;
      case kernels::Isa::kAvx2: return 4;
      case kernels::Isa::kPortable: return 2;
    }
    return 0;
  }

  void copy_block(int32_t from, int32_t to, int64_t num_tokens) override {
    const CacheShape& shape = cache_.shape;
    REMATCH_CHECK(from >= 0 && from < shape.num_blocks && to >= 0 && to < shape.num_blocks &&
                      num_tokens <= shape.block_len,
                  fmt::format("{} to {} of {}, {} tokens", from, to, shape.num_blocks, num_tokens));
    // Copies whole blocks: the slots after those tokens are overwritten before they are read.
    const int64_t bytes = cache_.block_bytes(shape.block_len);
    for (int64_t i = 0; i < text_.num_attention_layers(); ++i) {
      const kernels::CacheLayer layer = cache_.layer(i);
      for (void* numbers : {layer.keys, layer.values}) {
        auto* const data = static_cast<uint8_t*>(numbers);
        std::memcpy(data + to * bytes, data + from * bytes, static_cast<size_t>(bytes));
      }
    }
  }

  void copy_state(int32_t from, int32_t to) override {
    REMATCH_CHECK(is_state(from) && is_state(to),
                  fmt::format("{} to {} of {}", from, to, states_.num_slots()));
    states_.copy(from, to);
  }

  // Drafts leave no trace in the matrices of a state (model/kernels/delta.h).
  int64_t max_drafts() const override {
    return has_states() ? kernels::kMaxDeltaDrafts : StepRunner::max_drafts();
  }

  std::span<float> forward(const Step& step) override {
    check(step);
    const std::span<float> logits_SV = pass_.run(step, std::max(1, at::get_num_threads()));
    if (has_states()) states_.advance(step);
    return logits_SV;
  }

  void release() override {
    cache_.numbers.release();
    cache_.shape = {0, 0};
    states_.release();
    pass_.release();
    weights_ = {};
  }

 private:
  bool has_states() const { return text_.delta() != nullptr; }
  bool is_state(int32_t slot) const { return slot >= 0 && slot < states_.num_slots(); }

  void check(const Step& step) const {
    const auto num_rows = std::ssize(step.token_ids);
    REMATCH_CHECK(cache_.numbers.data() != nullptr && !weights_.layers.empty(),
                  "a step without reserve()");
    REMATCH_CHECK(num_rows >= 1 && std::ssize(step.positions_3T) == 3 * num_rows,
                  fmt::format("{} tokens, {} positions", num_rows, step.positions_3T.size()));
    for (const TokenId id : step.token_ids)
      REMATCH_CHECK(id >= 0 && id < text_.vocab_size, fmt::format("token id {}", id));
    int64_t next_row = 0;
    for (const StepSequence& sequence : step.sequences) {
      const int64_t num_tokens = sequence.num_cached + sequence.num_rows;
      REMATCH_CHECK(sequence.first_row == next_row && sequence.num_rows >= 1 &&
                        sequence.num_logits <= sequence.num_rows &&
                        std::ssize(sequence.block_table) * cache_.shape.block_len >= num_tokens,
                    fmt::format("rows {} + {}, {} cached, {} blocks of {}", sequence.first_row,
                                sequence.num_rows, sequence.num_cached, sequence.block_table.size(),
                                cache_.shape.block_len));
      REMATCH_CHECK(!has_states() || is_state(sequence.state),
                    fmt::format("state {} of {}", sequence.state, states_.num_slots()));
      next_row += sequence.num_rows;
    }
    REMATCH_CHECK(next_row == num_rows,
                  fmt::format("sequences have {} of {} rows", next_row, num_rows));
  }

  std::shared_ptr<const Model> model_;
  const TextDescription& text_;
  CpuWeights weights_;
  CpuCache cache_;
  CpuStates states_{text_};
  CpuPass pass_{text_, weights_, cache_, states_};
};

}  // namespace

std::unique_ptr<StepRunner> make_cpu_runner(std::shared_ptr<const Model> model) {
  return std::make_unique<CpuRunner>(std::move(model));
}

}  // namespace rematch
