#include "learn/data/ordering.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

std::vector<std::string> descs(const std::vector<SceneObject>& objects) {
  std::vector<std::string> result;
  for (const SceneObject& object : objects) result.push_back(object.desc);
  return result;
}

Sample many_objects(int64_t sample_id) {
  Sample sample{.sample_id = sample_id};
  for (int i = 0; i < 12; ++i) {
    sample.objects.push_back(
        {std::string(1, static_cast<char>('a' + i)), {GeometryKind::kBbox2d, {i, 0, i, 0}}});
  }
  return sample;
}

}  // namespace

TEST(OrderObjects, SortsByTopThenLeftOverAllVertices) {
  const Sample sample{.objects = {{"low", {GeometryKind::kBbox2d, {0, 500, 10, 600}}},
                                  {"right", {GeometryKind::kBbox2d, {300, 100, 310, 110}}},
                                  {"inverted", {GeometryKind::kBbox2d, {200, 400, 100, 100}}},
                                  {"poly", {GeometryKind::kPoly, {50, 900, 700, 50, 60, 800}}}}};
  EXPECT_EQ(descs(order_objects(sample, ObjectOrdering::kSorted, 1, 0)),
            (std::vector<std::string>{"poly", "inverted", "right", "low"}));
}

TEST(OrderObjects, KeepsFileOrderOfTies) {
  const Sample sample{.objects = {{"first", {GeometryKind::kBbox2d, {5, 5, 9, 9}}},
                                  {"second", {GeometryKind::kBbox2d, {9, 9, 5, 5}}}}};
  EXPECT_EQ(descs(order_objects(sample, ObjectOrdering::kSorted, 1, 0)),
            (std::vector<std::string>{"first", "second"}));
}

// More ties than std::sort leaves to insertion, which is stable by accident.
TEST(OrderObjects, KeepsFileOrderOfManyTies) {
  Sample sample;
  std::vector<std::string> in_file_order;
  for (int i = 0; i < 200; ++i) {
    in_file_order.push_back(std::to_string(i));
    sample.objects.push_back({in_file_order.back(), {GeometryKind::kBbox2d, {5, 5, 9 + i, 9}}});
  }
  EXPECT_EQ(descs(order_objects(sample, ObjectOrdering::kSorted, 1, 0)), in_file_order);
}

TEST(OrderObjects, ShufflesBySeedEpochAndSample) {
  const auto order = [](uint64_t seed, int64_t epoch, int64_t sample_id) {
    return descs(order_objects(many_objects(sample_id), ObjectOrdering::kRandom, seed, epoch));
  };
  EXPECT_EQ(order(1, 2, 3), order(1, 2, 3));
  EXPECT_NE(order(1, 2, 3), order(2, 2, 3));
  EXPECT_NE(order(1, 2, 3), order(1, 3, 3));
  EXPECT_NE(order(1, 2, 3), order(1, 2, 4));
  std::vector<std::string> sorted = order(1, 2, 3);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, descs(many_objects(0).objects));
}

TEST(OrderObjects, LeavesAnEmptySceneEmpty) {
  EXPECT_TRUE(order_objects({}, ObjectOrdering::kRandom, 1, 1).empty());
  EXPECT_TRUE(order_objects({}, ObjectOrdering::kSorted, 1, 1).empty());
}

TEST(ObjectOrdering, HasThreeNames) {
  EXPECT_EQ(value_of<ObjectOrdering>("sorted"), ObjectOrdering::kSorted);
  EXPECT_EQ(value_of<ObjectOrdering>("random"), ObjectOrdering::kRandom);
  EXPECT_EQ(value_of<ObjectOrdering>("own"), ObjectOrdering::kOwn);
  EXPECT_EQ(value_of<ObjectOrdering>("shuffled"), std::nullopt);
}

}  // namespace rematch
