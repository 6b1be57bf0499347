#include "model/kernels/delta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "kernels/isas.h"

namespace rematch {
namespace {

using kernels::DeltaShape;
using kernels::Isa;

constexpr int64_t kLengths[] = {1, 3, 4, 63, 64, 65, 200};

// Random inputs of all heads of a sequence.
struct DeltaScene {
  DeltaScene(const DeltaShape& head, int64_t key_heads, int64_t num_tokens, uint64_t seed)
      : shape(head), num_heads(key_heads), length(num_tokens) {
    inputs = test::noise(length * columns(), seed);
    taps = test::noise(kernels::kDeltaTaps * columns(), seed + 1);
    decay = test::noise(length * num_values(), seed + 2);
    for (float& g : decay) g = -std::exp(3.0f * g - 2.0f);  // from almost nothing to −2.7
    beta = test::noise(length * num_values(), seed + 3);
    for (float& value : beta) value = 0.5f + 0.5f * value;
  }
  int64_t columns() const { return num_heads * shape.channels(); }
  int64_t num_values() const { return num_heads * shape.group; }
  int64_t out_columns() const { return num_values() * shape.value_dim; }

  DeltaShape shape;
  int64_t num_heads, length;
  std::vector<float> inputs, taps, decay, beta;
};

// The rule token by token in float64, as it stands in papers: convolution, unit length, decay,
// correction, output.
class Reference {
 public:
  explicit Reference(const DeltaScene& scene) : scene_(scene) {}

  std::vector<double> outputs() {
    const DeltaShape& shape = scene_.shape;
    std::vector<double> states(
        static_cast<size_t>(scene_.num_values() * shape.key_dim * shape.value_dim));
    std::vector<double> out;
    for (int64_t t = 0; t < scene_.length; ++t) {
      for (int64_t head = 0; head < scene_.num_values(); ++head) {
        double* const state = states.data() + head * shape.key_dim * shape.value_dim;
        const std::vector<double> row = step(t, head, state);
        out.insert(out.end(), row.begin(), row.end());
      }
    }
    return out;
  }

 private:
  double mixed(int64_t t, int64_t column) const {
    double sum = 0;
    for (int64_t j = 0; j < kernels::kDeltaTaps; ++j) {
      const int64_t from = t - (kernels::kDeltaTaps - 1) + j;
      if (from < 0) continue;
      sum += static_cast<double>(at(scene_.taps, j * scene_.columns() + column)) *
             at(scene_.inputs, from * scene_.columns() + column);
    }
    return sum / (1 + std::exp(-sum));
  }

  std::vector<double> unit(int64_t t, int64_t first_column, double scale) const {
    std::vector<double> x;
    double squares = 1e-6;
    for (int64_t d = 0; d < scene_.shape.key_dim; ++d) {
      x.push_back(mixed(t, first_column + d));
      squares += x.back() * x.back();
    }
    for (double& value : x) value *= scale / std::sqrt(squares);
    return x;
  }

  std::vector<double> step(int64_t t, int64_t head, double* state) const {
    const DeltaShape& shape = scene_.shape;
    const int64_t key_head = head / shape.group, keys = scene_.num_heads * shape.key_dim;
    const std::vector<double> q = unit(t, key_head * shape.key_dim,
                                       1 / std::sqrt(static_cast<double>(shape.key_dim))),
                              k = unit(t, keys + key_head * shape.key_dim, 1);
    const double decay = std::exp(
                     static_cast<double>(at(scene_.decay, t * scene_.num_values() + head))),
                 beta = at(scene_.beta, t * scene_.num_values() + head);
    std::vector<double> out;
    for (int64_t v = 0; v < shape.value_dim; ++v) {
      double known = 0, sum = 0;
      for (int64_t d = 0; d < shape.key_dim; ++d) {
        double& cell = state[d * shape.value_dim + v];
        cell *= decay;
        known += k[static_cast<size_t>(d)] * cell;
      }
      const double value = mixed(t, 2 * keys + head * shape.value_dim + v);
      for (int64_t d = 0; d < shape.key_dim; ++d) {
        double& cell = state[d * shape.value_dim + v];
        cell += k[static_cast<size_t>(d)] * beta * (value - known);
        sum += q[static_cast<size_t>(d)] * cell;
      }
      out.push_back(sum);
    }
    return out;
  }

  static float at(const std::vector<float>& values, int64_t i) {
    return values[static_cast<size_t>(i)];
  }
  const DeltaScene& scene_;
};

// A sequence's state, and the kernel that moves it on.
class Player {
 public:
  explicit Player(const DeltaScene& scene)
      : scene_(scene),
        // what a reused state may hold
        state_(static_cast<size_t>(scene.num_heads * scene.shape.state_floats()), 7e8f),
        scratch_(static_cast<size_t>(scene.shape.scratch_floats()), std::nanf("")) {}

  // Rows [begin, end); those from `known` on are drafts.
  std::vector<float> run(int64_t begin, int64_t end, int64_t known) {
    const DeltaShape& shape = scene_.shape;
    std::vector<float> out(static_cast<size_t>((end - begin) * scene_.out_columns()));
    for (int64_t head = 0; head < scene_.num_heads; ++head) {
      const int64_t keys = scene_.num_heads * shape.key_dim;
      kernels::delta(
          shape,
          {.state = state_.data() + head * shape.state_floats(),
           .num_folded = num_folded_,
           .first_position = begin,
           .num_rows = end - begin,
           .num_known = known - begin,
           .inputs = {scene_.inputs.data() + begin * scene_.columns(), scene_.columns()},
           .query_column = head * shape.key_dim,
           .key_column = keys + head * shape.key_dim,
           .value_column = 2 * keys + head * shape.group * shape.value_dim,
           .taps = {scene_.taps.data(), scene_.columns()},
           .decay = {scene_.decay.data() + begin * scene_.num_values() + head * shape.group,
                     scene_.num_values()},
           .beta = {scene_.beta.data() + begin * scene_.num_values() + head * shape.group,
                    scene_.num_values()},
           .out = {out.data() + head * shape.group * shape.value_dim, scene_.out_columns()}},
          scratch_.data());
    }
    num_folded_ = kernels::delta_folded(begin, known - begin);
    return out;
  }
  std::vector<float> run(int64_t begin, int64_t end) { return run(begin, end, end); }

 private:
  const DeltaScene& scene_;
  std::vector<float> state_, scratch_;
  int64_t num_folded_ = 0;
};

std::vector<float> in_cuts_of(const DeltaScene& scene, int64_t cut) {
  Player player(scene);
  std::vector<float> out;
  for (int64_t begin = 0; begin < scene.length; begin += cut) {
    const std::vector<float> rows = player.run(begin, std::min(begin + cut, scene.length));
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

const std::vector<DeltaShape>& shapes() {
  static const std::vector<DeltaShape> all{{.key_dim = 128, .value_dim = 128, .group = 1},
                                           {.key_dim = 128, .value_dim = 128, .group = 3},
                                           {.key_dim = 16, .value_dim = 32, .group = 2},
                                           {.key_dim = 13, .value_dim = 37, .group = 1}};
  return all;
}

TEST(Delta, IsTheRuleTokenByTokenAndAllTokensTogether) {
  for (const DeltaShape& shape : shapes()) {
    for (const int64_t length : kLengths) {
      const DeltaScene scene(shape, 2, length, 1);
      const std::vector<double> wanted = Reference(scene).outputs();
      double largest = 0;
      for (const double value : wanted) largest = std::max(largest, std::abs(value));
      test::for_each_isa([&](Isa isa) {
        for (const int64_t cut : {int64_t{1}, length}) {
          const std::vector<float> found = in_cuts_of(scene, cut);
          ASSERT_EQ(found.size(), wanted.size());
          double worst = 0;
          for (size_t i = 0; i < found.size(); ++i)
            worst = std::max(worst, std::abs(found[i] - wanted[i]));
          EXPECT_LE(worst, 3e-6 * largest)
              << kernels::isa_name(isa) << ", " << shape.key_dim << " × " << shape.value_dim << ", "
              << length << " tokens in cuts of " << cut;
        }
      });
    }
  }
}

TEST(Delta, GivesTheSameBitsForAnyCut) {
  for (const DeltaShape& shape : shapes()) {
    const DeltaScene scene(shape, 2, 200, 2);
    test::for_each_isa([&](Isa isa) {
      const std::vector<float> wanted = in_cuts_of(scene, 1);
      for (const int64_t cut : {2, 3, 15, 16, 17, 64, 199, 200})
        EXPECT_EQ(in_cuts_of(scene, cut), wanted) << kernels::isa_name(isa) << ", " << cut;
    });
  }
}

TEST(Delta, ForgetsWrongDrafts) {
  for (const DeltaShape& shape : shapes()) {
    const DeltaScene scene(shape, 1, 150, 3);
    DeltaScene wrong = scene;  // its drafts are wrong from some token on
    wrong.inputs = test::noise(scene.length * scene.columns(), 99);
    wrong.decay = test::noise(scene.length * scene.num_values(), 98);
    for (float& g : wrong.decay) g = -std::abs(g);
    test::for_each_isa([&](Isa isa) {
      const std::vector<float> wanted = in_cuts_of(scene, 1);
      const auto width = static_cast<size_t>(scene.out_columns()),
                 columns = static_cast<size_t>(scene.columns()),
                 values = static_cast<size_t>(scene.num_values());
      DeltaScene shown = scene;
      Player player(shown);
      int64_t begin = 0;
      for (uint64_t round = 0; begin < scene.length; ++round) {
        const auto draw = [&](uint64_t what, int64_t most) {
          return static_cast<int64_t>(
              random_below(random_key({round}), what, static_cast<uint64_t>(most + 1)));
        };
        const int64_t known =
                          std::min(begin + 1 + (round % 9 == 0 ? draw(0, 40) : 0), scene.length),
                      end = std::min(known + draw(1, kernels::kMaxDeltaDrafts), scene.length),
                      right = known + draw(2, end - known);
        shown = scene;
        std::copy(wrong.inputs.begin() + right * static_cast<int64_t>(columns), wrong.inputs.end(),
                  shown.inputs.begin() + right * static_cast<int64_t>(columns));
        std::copy(wrong.decay.begin() + right * static_cast<int64_t>(values), wrong.decay.end(),
                  shown.decay.begin() + right * static_cast<int64_t>(values));
        const std::vector<float> found = player.run(begin, end, known);
        for (size_t i = 0; i < static_cast<size_t>(right - begin) * width; ++i)
          ASSERT_EQ(found[i], wanted[static_cast<size_t>(begin) * width + i])
              << kernels::isa_name(isa) << ", rows " << begin << " to " << right;
        begin = right;
      }
    });
  }
}

TEST(Delta, AStateCanBeCopied) {
  const DeltaScene scene({.key_dim = 16, .value_dim = 16, .group = 2}, 1, 60, 4);
  for (const int64_t fork : {1, 15, 16, 17, 32, 41}) {
    const std::vector<float> wanted = in_cuts_of(scene, 60);
    Player first(scene);
    first.run(0, fork);
    Player second = first;
    first.run(fork, 50);
    const std::vector<float> rest = second.run(fork, 60);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), wanted.begin() + fork * scene.out_columns()))
        << fork;
  }
}

TEST(Delta, RefusesMoreDraftsThanTheWindowCanTakeBack) {
  const DeltaScene scene({.key_dim = 4, .value_dim = 4, .group = 1}, 1, 40, 5);
  Player player(scene);
  EXPECT_THROW(player.run(0, 20, 20 - kernels::kMaxDeltaDrafts - 1), InternalError);
  EXPECT_THROW(player.run(0, 20, 0), InternalError);
}

TEST(Delta, AStateHasOneSizeForAnyLength) {
  // A value head of 128 × 128 takes 64 KiB, and what is kept next to it under half of that.
  const DeltaShape shape{.key_dim = 128, .value_dim = 128, .group = 1};
  EXPECT_EQ(shape.matrix_floats() * 4, 64 << 10);
  EXPECT_LE(shape.state_floats() * 4, 121 << 10);
}

}  // namespace
}  // namespace rematch
