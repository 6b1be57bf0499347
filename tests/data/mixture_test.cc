#include "learn/data/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "learn/data/dataset.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

class MixtureTest : public testing::Test {
 protected:
  Dataset load(const std::string& name, int count) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += R"({"images": ["x.png"], "width": 10, "height": 10, "objects": []})"
               "\n\n";
    return Dataset::load(directory_.write(name, lines), {.check_image_files = false});
  }
  test::TempDir directory_;
};

}  // namespace

RC_GTEST_PROP(Mixture, TakesEveryRecordAsOftenAsItsWeightSays, ()) {
  std::vector<MixturePart> parts;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    const int64_t begin = parts.empty() ? 0 : parts.back().end;
    parts.push_back({.begin = begin,
                     .end = begin + *rc::gen::inRange(1, 40),
                     .weight = *rc::gen::inRange(1, 40) / 10.0});
  }
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const std::vector<int64_t> drawn = draw_mixture(parts, seed, 3);
  RC_ASSERT(drawn == draw_mixture(parts, seed, 3));
  RC_ASSERT(static_cast<int64_t>(drawn.size()) == mixture_size(parts));
  for (const MixturePart& part : parts) {
    std::map<int64_t, int64_t> uses;
    int64_t total = 0;
    for (const int64_t sample : drawn) {
      if (sample < part.begin || sample >= part.end) continue;
      ++uses[sample];
      ++total;
    }
    RC_ASSERT(total == part.num_drawn());
    for (int64_t sample = part.begin; sample < part.end; ++sample) {
      RC_ASSERT(uses[sample] >= total / part.num_records());
      RC_ASSERT(uses[sample] <= total / part.num_records() + 1);
    }
  }
}

TEST(Mixture, RoundsToTheNearestRecordAndHalvesUp) {
  const auto drawn = [](double weight, int64_t count) {
    return MixturePart{.end = count, .weight = weight}.num_drawn();
  };
  EXPECT_EQ(drawn(2.5, 3), 8);
  EXPECT_EQ(drawn(0.1, 14), 1);
  EXPECT_EQ(drawn(0.1, 16), 2);
  EXPECT_EQ(drawn(1, 16000), 16000);
  EXPECT_EQ(drawn(0.01, 10), 0);
}

TEST(Mixture, DrawsAnotherPartInEachEpoch) {
  const std::vector<MixturePart> half{{.end = 100, .weight = 0.5}};
  EXPECT_NE(draw_mixture(half, 1, 0), draw_mixture(half, 1, 1));
  EXPECT_NE(draw_mixture(half, 1, 0), draw_mixture(half, 2, 0));
}

TEST_F(MixtureTest, OneFileOfWeightOneIsThatFile) {
  const Dataset file = load("a.jsonl", 3);
  const Dataset same = Dataset::mix({file}, {1});
  EXPECT_EQ(same.content_hash(), file.content_hash());
  EXPECT_EQ(same.path(), file.path());
  EXPECT_EQ(same.epoch_size(), 3);
}

TEST_F(MixtureTest, JoinsFilesAndKeepsPlaces) {
  const Dataset a = load("a.jsonl", 3), b = load("b.jsonl", 4);
  const Dataset mixed = Dataset::mix({a, b}, {1, 2.5});
  EXPECT_EQ(mixed.size(), 7);
  EXPECT_EQ(mixed.epoch_size(), 13);
  EXPECT_EQ(mixed.samples()[3].where, b.path() + ":1");
  for (int64_t i = 1; i < mixed.size(); ++i)
    EXPECT_GT(mixed.samples()[size_t(i)].sample_id, mixed.samples()[size_t(i - 1)].sample_id);
  EXPECT_NE(mixed.content_hash(), Dataset::mix({a, b}, {1, 2}).content_hash());
  EXPECT_NE(mixed.content_hash(), Dataset::mix({b, a}, {2.5, 1}).content_hash());
  const Dataset less = mixed.copy_without({0, 3, 4});
  EXPECT_EQ(less.parts()[0].num_records(), 2);
  EXPECT_EQ(less.parts()[1].begin, 2);
  EXPECT_EQ(less.epoch_size(), 2 + 5);
}

TEST_F(MixtureTest, RefusesAWeightThatTakesNothing) {
  const UserError error =
      test::catch_user_error([&] { Dataset::mix({load("a.jsonl", 3)}, {0.1}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_THAT(error.problems().front().where, testing::HasSubstr("a.jsonl"));
}

TEST_F(MixtureTest, RefusesAFileThatIsListedTwice) {
  const std::string path = directory_.write("a.jsonl", "x"),
                    other = directory_.write("b.jsonl", "x");
  std::filesystem::create_symlink("a.jsonl", directory_.file("link.jsonl"));
  check_train_files(
      {{path}, {other}, {directory_.file("none.jsonl")}, {directory_.file("none.jsonl")}});
  for (const std::string& again :
       {path, directory_.path() + "/./a.jsonl", directory_.file("link.jsonl")}) {
    const UserError error =
        test::catch_user_error([&] { check_train_files({{path}, {other}, {again, 2}}); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(error.problems().front().where, "custom.train_jsonl");
    EXPECT_THAT(error.problems().front().what, testing::HasSubstr(again));
  }
}

}  // namespace rematch
