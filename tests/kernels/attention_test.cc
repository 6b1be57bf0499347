#include "model/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/isas.h"
#include "model/kernels/rows.h"

namespace rematch {
namespace {

using kernels::Isa;
using kernels::Storage;

// One sequence of `length` tokens: its queries, and its keys and values in blocks that lie anywhere
// in the cache.
struct Scene {
  struct Shape {
    int64_t length = 1, num_kv_heads = 1, group = 1, head_dim = 16, block_len = 16;
    Storage storage = Storage::kFloat;
  };

  explicit Scene(const Shape& s)
      : shape(s),
        q(test::noise(s.length * q_width(), 1)),
        k(test::noise(s.length * kv_width(), 2)),
        v(test::noise(s.length * kv_width(), 3)) {
    for (float& value : q) value *= 3;  // so that softmax chooses
    const int64_t num_blocks = (s.length + s.block_len - 1) / s.block_len;
    for (int64_t i = 0; i < num_blocks; ++i)
      table.push_back(static_cast<int32_t>((i * 7 + 3) % (num_blocks * 7 + 4)));
    const int64_t size = (num_blocks * 7 + 4) * s.block_len * kv_width();
    keys.assign(static_cast<size_t>(size), NAN);  // what is not written must not be read
    values.assign(static_cast<size_t>(size), NAN);
    cache = {keys.data(), values.data(), s.storage, s.num_kv_heads, s.block_len, s.head_dim};
    for (int64_t t = 0; t < s.length; ++t) {
      for (int64_t h = 0; h < s.num_kv_heads; ++h) {
        kernels::store_token(cache, table[static_cast<size_t>(t / s.block_len)], h, t % s.block_len,
                             &k[static_cast<size_t>(t * kv_width() + h * s.head_dim)],
                             &v[static_cast<size_t>(t * kv_width() + h * s.head_dim)]);
      }
    }
  }

  int64_t q_width() const { return shape.num_kv_heads * shape.group * shape.head_dim; }
  int64_t kv_width() const { return shape.num_kv_heads * shape.head_dim; }

  kernels::AttentionTask task(int64_t first_row, int64_t kv_head, kernels::Range queries,
                              std::vector<float>& out) const {
    return {.block_table = table.data(),
            .first_position = first_row,
            .kv_head = kv_head,
            .group = shape.group,
            .queries = queries,
            .q = {q.data() + first_row * q_width(), q_width()},
            .out = {out.data() + first_row * q_width(), q_width()}};
  }

  /// Answers rows `rows` in tasks of `tile` queries.
  void attend(kernels::Range rows, int64_t tile, std::vector<float>& out) const {
    const Memory memory(shape.head_dim);
    const int64_t num_queries = rows.size() * shape.group;
    for (int64_t h = 0; h < shape.num_kv_heads; ++h) {
      for (int64_t begin = 0; begin < num_queries; begin += tile) {
        kernels::attend(cache,
                        task(rows.begin, h, {begin, std::min(begin + tile, num_queries)}, out),
                        memory.scratch());
      }
    }
  }

  std::vector<float> whole() const {
    std::vector<float> out(q.size());
    attend({0, shape.length}, kernels::kAttentionQueries, out);
    return out;
  }

  double exact(int64_t row, int64_t head, int64_t d) const {
    const int64_t D = shape.head_dim, h = head / shape.group;
    std::vector<double> weights;
    double total = 0, sum = 0;
    for (int64_t t = 0; t <= row; ++t) {
      double score = 0;
      for (int64_t i = 0; i < D; ++i) {
        score += static_cast<double>(q[static_cast<size_t>(row * q_width() + head * D + i)]) *
                 stored(k, t * kv_width() + h * D + i);
      }
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(D))));
      total += weights.back();
    }
    for (int64_t t = 0; t <= row; ++t)
      sum += weights[static_cast<size_t>(t)] * stored(v, t * kv_width() + h * D + d);
    return sum / total;
  }

  double stored(const std::vector<float>& x, int64_t i) const {
    float value = x[static_cast<size_t>(i)];
    if (shape.storage == Storage::kBfloat16) {
      uint16_t half;
      kernels::store_as(&value, 1, Storage::kBfloat16, &half);
      value = test::from_bfloat16(half);
    }
    return value;
  }

  struct Memory {
    explicit Memory(int64_t head_dim)
        : values(static_cast<size_t>(kernels::attention_scratch_floats(head_dim))),
          rows(kernels::kAttentionScratchRows) {}
    kernels::AttentionScratch scratch() const { return {values.data(), rows.data()}; }
    mutable std::vector<float> values;
    mutable std::vector<const void*> rows;
  };

  Shape shape;
  std::vector<float> q, k, v, keys, values;
  std::vector<int32_t> table;
  kernels::CacheLayer cache;
};

TEST(Attention, IsTheSoftmaxOverEverythingBefore) {
  test::for_each_isa([](Isa isa) {
    for (const Storage storage : {Storage::kFloat, Storage::kBfloat16}) {
      for (const Scene::Shape& shape : {Scene::Shape{40, 2, 2, 32, 16},
                                        {300, 1, 3, 16, 16},
                                        {70, 2, 1, 24, 5},
                                        {33, 1, 7, 128, 1},
                                        {600, 1, 1, 12, 32},
                                        {21, 1, 16, 80, 4}}) {
        Scene::Shape with_storage = shape;
        with_storage.storage = storage;
        const Scene scene(with_storage);
        const std::vector<float> out = scene.whole();
        for (int64_t row = 0; row < shape.length; row += row < 20 ? 1 : 29) {
          for (int64_t i = 0; i < scene.q_width(); i += 5) {
            ASSERT_NEAR(out[static_cast<size_t>(row * scene.q_width() + i)],
                        scene.exact(row, i / shape.head_dim, i % shape.head_dim), 3e-6)
                << kernels::isa_name(isa) << " length " << shape.length << " head size "
                << shape.head_dim << " row " << row;
          }
        }
      }
    }
  });
}

TEST(Attention, GivesTheSameBitsForAnyCutOfThePrompt) {
  test::for_each_isa([](Isa isa) {
    const Scene scene({600, 2, 3, 32, 16});
    const std::vector<float> whole = scene.whole();
    for (const int64_t chunk : {1, 7, 64, 255}) {
      std::vector<float> out(whole.size());
      for (int64_t begin = 0; begin < 600; begin += chunk)
        scene.attend({begin, std::min<int64_t>(begin + chunk, 600)}, 12, out);
      ASSERT_EQ(out, whole) << kernels::isa_name(isa) << " in chunks of " << chunk;
    }
    for (const int64_t tile : {1, 2, 5, 11}) {
      std::vector<float> out(whole.size());
      scene.attend({0, 600}, tile, out);
      ASSERT_EQ(out, whole) << kernels::isa_name(isa) << " with tasks of " << tile;
    }
  });
}

TEST(Attention, GivesTheSameBitsForAnyBlockLength) {
  test::for_each_isa([](Isa isa) {
    const std::vector<float> expected = Scene({290, 1, 2, 24, 16}).whole();
    for (const int64_t block_len : {1, 2, 3, 8, 17, 32, 300}) {
      ASSERT_EQ(Scene({290, 1, 2, 24, block_len}).whole(), expected)
          << kernels::isa_name(isa) << " " << block_len;
    }
  });
}

TEST(Attention, GivesTheSameBitsWhenWorkersShareASequence) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t length : {200, 256, 257, 700}) {
      const Scene scene({length, 2, 3, 40, 16});
      const Scene::Memory memory(40);
      std::vector<float> whole(scene.q.size()), out(scene.q.size());
      scene.attend({length - 1, length}, 12, whole);
      const int64_t num_spans = (length + kernels::kAttentionSpan - 1) / kernels::kAttentionSpan;
      const int64_t floats = kernels::attention_partial_floats(40);
      for (int64_t h = 0; h < 2; ++h) {
        const kernels::AttentionTask task = scene.task(length - 1, h, {0, 3}, out);
        std::vector<float> partials(static_cast<size_t>(num_spans * floats));
        for (int64_t span = num_spans - 1; span >= 0; --span) {
          kernels::attend_span(scene.cache, task, span, memory.scratch(),
                               partials.data() + span * floats);
        }
        kernels::combine_spans(scene.cache, task, num_spans, partials.data(), memory.scratch());
      }
      ASSERT_EQ(out, whole) << kernels::isa_name(isa) << " " << length;
    }
  });
}

}  // namespace
}  // namespace rematch
