#include "learn/data/order_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "learn/data/ordering.h"
#include "support/paths.h"

namespace rematch {
namespace {

using Objects = std::vector<SceneObject>;
using Sort = std::function<Objects(Objects)>;

/// Boxes of any size, names of three.
Objects make_scene(uint64_t number) {
  const uint64_t key = random_key({7, number});
  uint64_t draw = 0;
  const auto below = [&](uint64_t bound) {
    return static_cast<int>(random_below(key, draw++, bound));
  };
  Objects scene;
  for (int count = 2 + below(7); count > 0; --count) {
    const int width = 40 + below(300), height = 40 + below(300);
    const int left = below(static_cast<uint64_t>(999 - width)),
              top = below(static_cast<uint64_t>(999 - height));
    scene.push_back({std::string(1, static_cast<char>('a' + below(3))),
                     {GeometryKind::kBbox2d, {left, top, left + width, top + height}}});
  }
  return scene;
}

std::vector<Objects> make_scenes(uint64_t first, uint64_t count) {
  std::vector<Objects> scenes;
  for (uint64_t i = first; i < first + count; ++i) scenes.push_back(make_scene(i));
  return scenes;
}

/// Sorts by a key of the bins; keys have no ties here.
template <typename Key>
Sort sort_of(Key key) {
  return [key](Objects objects) {
    std::stable_sort(objects.begin(), objects.end(), [&](const auto& a, const auto& b) {
      return key(a.geometry.bins) < key(b.geometry.bins);
    });
    return objects;
  };
}

using Bins = std::vector<int>;
std::tuple<int, int> from_left(const Bins& bins) { return {bins[0], bins[1]}; }
std::tuple<int, int> from_top(const Bins& bins) { return {bins[1], bins[0]}; }
int by_area(const Bins& bins) { return -(bins[2] - bins[0]) * (bins[3] - bins[1]); }
int from_bottom_right(const Bins& bins) { return -2 * bins[3] - bins[2]; }

/// The leftmost object, then the others of its name, and again.
Objects by_name(Objects objects) {
  objects = sort_of(from_left)(std::move(objects));
  Objects grouped;
  while (!objects.empty()) {
    const std::string name = objects.front().desc;
    for (const SceneObject& one : objects) {
      if (one.desc == name) grouped.push_back(one);
    }
    std::erase_if(objects, [&](const SceneObject& one) { return one.desc == name; });
  }
  return grouped;
}

std::vector<Objects> answers_in(const Sort& sort, uint64_t count = 100) {
  std::vector<Objects> answers;
  for (const Objects& scene : make_scenes(0, count)) answers.push_back(sort(scene));
  return answers;
}

/// Share of new scenes that the order sorts exactly so.
double sorted_alike(const OrderScore& order, const Sort& sort) {
  double alike = 0;
  const std::vector<Objects> scenes = make_scenes(1000, 100);
  for (const Objects& scene : scenes) alike += sort_by(order, scene) == sort(scene);
  return alike / static_cast<double>(scenes.size());
}

/// Rows of a grid, each box moved a little up or down.
Objects grid(uint64_t number) {
  Objects objects;
  for (int i = 0; i < 9; ++i) {
    const int left = 300 * (i % 3),
              top = 300 * (i / 3) + static_cast<int>(random_below(random_key({9, number}),
                                                                  static_cast<uint64_t>(i), 60));
    objects.push_back({"cell", {GeometryKind::kBbox2d, {left, top, left + 200, top + 200}}});
  }
  return objects;
}

}  // namespace

TEST(FitOrder, FindsNamedOrders) {
  const std::vector<std::pair<std::string, Sort>> orders = {
      {"from the top, as `sorted`", sort_of(from_top)},
      {"from left to right", sort_of(from_left)},
      {"largest first", sort_of(by_area)},
      {"by name, then from left to right", by_name}};
  for (const auto& [name, sort] : orders) {
    const OrderScore order = fit_order(answers_in(sort));
    EXPECT_EQ(order.name, name);
    EXPECT_TRUE(order.is_found) << name;
    EXPECT_EQ(order.agreement, 1) << name;
    EXPECT_EQ(sorted_alike(order, sort), 1) << name;
  }
}

TEST(FitOrder, FindsRowsWhoseBoxesAreNotLevel) {
  std::vector<Objects> answers;
  for (uint64_t i = 0; i < 20; ++i) answers.push_back(grid(i));
  const OrderScore order = fit_order(answers);
  EXPECT_EQ(order.name, "rows from the top");
  Objects mixed = grid(99);
  std::reverse(mixed.begin(), mixed.end());
  EXPECT_EQ(sort_by(order, mixed), grid(99));
  EXPECT_LT(order.sorted_agreement, 0.95);
}

TEST(FitOrder, LearnsAnOrderWithoutAName) {
  const Sort sort = sort_of(from_bottom_right);
  const OrderScore order = fit_order(answers_in(sort));
  EXPECT_TRUE(order.name.starts_with("learned")) << order.name;
  EXPECT_GT(order.agreement, 0.95);
  EXPECT_GT(sorted_alike(order, sort), 0.7);
}

TEST(FitOrder, DoesNotDependOnTheOrderOfPictures) {
  std::vector<Objects> answers = answers_in(sort_of(from_bottom_right));
  const OrderScore order = fit_order(answers);
  std::reverse(answers.begin(), answers.end());
  EXPECT_EQ(fit_order(answers), order);
}

TEST(FitOrder, SortsWithoutEvidence) {
  const auto expect_sorted = [](const OrderScore& order) {
    EXPECT_FALSE(order.is_found) << order.name;
    EXPECT_EQ(sorted_alike(order, sort_of(from_top)), 1);
  };
  expect_sorted(fit_order({}));
  expect_sorted(fit_order({{}, make_scene(1)}));
  expect_sorted(fit_order(answers_in(sort_of(from_left), 8)));  // too few pairs
  expect_sorted(fit_order(make_scenes(0, 100)));                // in no order
  std::vector<Objects> loose = answers_in(sort_of(from_left), 70);
  for (Objects& scene : make_scenes(0, 30)) loose.push_back(std::move(scene));
  const OrderScore order = fit_order(loose);
  expect_sorted(order);
  EXPECT_GT(order.agreement, 0.75) << "an order that is followed too loosely to be taught";
}

TEST(SortBy, SortsTiesByTopThenLeft) {
  const Objects tied = {{"c", {GeometryKind::kBbox2d, {50, 20, 60, 30}}},
                        {"b", {GeometryKind::kBbox2d, {10, 20, 20, 30}}},
                        {"a", {GeometryKind::kBbox2d, {90, 10, 100, 20}}}};
  const Objects sorted = sort_by(fit_order(answers_in(sort_of(by_area))), tied);
  EXPECT_EQ(sorted, (Objects{tied[2], tied[1], tied[0]}));
}

TEST(OrderObjects, SortsByTheLearnedOrder) {
  const auto order = std::make_shared<const OrderScore>(fit_order(answers_in(by_name)));
  const Sample sample{.objects = make_scene(5)};
  EXPECT_EQ(order_objects(sample, {ObjectOrdering::kOwn, order}, 1, 0), by_name(sample.objects));
  EXPECT_EQ(order_objects(sample, ObjectOrdering::kOwn, 1, 0), sort_of(from_top)(sample.objects));
}

TEST(OrderFile, KeepsAnOrderToTheBit) {
  const test::TempDir directory;
  EXPECT_EQ(read_order(directory.path()), std::nullopt);
  const OrderScore order = fit_order(answers_in(sort_of(from_bottom_right)));
  write_order(directory.path(), order);
  EXPECT_EQ(read_order(directory.path()), order);
  write_file_atomic(join_path(directory.path(), kOrderFile), "{\"weights\": [1]}");
  EXPECT_THROW(read_order(directory.path()), UserError);
}

TEST(OrderText, NamesTheOrderAndTheSorted) {
  EXPECT_EQ(order_text(fit_order(answers_in(sort_of(from_left)))).substr(0, 34),
            "from left to right, 1.00 of 1201 p");
  EXPECT_TRUE(order_text(fit_order({})).starts_with("none found in the answers (too few: "));
  EXPECT_TRUE(fit_order({}).has_few_pairs());
}

}  // namespace rematch
