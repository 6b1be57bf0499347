#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "learn/estep/answer/coord_token_text.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/target_policy.h"
#include "learn/estep/teach/truth_segment.h"
#include "teach/scene.h"

namespace rematch {
namespace {

using test::answer_format;
using test::box_object;
using test::labelled_text;
using test::vocab;

Prompt prompt_without_images() {
  Prompt prompt;
  prompt.sample_id = 3;
  prompt.token_ids = vocab().encode("<|im_start|>user\nfind <|coord_7|>\n<|im_start|>assistant\n");
  return prompt;
}

TargetSettings rewrite() { return {.policy = "rewrite"}; }

SegmentResult build_rewrite(const ParsedRollout& parsed, const std::vector<SceneObject>& truth,
                            const TargetSettings& options) {
  const Matching matching = match_objects(to_scene(parsed.objects), truth, {});
  return build_segment({prompt_without_images(), parsed, matching, truth}, answer_format(),
                       options);
}

/// The text of a rollout that says `objects`.
std::string said(const std::vector<SceneObject>& objects) { return answer_text(objects).text; }

std::string answer_without_end(const Segment& segment) {
  return vocab().tokenizer->decode_bytes(std::vector<int>(
      segment.token_ids.begin() + segment.prompt_len, segment.token_ids.end() - 1));
}

std::vector<std::pair<int, SlotSource>> taught_bins(const Segment& segment) {
  std::vector<std::pair<int, SlotSource>> bins;
  for (const Slot& slot : segment.slots_of(kCoordSlots))
    bins.emplace_back(slot.target, slot.source);
  return bins;
}

// A rollout that finds some of the truth imprecisely, invents and repeats objects, and may break
// off.
struct Scene {
  std::vector<SceneObject> truth;
  ParsedRollout parsed;
};

Scene random_scene() {
  const auto pick = [](int low, int high) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
  };
  const auto geometry = [&] {
    const int x = pick(10, 800), y = pick(10, 800), w = pick(40, 150), h = pick(40, 150);
    if (pick(0, 3) > 0) return Geometry{GeometryKind::kBbox2d, {x, y, x + w, y + h}};
    return Geometry{GeometryKind::kPoly, {x, y, x + w, y, x + w, y + h, x, y + h}};
  };
  const auto name = [&] {
    return *rc::gen::element<std::string>("cat", "飞机", "\"q\" \\", "e\xCC\x81", "red dog");
  };
  Scene scene;
  std::vector<SceneObject> rollout;
  for (int i = pick(0, 6); i > 0; --i) {
    scene.truth.push_back({name(), geometry()});
    if (pick(0, 3) == 0) continue;
    SceneObject seen = scene.truth.back();
    if (pick(0, 2) == 0) seen.desc = name();
    for (int& bin : seen.geometry.bins) bin += pick(-8, 9);
    rollout.insert(rollout.begin() + pick(0, static_cast<int>(rollout.size()) + 1), seen);
    if (pick(0, 4) == 0) rollout.push_back(seen);
    if (pick(0, 4) == 0) rollout.push_back({"ghost", geometry()});
  }
  std::vector<int> ids = vocab().encode(said(rollout));
  if (pick(0, 3) == 0) ids.resize(static_cast<size_t>(pick(0, static_cast<int>(ids.size()) + 1)));
  scene.parsed = vocab().parse(ids);
  return scene;
}

TargetSettings random_options() {
  const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
  TargetSettings options = rewrite();
  options.rewrite_order =
      *rc::gen::element(RewriteOrder::kTruth, RewriteOrder::kRollout, RewriteOrder::kOwn);
  if (flip()) options.incomplete_rollouts = IncompleteRollouts::kEmpty;
  return options;
}

/// Moves the last entry to the place where the fewest pairs of it are in the wrong order.
std::vector<int> best_placed_last(std::vector<int> order) {
  const int moved = order.back();
  order.pop_back();
  std::vector<int> best;
  std::ptrdiff_t fewest = std::ssize(order) + 1;
  for (std::ptrdiff_t place = 0; place <= std::ssize(order); ++place) {
    const auto at = order.begin() + place;
    const auto wrong = std::count_if(order.begin(), at, [&](int other) { return other > moved; }) +
                       std::count_if(at, order.end(), [&](int other) { return other < moved; });
    if (wrong > fewest) continue;
    fewest = wrong;
    best = order;
    best.insert(best.begin() + place, moved);
  }
  return best;
}

}  // namespace

TEST(RewriteTarget, IsTheTruthWithTheCoordinatesOfMatchedPredictionsShown) {
  const std::vector<SceneObject> truth = {box_object("cat", {10, 10, 110, 110}),
                                          box_object("dog", {500, 500, 600, 600})};
  const ParsedRollout parsed = vocab().parse(
      said({box_object("cow", {300, 700, 400, 800}), box_object("hat", {12, 9, 108, 111})}));
  const SegmentResult result = build_rewrite(parsed, truth, rewrite());
  EXPECT_EQ(answer_without_end(result.segment),
            said({box_object("cat", {12, 9, 108, 111}), box_object("dog", {500, 500, 600, 600})}));
  EXPECT_EQ(result.append_text, answer_without_end(result.segment));
  const auto prefix = SlotSource::kPrefix, append = SlotSource::kAppend;
  EXPECT_EQ(taught_bins(result.segment), (std::vector<std::pair<int, SlotSource>>{{10, prefix},
                                                                                  {10, prefix},
                                                                                  {110, prefix},
                                                                                  {110, prefix},
                                                                                  {500, append},
                                                                                  {500, append},
                                                                                  {600, append},
                                                                                  {600, append}}));
  EXPECT_EQ(labelled_text(result.segment),
            R"({"object_1": {"desc": "cat", "bbox_2d": ["", "", "", ""]}, )"
            R"("object_2": {"desc": "dog", "bbox_2d": ["", "", "", ""]}}<|im_end|>)");
  EXPECT_EQ(result.segment.prefix_len, 0);
  EXPECT_EQ(result.pairs, (std::vector<std::pair<int, int>>{{1, 0}}));
  EXPECT_EQ(result.false_negatives, (std::vector<int>{1}));
  EXPECT_EQ(result.num_supervised_pairs, 1);
}

TEST(RewriteTarget, TakesTheOrderOfTheRolloutOnRequest) {
  const std::vector<SceneObject> truth = {box_object("a", {0, 0, 100, 100}),
                                          box_object("b", {200, 200, 300, 300}),
                                          box_object("c", {400, 400, 500, 500})};
  const ParsedRollout parsed = vocab().parse(
      said({box_object("c", {400, 400, 500, 500}), box_object("a", {0, 0, 100, 100})}));
  TargetSettings options = rewrite();
  options.rewrite_order = RewriteOrder::kRollout;
  EXPECT_EQ(answer_without_end(build_rewrite(parsed, truth, options).segment),
            said({truth[2], truth[0], truth[1]}));
  EXPECT_EQ(answer_without_end(build_rewrite(parsed, truth, rewrite()).segment), said(truth));
}

/// Names of a target with `rewrite_order: own`; a letter is an object, the further right the later.
std::string names_by_own_order(const std::string& truth, const std::string& answer) {
  const auto objects = [](const std::string& names) {
    std::vector<SceneObject> made;
    for (const char name : names) {
      const int left = 100 * (name - 'a');
      made.push_back(box_object(std::string(1, name), {left, 500, left + 90, 600}));
    }
    return made;
  };
  TargetSettings options = rewrite();
  options.rewrite_order = RewriteOrder::kOwn;
  const SegmentResult result =
      build_rewrite(vocab().parse(said(objects(answer))), objects(truth), options);
  std::string names;
  for (const ParsedObject& object : vocab().parse(answer_without_end(result.segment)).objects)
    names += object.desc;
  return names;
}

TEST(RewriteTarget, InsertsMissingObjectsByTheOrderOfTheTruthOnRequest) {
  EXPECT_EQ(names_by_own_order("abcd", "abcd"), "abcd");
  EXPECT_EQ(names_by_own_order("abcdef", "bde"), "abcdef");
  EXPECT_EQ(names_by_own_order("abc", ""), "abc");
  EXPECT_EQ(names_by_own_order("dcba", "ca"), "dcba") << "the truth is in another order";
  EXPECT_EQ(names_by_own_order("abcd", "dcba"), "dcba") << "what the answer has stays";
  EXPECT_EQ(names_by_own_order("abcde", "eabd"), "eabcd") << "one entry out of place";
  EXPECT_EQ(names_by_own_order("abcde", "bdea"), "bcdea") << "one entry out of place";
  EXPECT_EQ(names_by_own_order("abc", "ca"), "cab") << "of equal places the last";
  EXPECT_EQ(names_by_own_order("abcd", "da"), "dabc") << "missing ones keep their order";
}

TEST(RewriteTarget, UsesNoCoordinatesOfAnotherForm) {
  const std::vector<SceneObject> truth = {
      {"a", {GeometryKind::kPoly, {0, 0, 100, 0, 100, 100, 0, 100}}}};
  const SegmentResult result =
      build_rewrite(vocab().parse(said({box_object("a", {0, 0, 100, 100})})), truth, rewrite());
  EXPECT_EQ(answer_without_end(result.segment), said(truth));
  EXPECT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.num_supervised_pairs, 0);
}

TEST(RewriteTarget, TakesIncompleteRolloutsAsEmptyOnRequest) {
  const std::vector<SceneObject> truth = {box_object("cat", {10, 10, 110, 110})};
  const std::string whole = said({box_object("cat", {12, 10, 110, 110})});
  const ParsedRollout parsed = vocab().parse(whole.substr(0, whole.size() - 1));
  TargetSettings options = rewrite();
  EXPECT_EQ(build_rewrite(parsed, truth, options).pairs.size(), 1u);
  options.incomplete_rollouts = IncompleteRollouts::kEmpty;
  EXPECT_TRUE(build_rewrite(parsed, truth, options).pairs.empty());
  EXPECT_EQ(build_rewrite(vocab().parse(whole), truth, options).pairs.size(), 1u);
  options.policy = "append";
  EXPECT_EQ(build_rewrite(parsed, truth, options).pairs.size(), 1u) << "a key of `rewrite` alone";
}

RC_GTEST_PROP(RewriteTarget, WithTheTruthsCoordinatesIsStageOneTokenByTokenAndLabelByLabel, ()) {
  const Scene scene = random_scene();
  TargetSettings options = random_options();
  SegmentResult result = build_rewrite(scene.parsed, scene.truth, options);
  // The truth in the order of the target's entries.
  std::vector<SceneObject> ordered = scene.truth;
  if (options.rewrite_order != RewriteOrder::kTruth) {
    std::vector<int> order;
    for (const auto& pair : result.pairs) order.push_back(pair.second);
    for (const int g : result.false_negatives) {
      order.push_back(g);
      if (options.rewrite_order == RewriteOrder::kOwn) order = best_placed_last(order);
    }
    ordered.clear();
    for (const int g : order) ordered.push_back(scene.truth[static_cast<size_t>(g)]);
  }
  const Segment stage_1 =
      build_ground_truth_segment(prompt_without_images(), ordered, answer_format());
  Segment& segment = result.segment;
  for (Slot& slot : segment.slots[kCoordSlots]) {
    segment.token_ids[static_cast<size_t>(slot.position)] =
        vocab().coord.ids()[static_cast<size_t>(slot.target)];
    slot.source = SlotSource::kAppend;
  }
  RC_ASSERT(segment.token_ids == stage_1.token_ids);
  RC_ASSERT(segment.labels == stage_1.labels);
  RC_ASSERT(segment.slots_of(kCoordSlots) == stage_1.slots_of(kCoordSlots));
}

RC_GTEST_PROP(RewriteTarget, ShowsNothingOfFalsePositivesAndNumbersFromOne, ()) {
  const Scene scene = random_scene();
  const TargetSettings options = random_options();
  const SegmentResult result = build_rewrite(scene.parsed, scene.truth, options);
  const Json answer = parse_json(answer_without_end(result.segment), "target");
  RC_ASSERT(answer.size() == scene.truth.size());
  std::multiset<std::string> lent, shown;
  for (const auto& [p, g] : result.pairs)
    lent.insert(said({{"", scene.parsed.objects[static_cast<size_t>(p)].geometry}}));
  for (const SceneObject& object : scene.truth) lent.insert(said({{"", object.geometry}}));
  const ParsedRollout read = vocab().parse(answer_without_end(result.segment));
  RC_ASSERT(read.status == ParseStatus::kComplete);
  for (size_t i = 0; i < read.objects.size(); ++i) {
    RC_ASSERT(read.objects[i].index == static_cast<int64_t>(i) + 1);
    RC_ASSERT(read.objects[i].desc != "ghost");
    RC_ASSERT(lent.count(said({{"", read.objects[i].geometry}})) > 0);
  }
  RC_ASSERT(read.objects.size() == scene.truth.size());
}

TEST(InputNoise, MovesWhatIsShownAndNothingThatIsTaught) {
  std::vector<SceneObject> truth;
  for (int i = 0; i < 200; ++i) truth.push_back(box_object("cat", {300, 400, 500, 600}));
  truth.push_back(box_object("edge", {0, 0, 999, 999}));
  const Segment plain = build_ground_truth_segment(prompt_without_images(), truth, answer_format());
  const Segment noisy = build_ground_truth_segment(prompt_without_images(), truth, answer_format(),
                                                   {.sigma_bins = 12, .seed = 7});
  EXPECT_EQ(noisy.labels, plain.labels);
  EXPECT_EQ(noisy.slots, plain.slots);
  EXPECT_EQ(noisy.encoded_len(), plain.encoded_len());
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 800; ++i) {
    const auto at = static_cast<size_t>(plain.slots_of(kCoordSlots)[i].position);
    const double moved =
        vocab().coord.bin_of(noisy.token_ids[at]) - plain.slots_of(kCoordSlots)[i].target;
    sum += moved;
    squares += moved * moved;
  }
  EXPECT_NEAR(sum / 800, 0, 1.5);
  EXPECT_NEAR(std::sqrt(squares / 800), 12, 1);
  Prompt later = prompt_without_images();
  later.epoch = 1;
  const InputNoise same{.sigma_bins = 12, .seed = 7}, other{.sigma_bins = 12, .seed = 8};
  EXPECT_EQ(
      build_ground_truth_segment(prompt_without_images(), truth, answer_format(), same).token_ids,
      noisy.token_ids);
  EXPECT_NE(
      build_ground_truth_segment(prompt_without_images(), truth, answer_format(), other).token_ids,
      noisy.token_ids);
  EXPECT_NE(build_ground_truth_segment(later, truth, answer_format(), same).token_ids,
            noisy.token_ids);
}

}  // namespace rematch
