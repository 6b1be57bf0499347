#include "engine/rollout/native/cpu/vision.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/rollout/native/cpu/buffer.h"
#include "engine/rollout/native/cpu/tower.h"
#include "engine/rollout/native/cpu/vision_spans.h"
#include "model/kernels/attention.h"
#include "model/kernels/rows.h"
#include "model/kernels/team.h"
#include "model/vision_rows.h"

namespace rematch {
namespace {

using kernels::ConstRows;
using kernels::Range;
using kernels::Rows;
using kernels::Worker;

// Shapes: N rows (patches), D hidden, F intermediate, M = N/merge² visual tokens, H text hidden, Dh
// head size.

constexpr size_t kKeptGrids = 64;
constexpr int64_t kBlockLen = CpuVisionSpans::kBlockLen;

// Data that depends only on an image's grid.
struct GridRows {
  VisionRows rows;
  CpuVisionSpans frames, windows;
  // VisionRows::order_N and token_M; empty = the processor's order
  std::vector<int64_t> order, token;

  const CpuVisionSpans& spans(const CpuVisionBlock& block) const {
    return block.has_windows ? windows : frames;
  }
  int64_t num_blocks() const { return std::max(frames.num_blocks(), windows.num_blocks()); }
};

// Input and outputs of one image.
struct Job {
  CpuVision::Image image;
  const GridRows* rows = nullptr;
  float* embeds_MH = nullptr;
  // per block: the merger that it feeds and its output; null if none
  std::vector<std::pair<const CpuMerger*, float*>> merger_after;
};

// The forward pass of one image: its activations, and each worker's share of the work, with a
// barrier wherever workers need each other's results. After an interrupt the long loops end early,
// and the result is not used.
struct Pass {
  const VisionDescription& vision;
  const CpuTower& tower;
  // block_table is 0, 1, 2, …: keys and values of a span are in consecutive blocks
  int64_t num_rows = 0;
  CpuBuffer<float> inputs, hidden_ND, normed_ND, qkv_N, attended_ND, inner_NF, gate_NF, merged,
      keys, values, attention;
  CpuBuffer<const void*> pointers;
  std::vector<int32_t> block_table;

  int64_t merge_area() const { return vision.merge_area(); }
  int64_t head_dim() const { return vision.head_dim(); }
  // merge² rows form one row of a merger
  Rows hidden() const { return {hidden_ND.data(), vision.hidden_size}; }
  Rows normed() const { return {normed_ND.data(), vision.hidden_size}; }
  Rows qkv() const { return {qkv_N.data(), 3 * vision.hidden_size}; }
  Rows attended() const { return {attended_ND.data(), vision.hidden_size}; }
  Rows inner() const { return {inner_NF.data(), vision.intermediate_size}; }
  Rows gate() const { return {gate_NF.data(), vision.intermediate_size}; }

  void reserve(const Job& job, int num_workers) {
    const GridThw& grid = job.image.grid_thw;
    num_rows = grid[0] * grid[1] * grid[2];
    const int64_t width = vision.hidden_size, merged_width = width * merge_area();
    // Inputs of products: pixels, rows, and merged rows (as many values as rows).
    inputs.reserve(num_rows *
                   std::max({tower.patch_embed.num_inputs, width, vision.intermediate_size}));
    hidden_ND.reserve(num_rows * width);
    normed_ND.reserve(num_rows * width);
    qkv_N.reserve(num_rows * 3 * width);
    attended_ND.reserve(num_rows * width);
    inner_NF.reserve(num_rows * vision.intermediate_size);
    const bool is_gated = !tower.blocks.empty() && tower.blocks.front().gate.num_outputs > 0;
    if (is_gated) gate_NF.reserve(num_rows * vision.intermediate_size);
    merged.reserve(2 * (num_rows / merge_area()) * merged_width);
    keys.reserve(job.rows->num_blocks() * kBlockLen * width);
    values.reserve(job.rows->num_blocks() * kBlockLen * width);
    attention.reserve(num_workers * kernels::attention_scratch_floats(head_dim()));
    pointers.reserve(num_workers * kernels::kAttentionScratchRows);
    block_table.resize(job.rows->num_blocks());
    std::iota(block_table.begin(), block_table.end(), 0);
  }

  kernels::CacheLayer cache() const {
    return {keys.data(),      values.data(), kernels::Storage::kFloat,
            vision.num_heads, kBlockLen,     head_dim()};
  }

  // Computes a product and calls finish(columns) on each worker's columns.
  template <class Finish>
  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y,
                kernels::Into into, const Worker& worker, const Finish& finish) const {
    const kernels::InterleavedRows in_order{inputs.data(), rows, w.num_inputs};
    kernels::interleave(x, worker.share(rows), {0, w.num_inputs}, in_order);
    worker.wait();
    const Range columns =
        worker.share(w.num_outputs, kernels::share_unit(w.num_outputs, worker.count));
    if (columns.size() > 0 && !interrupt_requested()) {
      kernels::gemm(w, in_order, y, columns, into);
      finish(columns);
    }
    worker.wait();
  }

  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y,
                kernels::Into into, const Worker& worker) const {
    multiply(w, x, rows, y, into, worker, [](Range) {});
  }

  // A product followed by `activate`.
  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y,
                void (*activate)(float*, int64_t), const Worker& worker) const {
    multiply(w, x, rows, y, kernels::Into::kStore, worker, [&](Range columns) {
      for (int64_t i = 0; i < rows; ++i) activate(y.row(i) + columns.begin, columns.size());
    });
  }

  static void normalise(const CpuVisionNorm& norm, const float* x, int64_t width, float* y) {
    if (norm.bias.empty()) {
      kernels::rms_norm(x, norm.weight.data(), width, norm.eps, y);
    } else {
      kernels::layer_norm(x, norm.weight.data(), norm.bias.data(), width, norm.eps, y);
    }
  }

  void normalise(const CpuVisionNorm& norm, const Worker& worker) const {
    const Range rows = worker.share(num_rows);
    for (int64_t i = rows.begin; i < rows.end; ++i)
      normalise(norm, hidden().row(i), vision.hidden_size, normed().row(i));
    worker.wait();
  }

  // @param pixels  patches in the processor's order
  void embed(const float* pixels, const GridRows& grid, const Worker& worker) const {
    const int64_t width = tower.patch_embed.num_inputs;
    const bool moves = !grid.order.empty();
    multiply(tower.patch_embed, {pixels, width}, num_rows, moves ? normed() : hidden(),
             kernels::Into::kStore, worker);
    const Range mine = worker.share(num_rows);
    const float* const positions =
        grid.rows.position_ND.defined() ? grid.rows.position_ND.const_data_ptr<float>() : nullptr;
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      if (moves) std::copy_n(normed().row(grid.order[i]), vision.hidden_size, hidden().row(i));
      if (positions != nullptr)
        kernels::add(hidden().row(i), positions + i * vision.hidden_size, vision.hidden_size);
    }
    if (moves) worker.wait();
  }

  // Rotates q and k; stores k and v in blocks for attention.
  void rotate(const VisionRows& rows, const CpuVisionSpans& spans, const Worker& worker) const {
    const float* const cos = rows.rope.cos.const_data_ptr<float>();
    const float* const sin = rows.rope.sin.const_data_ptr<float>();
    const int64_t width = vision.hidden_size;
    const Range mine = worker.share(num_rows);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      for (int64_t head = 0; head < vision.num_heads; ++head) {
        float* const q = qkv().row(i) + head * head_dim();
        kernels::rotate(q, cos + i * head_dim(), sin + i * head_dim(), head_dim());
        kernels::rotate(q + width, cos + i * head_dim(), sin + i * head_dim(), head_dim());
        kernels::store_token(cache(), spans.block(i), head, spans.slot(i), q + width,
                             q + 2 * width);
      }
    }
    worker.wait();
  }

  void attend(const CpuVisionSpans& spans, const Worker& worker) const {
    const kernels::AttentionScratch scratch{
        attention.data() + worker.index * kernels::attention_scratch_floats(head_dim()),
        pointers.data() + worker.index * kernels::kAttentionScratchRows};
    const auto num_tasks = std::ssize(spans.tasks());
    const Range mine = worker.share(vision.num_heads * num_tasks);
    for (int64_t i = mine.begin; i < mine.end && !interrupt_requested(); ++i) {
      const auto& [span, queries] = spans.tasks()[i % num_tasks];
      kernels::attend(cache(),
                      {.block_table = block_table.data() + span.first_block,
                       .kv_head = i / num_tasks,
                       .queries = queries,
                       .q = {qkv().row(span.first_row), qkv().stride},
                       .out = {attended().row(span.first_row), attended().stride},
                       .last_position = span.len - 1},
                      scratch);
    }
    worker.wait();
  }

  void feed_forward(const CpuVisionBlock& block, const Worker& worker) const {
    if (block.gate.num_outputs == 0) {
      multiply(block.fc1, normed(), num_rows, inner(), kernels::gelu_tanh, worker);
      multiply(block.fc2, inner(), num_rows, hidden(), kernels::Into::kAdd, worker);
      return;
    }
    multiply(block.fc1, normed(), num_rows, inner(), kernels::Into::kStore, worker);
    multiply(block.gate, normed(), num_rows, gate(), kernels::Into::kStore, worker,
             [&](Range columns) {
               for (int64_t i = 0; i < num_rows; ++i) {
                 kernels::silu_mul(gate().row(i) + columns.begin, inner().row(i) + columns.begin,
                                   columns.size());
               }
             });
    multiply(block.fc2, gate(), num_rows, hidden(), kernels::Into::kAdd, worker);
  }

  void run_block(const CpuVisionBlock& block, const GridRows& grid, const Worker& worker) const {
    const CpuVisionSpans& spans = grid.spans(block);
    normalise(block.norm1, worker);
    multiply(block.qkv, normed(), num_rows, qkv(), kernels::Into::kStore, worker);
    rotate(grid.rows, spans, worker);
    attend(spans, worker);
    multiply(block.proj, attended(), num_rows, hidden(), kernels::Into::kAdd, worker);
    normalise(block.norm2, worker);
    feed_forward(block, worker);
  }

  // Merges each merge² consecutive rows into a visual token, in the processor's order. Does not
  // change the hidden rows.
  void merge(const CpuMerger& merger, const GridRows& grid, const Rows& out,
             const Worker& worker) const {
    const int64_t num_tokens = num_rows / merge_area(), width = vision.hidden_size,
                  merged_width = width * merge_area();
    const Rows shuffled{merged.data(), merged_width}, inner{shuffled.row(num_tokens), merged_width};
    const Range mine = worker.share(num_tokens);
    const int64_t norm_width = merger.norm_after_shuffle ? merged_width : width;
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const int64_t token = grid.token.empty() ? i : grid.token[i];
      for (int64_t part = 0; part < merged_width; part += norm_width) {
        normalise(merger.norm, hidden().row(token * merge_area()) + part, norm_width,
                  shuffled.row(i) + part);
      }
    }
    worker.wait();
    multiply(merger.fc1, shuffled, num_tokens, inner, kernels::gelu_erf, worker);
    multiply(merger.fc2, inner, num_tokens, out, kernels::Into::kStore, worker);
  }

  void run(const Job& job, const Worker& worker) const {
    embed(job.image.pixels, *job.rows, worker);
    for (size_t i = 0; i < tower.blocks.size(); ++i) {
      run_block(tower.blocks[i], *job.rows, worker);
      const auto& [merger, out] = job.merger_after[i];
      if (merger != nullptr) merge(*merger, *job.rows, {out, vision.out_hidden_size()}, worker);
    }
    merge(tower.merger, *job.rows, {job.embeds_MH, vision.out_hidden_size()}, worker);
  }
};

}  // namespace

struct CpuVision::Impl {
  explicit Impl(std::shared_ptr<const Model> m)
      : model(std::move(m)), vision(model->description().vision) {}

  // Cached positions of the patches of a grid.
  const GridRows& grid_rows(const GridThw& grid) {
    const auto [found, is_new] = rows_by_grid.try_emplace(grid);
    GridRows& all = found->second;
    if (!is_new) return all;
    VisionRows& rows = all.rows;
    rows = make_vision_rows({grid}, vision, tower.pos_embed, at::kCPU);
    if (rows.position_ND.defined()) rows.position_ND = rows.position_ND.to(at::kFloat).contiguous();
    rows.rope = {rows.rope.cos.contiguous(), rows.rope.sin.contiguous()};
    all.frames = CpuVisionSpans(rows.frame_lens);
    all.windows = CpuVisionSpans(rows.window_lens);
    const auto values = [](const at::Tensor& index) {
      return index.defined() ? std::vector<int64_t>(index.data_ptr<int64_t>(),
                                                    index.data_ptr<int64_t>() + index.numel())
                             : std::vector<int64_t>{};
    };
    all.order = values(rows.order_N.defined() ? rows.order_N.contiguous() : rows.order_N);
    all.token = values(rows.token_M.defined() ? rows.token_M.contiguous() : rows.token_M);
    return all;
  }

  // Allocates the features of an image.
  Job make_job(const Image& image, VisionFeatures& features) {
    const auto& [t, height, width] = image.grid_thw;
    REMATCH_CHECK(t >= 1 && height >= 1 && width >= 1 && height % vision.spatial_merge_size == 0 &&
                      width % vision.spatial_merge_size == 0,
                  fmt::format("{}x{}x{} patches", t, height, width));
    const int64_t num_tokens = vision.num_tokens(image.grid_thw);
    const auto new_features = [&] {
      return at::empty({num_tokens, vision.out_hidden_size()}, at::kFloat);
    };
    Job job{image, &grid_rows(image.grid_thw)};
    job.merger_after.resize(tower.blocks.size());
    for (size_t i = 0; i < tower.blocks.size(); ++i) {
      const int64_t merger = vision.blocks[i].deepstack_merger;
      if (merger < 0) continue;
      features.deepstack_MH.push_back(new_features());
      job.merger_after[i] = {&tower.deepstack[merger],
                             features.deepstack_MH.back().data_ptr<float>()};
    }
    features.embeds_MH = new_features();
    job.embeds_MH = features.embeds_MH.data_ptr<float>();
    return job;
  }

  void run(const std::vector<Job>& jobs, int num_threads) {
    while (passes.size() < static_cast<size_t>(num_threads)) passes.push_back(Pass{vision, tower});
    if (jobs.size() < static_cast<size_t>(num_threads)) {
      for (const Job& job : jobs) {
        passes[0].reserve(job, num_threads);
        kernels::run_team(num_threads, [&](const Worker& worker) { passes[0].run(job, worker); });
      }
      return;
    }
    for (const Job& job : jobs) {
      for (int i = 0; i < num_threads; ++i) passes[i].reserve(job, 1);
    }
    std::atomic<size_t> next{0};
    kernels::run_team(num_threads, [&](const Worker& worker) {
      Pass& pass = passes[worker.index];
      for (size_t i = next++; i < jobs.size(); i = next++) {
        pass.reserve(jobs[i], 1);
        pass.run(jobs[i], Worker{});
      }
    });
  }

  std::shared_ptr<const Model> model;
  const VisionDescription& vision;
  CpuTower tower;
  std::map<GridThw, GridRows> rows_by_grid;  // valid for the current weights
  std::vector<Pass> passes;
};

CpuVision::CpuVision(std::shared_ptr<const Model> model)
    : impl_(std::make_unique<Impl>(std::move(model))) {}
CpuVision::~CpuVision() = default;

void CpuVision::refresh() {
  impl_->tower = load_cpu_tower(*impl_->model);
  impl_->rows_by_grid.clear();
}

void CpuVision::release() { impl_ = std::make_unique<Impl>(impl_->model); }

std::vector<VisionFeatures> CpuVision::encode(std::span<const Image> images) {
  const at::NoGradGuard no_grad;
  if (impl_->tower.blocks.empty()) refresh();
  if (impl_->rows_by_grid.size() > kKeptGrids) impl_->rows_by_grid.clear();
  std::vector<VisionFeatures> features(images.size());
  std::vector<Job> jobs;
  for (size_t i = 0; i < images.size(); ++i)
    jobs.push_back(impl_->make_job(images[i], features[i]));
  impl_->run(jobs, std::max(1, at::get_num_threads()));
  throw_if_interrupted();
  return features;
}

}  // namespace rematch
