#include "rollout/native/cpu_vision.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "rollout/native/cpu_buffer.h"
#include "rollout/native/cpu_tower.h"
#include "kernels/attention.h"
#include "kernels/rows.h"
#include "kernels/team.h"
#include "model/vision_rows.h"

namespace rematch {
namespace {

using kernels::ConstRows;
using kernels::Range;
using kernels::Rows;
using kernels::Worker;

// Shapes: N rows (patches), D hidden, F intermediate, M = N/merge² visual tokens, H text hidden, Dh head size.

constexpr size_t kKeptGrids = 64;
constexpr int64_t kBlockLen = 16;  // of the keys and values of a frame

// The outputs of one image.
struct Job {
  CpuVision::Image image;
  const VisionRows* rows = nullptr;
  float* embeds_MH = nullptr;
  std::vector<std::pair<const CpuMerger*, float*>> merger_after;  // of each block; null where it feeds none
};

// One image's pass through the tower: its activations, and one worker's part; a barrier wherever a worker needs another one's results.
struct Pass {
  const VisionDescription& vision;
  const CpuTower& tower;
  // Keys and values of a frame are a sequence of one "block table": 0, 1, 2, …
  int64_t num_rows = 0, frame_len = 0;
  CpuBuffer<float> inputs, hidden_ND, normed_ND, qkv_N, attended_ND, inner_NF, merged, keys, values, attention;
  CpuBuffer<const void*> pointers;
  std::vector<int32_t> block_table;

  int64_t merge_area() const { return vision.merge_area(); }
  int64_t head_dim() const { return vision.head_dim(); }
  int64_t blocks_of_frame() const { return (frame_len + kBlockLen - 1) / kBlockLen; }
  Rows hidden() const { return {hidden_ND.data(), vision.hidden_size}; }  // merge² rows are one row of a merger
  Rows normed() const { return {normed_ND.data(), vision.hidden_size}; }
  Rows qkv() const { return {qkv_N.data(), 3 * vision.hidden_size}; }
  Rows attended() const { return {attended_ND.data(), vision.hidden_size}; }
  Rows inner() const { return {inner_NF.data(), vision.intermediate_size}; }

  void reserve(const GridThw& grid, int num_workers) {
    num_rows = grid[0] * grid[1] * grid[2];
    frame_len = grid[1] * grid[2];
    const int64_t width = vision.hidden_size, merged_width = width * merge_area();
    // Products read pixels, rows, and merged rows, which have as many values.
    inputs.reserve(num_rows * std::max({tower.patch_embed.num_inputs, width, vision.intermediate_size}));
    hidden_ND.reserve(num_rows * width);
    normed_ND.reserve(num_rows * width);
    qkv_N.reserve(num_rows * 3 * width);
    attended_ND.reserve(num_rows * width);
    inner_NF.reserve(num_rows * vision.intermediate_size);
    merged.reserve(2 * (num_rows / merge_area()) * merged_width);
    keys.reserve(grid[0] * blocks_of_frame() * kBlockLen * width);
    values.reserve(grid[0] * blocks_of_frame() * kBlockLen * width);
    attention.reserve(num_workers * kernels::attention_scratch_floats(head_dim()));
    pointers.reserve(num_workers * kernels::kAttentionScratchRows);
    block_table.resize(static_cast<size_t>(grid[0] * blocks_of_frame()));
    std::iota(block_table.begin(), block_table.end(), 0);
  }

  kernels::CacheLayer cache() const {
    return {keys.data(), values.data(), kernels::Storage::kFloat, vision.num_heads, kBlockLen, head_dim()};
  }

  // Calls finish(columns) for all outputs of a product once they are ready.
  template <class Finish>
  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y, kernels::Into into, const Worker& worker,
                const Finish& finish) const {
    const kernels::InterleavedRows in_order{inputs.data(), rows, w.num_inputs};
    kernels::interleave(x, kernels::share(rows, 1, worker.index, worker.count), {0, w.num_inputs}, in_order);
    worker.wait();
    worker.deal(w.num_outputs, kernels::run_of_panels(w.num_outputs, worker.count), [&](Range columns) {
      kernels::gemm(w, in_order, y, columns, into);
      finish(columns);
    });
    worker.wait();
  }

  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y, kernels::Into into,
                const Worker& worker) const {
    multiply(w, x, rows, y, into, worker, [](Range) {});
  }

  // A product followed by `activate`.
  void multiply(const kernels::PackedWeights& w, const ConstRows& x, int64_t rows, const Rows& y, void (*activate)(float*, int64_t),
                const Worker& worker) const {
    multiply(w, x, rows, y, kernels::Into::kStore, worker, [&](Range columns) {
      for (int64_t i = 0; i < rows; ++i) activate(y.row(i) + columns.begin, columns.size());
    });
  }

  void normalise(const CpuLayerNorm& norm, const Worker& worker) const {
    const Range rows = kernels::share(num_rows, 1, worker.index, worker.count);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      kernels::layer_norm(hidden().row(i), norm.weight.data(), norm.bias.data(), vision.hidden_size, norm.eps, normed().row(i));
    }
    worker.wait();
  }

  void embed(const float* pixels, const VisionRows& rows, const Worker& worker) const {
    const int64_t width = tower.patch_embed.num_inputs;
    multiply(tower.patch_embed, {pixels, width}, num_rows, hidden(), kernels::Into::kStore, worker);
    const Range mine = kernels::share(num_rows, 1, worker.index, worker.count);
    const float* const positions = rows.position_ND.const_data_ptr<float>();
    for (int64_t i = mine.begin; i < mine.end; ++i) kernels::add(hidden().row(i), positions + i * vision.hidden_size, vision.hidden_size);
  }

  // Rotates q and k, and stores k and v where attention reads them.
  void rotate(const VisionRows& rows, const Worker& worker) const {
    const float* const cos = rows.rope.cos.const_data_ptr<float>();
    const float* const sin = rows.rope.sin.const_data_ptr<float>();
    const int64_t width = vision.hidden_size;
    const Range mine = kernels::share(num_rows, 1, worker.index, worker.count);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const int64_t slot = i % frame_len;
      for (int64_t head = 0; head < vision.num_heads; ++head) {
        float* const q = qkv().row(i) + head * head_dim();
        kernels::rotate(q, cos + i * head_dim(), sin + i * head_dim(), head_dim());
        kernels::rotate(q + width, cos + i * head_dim(), sin + i * head_dim(), head_dim());
        kernels::store_token(cache(), i / frame_len * blocks_of_frame() + slot / kBlockLen, head, slot % kBlockLen, q + width,
                             q + 2 * width);
      }
    }
    worker.wait();
  }

  void attend(const Worker& worker) const {
    const kernels::AttentionScratch scratch{attention.data() + worker.index * kernels::attention_scratch_floats(head_dim()),
                                            pointers.data() + worker.index * kernels::kAttentionScratchRows};
    const int64_t tasks_of_head = (frame_len + kernels::kAttentionQueries - 1) / kernels::kAttentionQueries;
    const int64_t num_frames = num_rows / frame_len;
    const Range mine = kernels::share(num_frames * vision.num_heads * tasks_of_head, 1, worker.index, worker.count);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const int64_t frame = i / (vision.num_heads * tasks_of_head), first = i % tasks_of_head * kernels::kAttentionQueries;
      kernels::attend(cache(),
                      {.block_table = block_table.data() + frame * blocks_of_frame(),
                       .kv_head = i / tasks_of_head % vision.num_heads,
                       .queries = {first, std::min(first + kernels::kAttentionQueries, frame_len)},
                       .q = {qkv().row(frame * frame_len), qkv().stride},
                       .out = {attended().row(frame * frame_len), attended().stride},
                       .last_position = frame_len - 1},
                      scratch);
    }
    worker.wait();
  }

  void run_block(const CpuVisionBlock& block, const VisionRows& rows, const Worker& worker) const {
    normalise(block.norm1, worker);
    multiply(block.qkv, normed(), num_rows, qkv(), kernels::Into::kStore, worker);
    rotate(rows, worker);
    attend(worker);
    multiply(block.proj, attended(), num_rows, hidden(), kernels::Into::kAdd, worker);
    normalise(block.norm2, worker);
    multiply(block.fc1, normed(), num_rows, inner(), kernels::gelu_tanh, worker);
    multiply(block.fc2, inner(), num_rows, hidden(), kernels::Into::kAdd, worker);
  }

  // Rows are in block order, so merge² consecutive ones are a visual token. Hidden rows are only read.
  void merge(const CpuMerger& merger, const Rows& out, const Worker& worker) const {
    const int64_t num_tokens = num_rows / merge_area(), width = vision.hidden_size, merged_width = width * merge_area();
    const Rows shuffled{merged.data(), merged_width}, inner{shuffled.row(num_tokens), merged_width};
    const Range mine = kernels::share(num_tokens, 1, worker.index, worker.count);
    const int64_t norm_width = merger.norm_after_shuffle ? merged_width : width;
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      for (int64_t part = 0; part < merged_width; part += norm_width) {
        kernels::layer_norm(hidden().row(i * merge_area()) + part, merger.norm.weight.data(), merger.norm.bias.data(), norm_width,
                            merger.norm.eps, shuffled.row(i) + part);
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
      if (merger != nullptr) merge(*merger, {out, vision.out_hidden_size()}, worker);
    }
    merge(tower.merger, {job.embeds_MH, vision.out_hidden_size()}, worker);
  }
};

}  // namespace

struct CpuVision::Impl {
  explicit Impl(std::shared_ptr<const Model> m) : model(std::move(m)), vision(model->description().vision) {}

  // Positions of an image's patches. Images of one size share them.
  const VisionRows& rows_of(const GridThw& grid) {
    const auto [found, is_new] = rows_of_grid.try_emplace(grid);
    VisionRows& rows = found->second;
    if (is_new) {
      rows = make_vision_rows({grid}, vision, tower.pos_embed);
      rows.position_ND = rows.position_ND.to(at::kFloat).contiguous();
      rows.rope = {rows.rope.cos.contiguous(), rows.rope.sin.contiguous()};
    }
    return rows;
  }

  // Features to fill, and their source.
  Job make_job(const Image& image, VisionFeatures& features) {
    const auto& [t, height, width] = image.grid_thw;
    REMATCH_CHECK(t >= 1 && height >= 1 && width >= 1 && height % vision.spatial_merge_size == 0 && width % vision.spatial_merge_size == 0,
                  fmt::format("{}x{}x{} patches", t, height, width));
    const int64_t num_tokens = vision.num_tokens(image.grid_thw);
    const auto new_features = [&] { return at::empty({num_tokens, vision.out_hidden_size()}, at::kFloat); };
    Job job{image, &rows_of(image.grid_thw)};
    job.merger_after.resize(tower.blocks.size());
    for (size_t i = 0; i < tower.blocks.size(); ++i) {
      const int64_t merger = vision.blocks[i].deepstack_merger;
      if (merger < 0) continue;
      features.deepstack_MH.push_back(new_features());
      job.merger_after[i] = {&tower.deepstack[static_cast<size_t>(merger)], features.deepstack_MH.back().data_ptr<float>()};
    }
    features.embeds_MH = new_features();
    job.embeds_MH = features.embeds_MH.data_ptr<float>();
    return job;
  }

  void run(const std::vector<Job>& jobs, int num_threads) {
    while (passes.size() < static_cast<size_t>(num_threads)) passes.push_back(Pass{vision, tower});
    if (jobs.size() < static_cast<size_t>(num_threads)) {
      for (const Job& job : jobs) {
        passes[0].reserve(job.image.grid_thw, num_threads);
        kernels::run_team(num_threads, [&](const Worker& worker) { passes[0].run(job, worker); });
      }
      return;
    }
    for (const Job& job : jobs) {
      for (int i = 0; i < num_threads; ++i) passes[static_cast<size_t>(i)].reserve(job.image.grid_thw, 1);
    }
    std::atomic<size_t> next{0};
    kernels::run_team(num_threads, [&](const Worker& worker) {
      Pass& pass = passes[static_cast<size_t>(worker.index)];
      for (size_t i = next++; i < jobs.size(); i = next++) {
        pass.reserve(jobs[i].image.grid_thw, 1);
        pass.run(jobs[i], Worker{});
      }
    });
  }

  std::shared_ptr<const Model> model;
  const VisionDescription& vision;
  CpuTower tower;
  std::map<GridThw, VisionRows> rows_of_grid;  // with the tower's weights
  std::vector<Pass> passes;
};

CpuVision::CpuVision(std::shared_ptr<const Model> model) : impl_(std::make_unique<Impl>(std::move(model))) {}
CpuVision::~CpuVision() = default;

void CpuVision::refresh() {
  impl_->tower = take_cpu_tower(*impl_->model);
  impl_->rows_of_grid.clear();
}

void CpuVision::release() { impl_ = std::make_unique<Impl>(impl_->model); }

std::vector<VisionFeatures> CpuVision::encode(std::span<const Image> images) {
  const at::NoGradGuard no_grad;
  if (impl_->tower.blocks.empty()) refresh();
  if (impl_->rows_of_grid.size() > kKeptGrids) impl_->rows_of_grid.clear();
  std::vector<VisionFeatures> features(images.size());
  std::vector<Job> jobs;
  for (size_t i = 0; i < images.size(); ++i) jobs.push_back(impl_->make_job(images[i], features[i]));
  impl_->run(jobs, std::max(1, at::get_num_threads()));
  return features;
}

}  // namespace rematch
