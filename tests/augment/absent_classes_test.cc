#include "learn/augment/absent_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "learn/augment/augmentation.h"
#include "learn/data/class_list.h"
#include "learn/data/dataset.h"
#include "support/paths.h"

namespace rematch {
namespace {

using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::UnorderedElementsAre;

constexpr AugmentSettings kAlways{.absent_share = 1, .absent_most = 2};

std::string record(const std::string& image, const std::string& prompt,
                   const std::vector<std::string>& names) {
  std::string objects;
  for (const std::string& name : names)
    objects += (objects.empty() ? "" : ", ") + ("{\"desc\": \"" + name) +
               "\", \"bbox_2d\": [100, 100, 300, 300]}";
  return "{\"images\": [\"" + image + "\"], \"width\": 100, \"height\": 100, \"prompt\": \"" +
         prompt + "\", \"objects\": [" + objects + "]}\n";
}

/// Samples with the classes a, b, c, d, e.
std::vector<Sample> samples() {
  test::TempDir dir;
  dir.write("2.png", "");
  std::filesystem::create_symlink("2.png", dir.file("link.png"));
  const std::string path = dir.write(
      "all.jsonl", record("1.png", "Find: a, b.", {"a", "b"}) + record("2.png", "Find: c.", {"c"}) +
                       record("link.png", "Find: D.", {"D"}) + record("3.png", "Find: a.", {}) +
                       record("4.png", "Find every e.", {"e"}));
  Dataset data = Dataset::load(path, {.check_image_files = false});
  data.offer_classes();
  return data.samples();
}

std::vector<std::string> listed(const Sample& sample) {
  return find_class_list(sample.prompt, *sample.classes).value().names;
}

}  // namespace

TEST(AbsentClasses, AreDrawnAnewInEachEpochAndAlikeEachTime) {
  const Sample sample = samples()[0];
  std::set<std::string> prompts, drawn;
  std::set<size_t> counts;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const Sample shown = augment_sample(sample, kAlways, 7, epoch);
    EXPECT_EQ(shown.prompt, augment_sample(sample, kAlways, 7, epoch).prompt);
    EXPECT_EQ(shown.objects, sample.objects);
    prompts.insert(shown.prompt);
    counts.insert(shown.drawn_names.size());
    drawn.insert(shown.drawn_names.begin(), shown.drawn_names.end());
    std::vector<std::string> expected{"a", "b"};
    expected.insert(expected.end(), shown.drawn_names.begin(), shown.drawn_names.end());
    EXPECT_THAT(listed(shown), testing::UnorderedElementsAreArray(expected));
  }
  EXPECT_THAT(counts, UnorderedElementsAre(1u, 2u));
  EXPECT_THAT(drawn, UnorderedElementsAre("D", "c", "e"));
  EXPECT_GT(prompts.size(), 10u);
  EXPECT_NE(augment_sample(sample, kAlways, 7, 0).prompt,
            augment_sample(sample, kAlways, 8, 0).prompt);
}

TEST(AbsentClasses, NeverAreClassesOfAnotherRecordOfThePicture) {
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    EXPECT_THAT(augment_sample(samples()[1], kAlways, 1, epoch).drawn_names,
                IsSubsetOf({"a", "b", "e"}));
  }
}

TEST(AbsentClasses, NeverAreClassesOfACopyOfThePictureOrAnotherNameOfIts) {
  test::TempDir dir;
  for (const char* name : {"a.png", "b.png"}) dir.write(name, "the same picture");
  dir.write("c.png", "another picture!");
  Dataset data = Dataset::load(
      dir.write("all.jsonl", record("a.png", "Find: crimson.", {"crimson"}) +
                                 record("b.png", "Find: green.", {"green"}) +
                                 record("c.png", "Find: red, blue.", {"red", "blue"})),
      {.check_image_files = false});
  data.offer_classes(
      [](const std::string& name) { return name == "crimson" ? std::string("red") : name; });
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    EXPECT_THAT(augment_sample(data.samples()[0], kAlways, 1, epoch).drawn_names,
                IsSubsetOf({"blue"}));
    EXPECT_THAT(augment_sample(data.samples()[2], kAlways, 1, epoch).drawn_names,
                IsSubsetOf({"green"}));
  }
}

TEST(AbsentClasses, NeverAreClassesThatACropCutOff) {
  AugmentSettings settings = kAlways;
  settings.crop = 0.1;
  settings.absent_most = 5;
  Sample sample = samples()[0];
  sample.objects[0].geometry.bins = {0, 0, 60, 60};
  for (int64_t epoch = 0; epoch < 60; ++epoch) {
    EXPECT_THAT(augment_sample(sample, settings, 1, epoch).drawn_names,
                IsSubsetOf({"D", "c", "e"}));
  }
}

TEST(AbsentClasses, HaveNoPlaceOfTheirOwnInTheList) {
  const Sample sample = samples()[0];
  std::set<std::string> first;
  for (int64_t epoch = 0; epoch < 60; ++epoch)
    first.insert(listed(augment_sample(sample, kAlways, 1, epoch)).front());
  EXPECT_THAT(first, UnorderedElementsAre("a", "b", "c", "D", "e"));
  // A list without a drawn name is shuffled too, or its order would tell that nothing is absent.
  AugmentSettings seldom = kAlways;
  seldom.absent_share = 1e-9;
  std::set<std::string> prompts;
  for (int64_t epoch = 0; epoch < 20; ++epoch)
    prompts.insert(augment_sample(sample, seldom, 1, epoch).prompt);
  EXPECT_THAT(prompts, UnorderedElementsAre("Find: a, b.", "Find: b, a."));
}

TEST(AbsentClasses, AreDrawnForTheShareOfPrompts) {
  AugmentSettings half = kAlways;
  half.absent_share = 0.5;
  int num_drawn = 0;
  for (int64_t epoch = 0; epoch < 400; ++epoch)
    num_drawn += !augment_sample(samples()[0], half, 1, epoch).drawn_names.empty();
  EXPECT_NEAR(num_drawn, 200, 40);
}

TEST(AbsentClasses, LeavePromptsWithoutAListAndTheWholeWithoutTheKey) {
  const Sample sentence = samples()[4];
  EXPECT_EQ(augment_sample(sentence, kAlways, 1, 0).prompt, "Find every e.");
  EXPECT_EQ(augment_sample(samples()[0], {}, 1, 0).prompt, "Find: a, b.");
  EXPECT_THAT(augment_sample(samples()[0], {.hflip = 1}, 1, 0).drawn_names, IsEmpty());
}

TEST(AbsentClasses, AreCountedAndTheLongestPromptIsKnown) {
  EXPECT_EQ(count_listing(samples()), (std::pair<int64_t, int64_t>{4, 4}));
  const size_t longest = with_longest_prompt(samples()[0], kAlways).prompt.size();
  for (int64_t epoch = 0; epoch < 20; ++epoch)
    EXPECT_LE(augment_sample(samples()[0], kAlways, 1, epoch).prompt.size(), longest);
  EXPECT_EQ(with_longest_prompt(samples()[0], {}).prompt, "Find: a, b.");
}

}  // namespace rematch
