#include "engine/rollout/repeat_guard.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/text/tokenizer.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Every rule out of reach; a test lowers the one it is about.
RepeatGuardSettings lenient() {
  return {.enabled = true,
          .min_new_tokens = 0,
          .max_consecutive_token_repeats = 1000,
          .ngram_size = 1000};
}

std::vector<int> different_ids(int count, int first = 0) {
  std::vector<int> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<int> operator+(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Number of ids that are kept; -1 when the guard never fires.
int kept(const std::vector<int>& ids, const RepeatGuardSettings& options,
         const Tokenizer* tokenizer = nullptr) {
  const RepeatGuard::Cut cut = RepeatGuard::cut(ids, options, tokenizer);
  EXPECT_TRUE(cut.triggered || cut.num_kept == ids.size());
  return cut.triggered ? static_cast<int>(cut.num_kept) : -1;
}

int count_keys(const std::string& text) {
  ObjectKeyCounter counter;
  for (const char byte : text) counter.feed({&byte, 1});
  ObjectKeyCounter whole;
  whole.feed(text);
  EXPECT_EQ(whole.count(), counter.count()) << "the split into pieces must not matter";
  return counter.count();
}

}  // namespace

TEST(RepeatGuard, DoesNothingWhenOff) {
  EXPECT_EQ(kept(std::vector<int>(2000, 7), RepeatGuardSettings{}), -1);
}

TEST(RepeatGuard, EndsARunOfEqualIdsAtTheLimitAndKeepsTheTriggeringToken) {
  auto options = lenient();
  options.max_consecutive_token_repeats = 4;
  EXPECT_EQ(kept(std::vector<int>(3, 7), options), -1);
  EXPECT_EQ(kept(std::vector<int>(4, 7), options), 4);
  EXPECT_EQ(kept(different_ids(5) + std::vector<int>(9, 7), options), 9);
  EXPECT_EQ(kept({7, 7, 7, 1, 7, 7, 7}, options), -1);
}

TEST(RepeatGuard, CountsRunsThatReachBehindMinNewTokensButFiresOnlyFromThere) {
  auto options = lenient();
  options.max_consecutive_token_repeats = 4;
  options.min_new_tokens = 10;
  EXPECT_EQ(kept(std::vector<int>(9, 7), options), -1);
  EXPECT_EQ(kept(std::vector<int>(12, 7), options), 10);
  // A run that ended before the guard may fire is forgiven.
  EXPECT_EQ(kept(std::vector<int>(6, 7) + different_ids(20, 100), options), -1);
}

TEST(RepeatGuard, DefaultsAreThoseOfTheContract) {
  RepeatGuardSettings options;
  options.enabled = true;
  EXPECT_EQ(kept(std::vector<int>(400, 7), options), 256);
  EXPECT_EQ(kept(different_ids(250) + std::vector<int>(100, 7), options), 250 + 64);
}

TEST(RepeatGuard, EndsWhenTheLastBlockEqualsEachOfThePreviousOnes) {
  auto options = lenient();
  options.ngram_size = 3;
  options.ngram_repeats = 2;
  EXPECT_EQ(kept({1, 2, 3, 1, 2}, options), -1);
  EXPECT_EQ(kept({1, 2, 3, 1, 2, 3}, options), 6);
  EXPECT_EQ(kept({9, 8, 1, 2, 3, 1, 2, 3, 4}, options), 8);
  EXPECT_EQ(kept({1, 2, 3, 1, 2, 4, 1, 2, 4}, options), 9);
  options.ngram_repeats = 3;
  EXPECT_EQ(kept({1, 2, 3, 1, 2, 3, 1, 2}, options), -1);
  EXPECT_EQ(kept({1, 2, 3, 1, 2, 3, 1, 2, 3}, options), 9);
  EXPECT_EQ(kept({0, 2, 3, 1, 2, 3, 1, 2, 3}, options), -1)
      << "the oldest block differs in its first id";
}

TEST(RepeatGuard, SeesBlocksThatDoNotStartAtAMultipleOfTheirSize) {
  auto options = lenient();
  options.ngram_size = 4;
  options.min_new_tokens = 11;
  // Period 4 holds from the fifth id on; the window of 8 may end anywhere.
  EXPECT_EQ(kept({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, options), 11);
}

// The O(1) bookkeeping against the rule as it is written.
TEST(RepeatGuard, AgreesWithADirectReadingOfTheRules) {
  auto options = lenient();
  options.min_new_tokens = 7;
  uint64_t state = 1;
  int num_fired = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    options.max_consecutive_token_repeats = 2 + trial % 4;
    options.ngram_size = 1 + trial % 5;
    options.ngram_repeats = 2 + trial % 3;
    std::vector<int> ids;
    int expected = -1;
    RepeatGuard guard(options, nullptr);
    for (int i = 0; i < 30 && expected < 0; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      ids.push_back(static_cast<int>((state >> 33) % 2));
      const size_t n = ids.size();
      bool run = n >= static_cast<size_t>(options.max_consecutive_token_repeats);
      for (size_t k = 0; run && k < static_cast<size_t>(options.max_consecutive_token_repeats); ++k)
        run = ids[n - 1 - k] == ids[n - 1];
      const auto size = static_cast<size_t>(options.ngram_size);
      const auto repeats = static_cast<size_t>(options.ngram_repeats);
      bool blocks = n >= size * repeats;
      for (size_t block = 1; blocks && block < repeats; ++block) {
        for (size_t k = 0; blocks && k < size; ++k)
          blocks = ids[n - 1 - k] == ids[n - 1 - k - block * size];
      }
      if (static_cast<int>(n) >= options.min_new_tokens && (run || blocks))
        expected = static_cast<int>(n);
      ASSERT_EQ(guard.push(ids.back()), expected > 0) << "trial " << trial << " id " << i;
    }
    num_fired += expected > 0 ? 1 : 0;
  }
  EXPECT_GT(num_fired, 1000);
  EXPECT_LT(num_fired, 3000);
}

TEST(RepeatGuard, CapsTheNumberOfObjectKeysAtTheClosingQuote) {
  const auto tokenizer = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  auto options = lenient();
  options.max_object_keys = 2;
  const std::string first =
      R"({"object_1": {"desc": "cat", "bbox_2d": ["<|coord_1|>", "<|coord_2|>", "<|coord_3|>", )"
      R"("<|coord_4|>"]}, )";
  const std::string up_to_quote = first + R"("object_2")";
  const std::vector<int> ids = tokenizer->encode(up_to_quote + R"(: {"desc": "dog"})");
  const int num_kept = kept(ids, options, tokenizer.get());
  ASSERT_GT(num_kept, 0);
  const std::string text = tokenizer->decode_bytes({ids.begin(), ids.begin() + num_kept});
  const std::string before = tokenizer->decode_bytes({ids.begin(), ids.begin() + num_kept - 1});
  EXPECT_EQ(text.substr(0, up_to_quote.size()), up_to_quote);
  EXPECT_LT(before.size(), up_to_quote.size());
  options.max_object_keys = 3;
  EXPECT_EQ(kept(ids, options, tokenizer.get()), -1);
  options.max_object_keys = 1;
  options.min_new_tokens = static_cast<int>(ids.size()) - 1;
  EXPECT_EQ(kept(ids, options, tokenizer.get()), static_cast<int>(ids.size()) - 1)
      << "keys before min_new_tokens count too";
}

TEST(RepeatGuard, IgnoresIdsWithoutAToken) {
  const auto tokenizer = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  auto options = lenient();
  options.max_object_keys = 1;
  EXPECT_EQ(kept({-1, 1 << 30, 99999}, options, tokenizer.get()), -1);
}

TEST(ObjectKeyCounter, CountsKeysAndNothingElse) {
  EXPECT_EQ(count_keys(R"({"object_1": {"desc": "cat"}, "object_2": {)"), 2);
  EXPECT_EQ(count_keys(R"({"object_1)"), 0);
  EXPECT_EQ(count_keys(R"({"object_12")"), 1);
  EXPECT_EQ(count_keys(R"({"object_1": {"desc": "object_2")"), 1) << "a value is not a key";
  EXPECT_EQ(count_keys(R"({"object_1": {"poly": ["object_2", "object_3"]}, "object_4")"), 2)
      << "nor is a member of an array";
  EXPECT_EQ(count_keys(R"({"object": 1, "objects_1": 2, "my_object_1": 3)"), 0);
  EXPECT_EQ(count_keys(R"({"object_": 1)"), 1);
  EXPECT_EQ(count_keys(R"({"desc": "say \"object_1\" twice")"), 0) << "quotes inside a string";
  EXPECT_EQ(count_keys(R"({"object_\"1": 1, "object_2\\": 2)"), 2)
      << "an escaped quote does not close a key";
  EXPECT_EQ(count_keys(R"("object_1" "object_1" "object_1")"), 3) << "a loop need not be JSON";
  EXPECT_EQ(count_keys(R"(]]}}, "object_1")"), 1);
}

TEST(RepeatGuardSettings, RefusesLimitsThatWouldEndEveryRow) {
  for (auto change : std::vector<void (*)(RepeatGuardSettings&)>{
           [](RepeatGuardSettings& o) { o.min_new_tokens = -1; },
           [](RepeatGuardSettings& o) { o.max_consecutive_token_repeats = 0; },
           [](RepeatGuardSettings& o) { o.ngram_size = 0; },
           [](RepeatGuardSettings& o) { o.ngram_repeats = 1; },
           [](RepeatGuardSettings& o) { o.max_object_keys = -3; }}) {
    auto options = lenient();
    change(options);
    const UserError error = test::catch_user_error([&] { RepeatGuard guard(options, nullptr); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems().front().where.find("repeat_terminate."), std::string::npos);
  }
}

}  // namespace rematch
