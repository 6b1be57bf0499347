#include "engine/rollout/native/cpu/pass.h"

#include <algorithm>
#include <cmath>

#include "model/kernels/rows.h"

namespace rematch {

using kernels::Range;
using kernels::Rows;
using kernels::Worker;

bool CpuPass::find_gates(const TextDescription& text) {
  return std::ranges::any_of(text.layers, [](const LayerDescription& layer) {
    return layer.attention() != nullptr && layer.attention()->has_output_gate;
  });
}

void CpuPass::reserve_rows(int64_t num_rows) {
  scratch_.hidden_TH.reserve(num_rows * text_.hidden_size);
  scratch_.normed_TH.reserve(num_rows * text_.hidden_size);
  scratch_.qkv_T.reserve(num_rows * qkv_width());
  scratch_.mixed_T.reserve(num_rows * mixed_width_);
  scratch_.gate_TI.reserve(num_rows * text_.intermediate_size);
  scratch_.inputs.reserve(num_rows * std::max(text_.hidden_size, mixed_width_));
  scratch_.down_inputs.reserve(num_rows * text_.intermediate_size);
  scratch_.up_TI.reserve(num_rows * text_.intermediate_size);
  scratch_.cos_T.reserve(num_rows * text_.rope.width() / 2);
  scratch_.sin_T.reserve(num_rows * text_.rope.width() / 2);
  delta_.reserve_rows(num_rows);
}

void CpuPass::reserve_workers(int num_workers) {
  scratch_.attention.reserve(num_workers * kernels::attention_scratch_floats(text_.head_dim));
  scratch_.pointers.reserve(num_workers * kernels::kAttentionScratchRows);
  delta_.reserve_workers(num_workers);
}

std::span<float> CpuPass::run(const Step& step, int num_threads) {
  reserve_rows(std::ssize(step.token_ids));
  reserve_workers(num_threads);
  mark_visual_rows(step);
  find_last_rows(step);
  plan_.make(step, text_.num_key_value_heads, group(), num_threads);
  last_plan_.make(last_step_, text_.num_key_value_heads, group(), num_threads);
  scratch_.partials.reserve(std::max(plan_.num_partials(), last_plan_.num_partials()) *
                            kernels::attention_partial_floats(text_.head_dim));
  const int64_t num_logits = std::ssize(last_rows_) * text_.vocab_size;
  scratch_.last_SH.reserve(std::ssize(last_rows_) * text_.hidden_size);
  scratch_.logits_SV.reserve(num_logits);
  kernels::run_team(num_threads, [&](const Worker& worker) { work(step, worker); });
  return {scratch_.logits_SV.data(), static_cast<size_t>(num_logits)};
}

void CpuPass::mark_visual_rows(const Step& step) {
  visual_by_row_.assign(step.token_ids.size(), nullptr);
  for (const VisualRow& visual : step.visual_rows) visual_by_row_.at(visual.row) = &visual;
}

// Finds the rows that need logits. The last layer computes only these after storing keys and
// values.
void CpuPass::find_last_rows(const Step& step) {
  last_rows_.clear();
  last_step_.sequences.clear();
  first_last_rows_.clear();
  for (const StepSequence& sequence : step.sequences) {
    if (sequence.num_logits == 0) continue;
    const int64_t before = sequence.num_rows - sequence.num_logits,
                  first_row = sequence.first_row + before;
    first_last_rows_.push_back(std::ssize(last_rows_));
    for (int64_t i = 0; i < sequence.num_logits; ++i) last_rows_.push_back(first_row + i);
    last_step_.sequences.push_back({.first_row = first_row,
                                    .num_rows = sequence.num_logits,
                                    .num_cached = sequence.num_cached + before,
                                    .block_table = sequence.block_table,
                                    .num_logits = sequence.num_logits,
                                    .state = sequence.state});
  }
  is_narrowed_ = last_rows_.size() < step.token_ids.size();
}

void CpuPass::work(const Step& step, const Worker& worker) const {
  embed(step, worker);
  compute_rope(step, worker);
  const auto num_layers = std::ssize(weights_.layers);
  int64_t deepstack = -1;  // feature to add after the previous layer
  for (int64_t i = 0; i < num_layers; ++i) {
    const CpuLayer& layer = weights_.layers[i];
    normalise(deepstack, layer.mixer_norm, num_rows(), worker);
    const bool narrows = is_narrowed_ && i + 1 == num_layers;
    if (std::holds_alternative<CpuDelta>(layer.mixer)) {
      mix_by_delta(step, layer, narrows, worker);
    } else {
      mix_by_attention(step, layer, narrows, worker);
    }
    const int64_t rows = narrows ? std::ssize(last_rows_) : num_rows();
    if (rows == 0) return;
    const kernels::PackedWeights& out = layer.mixer_out();
    kernels::interleave(mixed(), worker.share(rows), {0, out.num_inputs},
                        inputs(rows, out.num_inputs));
    worker.wait();
    multiply(out, inputs(rows, out.num_inputs), hidden(), kernels::Into::kAdd, worker);
    worker.wait();
    normalise(-1, layer.mlp_norm, rows, worker);
    feed_forward(layer, rows, worker);
    deepstack = layer.deepstack;
  }
  compute_logits(deepstack, worker);
}

void CpuPass::mix_by_attention(const Step& step, const CpuLayer& layer, bool narrows,
                               const Worker& worker) const {
  const auto& attention = std::get<CpuAttention>(layer.mixer);
  multiply(attention.in, inputs(num_rows(), text_.hidden_size), qkv(0), kernels::Into::kStore,
           worker);
  worker.wait();
  store_heads(step, layer.cache_idx, attention, worker);
  if (narrows) keep_last_rows(hidden(), text_.hidden_size, worker);
  attend(narrows ? last_step_ : step, narrows, layer.cache_idx, worker);
  if (attention.has_gate) apply_gates(narrows, worker);
}

void CpuPass::mix_by_delta(const Step& step, const CpuLayer& layer, bool narrows,
                           const Worker& worker) const {
  delta_.mix(step, std::get<CpuDelta>(layer.mixer), layer.cache_idx,
             inputs(num_rows(), text_.hidden_size), mixed(), worker);
  worker.wait();
  if (!narrows) return;
  keep_last_rows(hidden(), text_.hidden_size, worker);
  keep_last_rows(mixed(), text_.delta()->value_width(), worker);
}

void CpuPass::embed(const Step& step, const Worker& worker) const {
  const auto num_rows = std::ssize(step.token_ids);
  const Range rows = worker.share(num_rows);
  const int64_t row_bytes = text_.hidden_size * kernels::storage_bytes(weights_.embedding.storage);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const VisualRow* const visual = visual_by_row_[t];
    if (visual != nullptr) {
      std::copy_n(visual->embed_H, text_.hidden_size, hidden().row(t));
    } else {
      const auto* const table = static_cast<const uint8_t*>(weights_.embedding.data);
      kernels::load_from(table + step.token_ids[t] * row_bytes, weights_.embedding.storage,
                         text_.hidden_size, hidden().row(t));
    }
  }
}

void CpuPass::compute_rope(const Step& step, const Worker& worker) const {
  const auto num_rows = std::ssize(step.token_ids);
  const int64_t half = text_.rope.width() / 2;
  const Range angles = worker.share(num_rows * half, 16);
  for (int64_t i = angles.begin; i < angles.end; ++i) {
    const int64_t t = i / half;
    const auto j = static_cast<size_t>(i % half);
    const int64_t position = step.positions_3T[weights_.axis[j] * num_rows + t];
    const float angle = static_cast<float>(position) * weights_.inverse_frequencies[j];
    scratch_.cos_T.data()[i] = std::cos(angle);
    scratch_.sin_T.data()[i] = std::sin(angle);
  }
}

// Adds the pending DeepStack feature, normalises every row and interleaves it for products.
void CpuPass::normalise(int64_t deepstack, const CpuRmsNorm& norm, int64_t num_rows,
                        const Worker& worker) const {
  const Range rows = worker.share(num_rows);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    add_deepstack(deepstack, t, t);
    kernels::rms_norm(hidden().row(t), norm.weight.data(), text_.hidden_size, norm.eps,
                      normed().row(t));
  }
  kernels::interleave(normed(), rows, {0, text_.hidden_size}, inputs(num_rows, text_.hidden_size));
  worker.wait();
}

// @param row  hidden row that holds step row `step_row`
void CpuPass::add_deepstack(int64_t deepstack, int64_t step_row, int64_t row) const {
  const VisualRow* const visual = visual_by_row_[step_row];
  if (visual == nullptr || deepstack < 0 || deepstack >= std::ssize(visual->deepstack_H)) return;
  kernels::add(hidden().row(row), visual->deepstack_H[deepstack], text_.hidden_size);
}

void CpuPass::multiply(const kernels::PackedWeights& w, const kernels::InterleavedRows& x,
                       const Rows& y, kernels::Into into, const Worker& worker) const {
  const Range columns =
      worker.share(w.num_outputs, kernels::share_unit(w.num_outputs, worker.count));
  if (columns.size() > 0) kernels::gemm(w, x, y, columns, into);
}

// Normalises and rotates the heads of q and k; stores k and v in the cache.
void CpuPass::store_heads(const Step& step, int64_t layer_idx, const CpuAttention& layer,
                          const Worker& worker) const {
  const kernels::CacheLayer cache = cache_.layer(layer_idx);
  const int64_t heads = text_.num_attention_heads + text_.num_key_value_heads,
                rotated = text_.rope.width();
  const Range range = worker.share(num_rows() * heads);
  size_t s = 0;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t t = i / heads, head = i % heads, kv_head = head - text_.num_attention_heads;
    float* const x = qkv(head * text_.head_dim).row(t);
    const CpuRmsNorm& norm = kv_head < 0 ? layer.q_norm : layer.k_norm;
    if (!norm.weight.empty()) kernels::rms_norm(x, norm.weight.data(), text_.head_dim, norm.eps, x);
    kernels::rotate(x, scratch_.cos_T.data() + t * rotated / 2,
                    scratch_.sin_T.data() + t * rotated / 2, rotated);
    if (kv_head < 0) continue;
    while (step.sequences[s].first_row + step.sequences[s].num_rows <= t) ++s;
    const int64_t token = step.sequences[s].num_cached + t - step.sequences[s].first_row;
    const int32_t block = step.sequences[s].block_table[token / cache_.shape.block_len];
    kernels::store_token(cache, block, kv_head, token % cache_.shape.block_len, x, x + kv_width());
  }
  worker.wait();
}

// Moves rows that need logits to the front. Only the first worker does: there are few, and they
// must move in order.
void CpuPass::keep_last_rows(const Rows& rows, int64_t width, const Worker& worker) const {
  if (worker.index == 0) {
    for (size_t i = 0; i < last_rows_.size(); ++i) {
      const auto to = static_cast<int64_t>(i);
      if (last_rows_[i] != to) std::copy_n(rows.row(last_rows_[i]), width, rows.row(to));
    }
  }
  worker.wait();
}

// @param narrows  true if `step` is last_step_; results then go to the front
kernels::AttentionTask CpuPass::attention_task(const Step& step, bool narrows,
                                               const CpuAttentionPlan::Task& task) const {
  const StepSequence& sequence = step.sequences[task.sequence];
  const int64_t out_row = narrows ? first_last_rows_[task.sequence] : sequence.first_row;
  return {.block_table = sequence.block_table.data(),
          .first_position = sequence.num_cached,
          .kv_head = task.kv_head,
          .group = group(),
          .queries = task.queries,
          .q = {qkv(0).row(sequence.first_row), qkv_width()},
          .out = {mixed().row(out_row), mixed().stride}};
}

void CpuPass::attend(const Step& step, bool narrows, int64_t layer_idx,
                     const Worker& worker) const {
  const CpuAttentionPlan& plan = narrows ? last_plan_ : plan_;
  const kernels::CacheLayer cache = cache_.layer(layer_idx);
  const int64_t floats = kernels::attention_scratch_floats(text_.head_dim);
  const kernels::AttentionScratch scratch{
      scratch_.attention.data() + worker.index * floats,
      scratch_.pointers.data() + worker.index * kernels::kAttentionScratchRows};
  const int64_t partial_floats = kernels::attention_partial_floats(text_.head_dim);
  const Range items = plan.share(worker.index, worker.count);
  for (int64_t i = items.begin; i < items.end; ++i) {
    const CpuAttentionPlan::Item& item = plan.items()[i];
    const CpuAttentionPlan::Task& task = plan.tasks()[item.task];
    if (item.span < 0) {
      kernels::attend(cache, attention_task(step, narrows, task), scratch);
    } else {
      float* const partial =
          scratch_.partials.data() + (task.first_partial + item.span) * partial_floats;
      kernels::attend_span(cache, attention_task(step, narrows, task), item.span, scratch, partial);
    }
  }
  worker.wait();
  if (plan.num_partials() == 0) return;
  const Range tasks = worker.share(std::ssize(plan.tasks()));
  for (int64_t i = tasks.begin; i < tasks.end; ++i) {
    const CpuAttentionPlan::Task& task = plan.tasks()[i];
    if (task.first_partial < 0) continue;
    kernels::combine_spans(cache, attention_task(step, narrows, task), task.num_spans,
                           scratch_.partials.data() + task.first_partial * partial_floats, scratch);
  }
  worker.wait();
}

// Multiplies what queries attended to by the sigmoid of their gates. Each worker gates the rows
// that it interleaves next.
void CpuPass::apply_gates(bool narrows, const Worker& worker) const {
  const Range rows = worker.share(narrows ? std::ssize(last_rows_) : num_rows());
  const Rows gates = qkv(q_width() + 2 * kv_width());
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const int64_t step_row = narrows ? last_rows_[i] : i;
    kernels::sigmoid_mul(mixed().row(i), gates.row(step_row), q_width());
  }
}

void CpuPass::feed_forward(const CpuLayer& layer, int64_t num_rows, const Worker& worker) const {
  const kernels::InterleavedRows x = inputs(num_rows, text_.hidden_size);
  const kernels::InterleavedRows down_x{scratch_.down_inputs.data(), num_rows,
                                        text_.intermediate_size};
  const Range columns = worker.share(text_.intermediate_size,
                                     kernels::share_unit(text_.intermediate_size, worker.count));
  if (columns.size() > 0) {
    kernels::gemm(layer.gate, x, gate(), columns);
    kernels::gemm(layer.up, x, up(), columns);
    for (int64_t t = 0; t < num_rows; ++t) {
      kernels::silu_mul(gate().row(t) + columns.begin, up().row(t) + columns.begin, columns.size());
    }
    kernels::interleave(gate(), {0, num_rows}, columns, down_x);
  }
  worker.wait();
  multiply(layer.down, down_x, hidden(), kernels::Into::kAdd, worker);
  worker.wait();
}

void CpuPass::compute_logits(int64_t deepstack, const Worker& worker) const {
  const auto num_last = std::ssize(last_rows_);
  if (num_last == 0) return;
  const Rows last{scratch_.last_SH.data(), text_.hidden_size},
      logits{scratch_.logits_SV.data(), text_.vocab_size};
  const Range rows = worker.share(num_last);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const int64_t step_row = last_rows_[i], row = is_narrowed_ ? i : step_row;
    add_deepstack(deepstack, step_row, row);
    kernels::rms_norm(hidden().row(row), weights_.final_norm.weight.data(), text_.hidden_size,
                      weights_.final_norm.eps, last.row(i));
  }
  kernels::interleave(last, rows, {0, text_.hidden_size}, inputs(num_last, text_.hidden_size));
  worker.wait();
  multiply(weights_.head, inputs(num_last, text_.hidden_size), logits, kernels::Into::kStore,
           worker);
}

}  // namespace rematch
