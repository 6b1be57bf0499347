#include "engine/ranks/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::chrono::seconds kArrival{5};

/// Two watchdogs on one store that beat every 20 ms, and what rank 0's reports.
struct Pair {
  std::atomic<int64_t> num_moves = 0;  ///< of rank 1
  std::promise<std::string> warned, gave_up;
  std::future<std::string> warning = warned.get_future(), end = gave_up.get_future();
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::unique_ptr<Watchdog> first, second;

  Pair(bool first_waits, bool second_waits, Watchdog::Options options = {}) {
    options.size = 2;
    options.interval = milliseconds(20);
    options.progress = [=] { return Watchdog::Progress{"rollout", 0, first_waits}; };
    options.warn = [this](const std::string& text) { warned.set_value(text); };
    options.give_up = [this](const std::string& text) { gave_up.set_value(text); };
    first = std::make_unique<Watchdog>(store, options);
    options.rank = 1;
    options.progress = [=, this] { return Watchdog::Progress{"update", num_moves, second_waits}; };
    options.warn = options.give_up = [](const std::string&) {};
    second = std::make_unique<Watchdog>(store, options);
  }
};

bool comes(const std::future<std::string>& future, milliseconds patience = milliseconds(10000)) {
  return future.wait_for(patience) == std::future_status::ready;
}

}  // namespace

TEST(Watchdog, NamesASilentRankThenGivesUp) {
  Pair pair(false, false);
  pair.first->start(kArrival);  // rank 1 has connected, and is silent from then on
  ASSERT_TRUE(comes(pair.warning));
  EXPECT_THAT(pair.warning.get(),
              testing::ContainsRegex("rank 1 on .*in the phase update has been silent for 10 s"));
  EXPECT_THAT(pair.first->explain(), HasSubstr("rank 1 on "));
  ASSERT_TRUE(comes(pair.end));
  EXPECT_THAT(pair.end.get(), HasSubstr("silent for 30 s"));
}

TEST(Watchdog, IsQuietAboutLiveAndExitedRanks) {
  // a crowded machine delays threads
  Pair pair(false, false, {.warn_after = 50, .give_up_after = 100});
  pair.first->start(kArrival);
  pair.second->start(kArrival);
  EXPECT_FALSE(comes(pair.warning, milliseconds(1200)));
  EXPECT_EQ(pair.first->explain(), "");
  pair.second->stop(/*failed=*/true);
  EXPECT_FALSE(comes(pair.warning, milliseconds(1200)));
  EXPECT_THAT(pair.first->explain(), HasSubstr("rank 1 on "));
  EXPECT_THAT(pair.first->explain(), HasSubstr("exited with an error"));
  pair.first->stop(/*failed=*/false, std::chrono::seconds(5));
}

TEST(Watchdog, NamesAStuckRankThatOthersWaitFor) {
  Pair pair(true, false, {.give_up_after = 1000, .warn_when_stuck = 50, .give_up_when_stuck = 150});
  pair.first->start(kArrival);
  pair.second->start(kArrival);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(comes(pair.warning, milliseconds(50))) << "rank 1 makes progress";
    ++pair.num_moves;
  }
  ASSERT_TRUE(comes(pair.warning));
  EXPECT_THAT(pair.warning.get(),
              testing::ContainsRegex("rank 1 on .*in the phase update has made no progress for "
                                     "50 s while others waited for it"));
  ASSERT_TRUE(comes(pair.end));
  EXPECT_THAT(pair.end.get(), HasSubstr("rank 1 on "));
}

TEST(Watchdog, ALongPauseIsNormalAfterRanksRecoveredFromOne) {
  Pair pair(true, false, {.give_up_after = 1000, .warn_when_stuck = 20, .give_up_when_stuck = 900});
  pair.first->start(kArrival);
  pair.second->start(kArrival);
  ASSERT_TRUE(comes(pair.warning));
  std::this_thread::sleep_for(milliseconds(400));
  pair.warned = {};
  pair.warning = pair.warned.get_future();
  ++pair.num_moves;
  EXPECT_FALSE(comes(pair.warning, milliseconds(600))) << "the pause before took twenty more";
  EXPECT_TRUE(comes(pair.warning));
}

TEST(Watchdog, GivesUpWhenAllWaitAndNoneMoves) {
  Pair pair(true, true, {.give_up_after = 1000, .warn_when_stuck = 75, .give_up_when_stuck = 100});
  pair.first->start(kArrival);
  pair.second->start(kArrival);
  for (int i = 0; i < 6; ++i) {
    ++pair.num_moves;
    EXPECT_FALSE(comes(pair.end, milliseconds(400))) << "calls are long, and end";
  }
  ASSERT_TRUE(comes(pair.end));
  EXPECT_THAT(pair.end.get(),
              testing::ContainsRegex("rank 1 on .*no progress .* while all ranks waited for each"));
}

// As on a machine that swaps: every beat takes seconds, and the limit is meant in seconds.
TEST(Watchdog, AStretchedIntervalCountsForThree) {
  Pair pair(true, false, {.give_up_after = 1000, .warn_when_stuck = 100, .give_up_when_stuck = 9});
  std::atomic<int> num_beats = 0;
  Watchdog::Options options{.rank = 0,
                            .size = 2,
                            .interval = milliseconds(20),
                            .give_up_after = 1000,
                            .warn_when_stuck = 100,
                            .give_up_when_stuck = 9,
                            .warn = [](const std::string&) {}};
  options.progress = [&] {
    if (++num_beats > 1) std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    return Watchdog::Progress{"update", 0, true};
  };
  options.give_up = [&](const std::string& text) { pair.gave_up.set_value(text); };
  pair.first = std::make_unique<Watchdog>(pair.store, options);
  pair.second->start(kArrival);
  pair.first->start(kArrival);
  ASSERT_TRUE(comes(pair.end, milliseconds(20000)));
  EXPECT_LE(num_beats, 6) << "nine intervals, three at a time";
  EXPECT_THAT(pair.end.get(), HasSubstr("no progress"));
  pair.first.reset();  // it refers to what ends before the pair
}

TEST(Watchdog, GivesUpOnARankThatExited) {
  Pair pair(true, false);
  pair.first->start(kArrival);
  pair.second->start(kArrival);
  pair.second->stop(/*failed=*/true);
  ASSERT_TRUE(comes(pair.end));
  EXPECT_THAT(pair.end.get(), HasSubstr("in the phase update exited with an error"));
}

TEST(Watchdog, GivesUpOnARankThatExitedBeforeItWatched) {
  Pair pair(true, false);
  pair.second->stop(/*failed=*/true);
  pair.first->start(kArrival);
  ASSERT_TRUE(comes(pair.end));
  EXPECT_THAT(pair.end.get(), HasSubstr("rank 1 on "));
}

TEST(Watchdog, NamesTheRanksThatDidNotConnect) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Watchdog only(store, {.size = 3, .progress = [] { return Watchdog::Progress{}; }});
  const UserError error = test::catch_user_error([&] { only.start(std::chrono::seconds(0)); });
  EXPECT_THAT(error.what(), HasSubstr("missing after 0 s: rank 1, 2"));
}

/// A store whose process is stopped from some call on, which returns when `go_on` is set.
class StandingStore : public c10d::HashStore {
 public:
  std::atomic<bool> stands = false;
  std::promise<void> go_on;

  std::vector<uint8_t> get(const std::string& key) override {
    if (stands.exchange(false)) go_on.get_future().wait();
    return HashStore::get(key);
  }
  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(this);
  }
};

TEST(Watchdog, AStoreThatDoesNotAnswerEndsTheRankByTheNameOfItsHost) {
  std::promise<std::string> gave_up;
  std::future<std::string> end = gave_up.get_future();
  StoreGuard guard({.host = "rank 0, which hosts the store,",
                    .interval = milliseconds(20),
                    .give_up = [&](const std::string& text) { gave_up.set_value(text); }});
  const auto store = c10::make_intrusive<StandingStore>();
  Watchdog::Options options{.size = 2,
                            .interval = milliseconds(20),
                            .give_up_after = 1000,
                            .progress = [] { return Watchdog::Progress{"update", 0, false}; },
                            .warn = [](const std::string&) {},
                            .give_up = [](const std::string&) {},
                            .guard = &guard};
  Watchdog first(store, options);
  options.rank = 1;
  options.guard = nullptr;
  Watchdog second(store, options);
  first.start(kArrival);
  EXPECT_FALSE(comes(end, milliseconds(1200))) << "the store answers";
  store->stands = true;
  ASSERT_TRUE(comes(end));
  EXPECT_THAT(end.get(),
              testing::ContainsRegex("rank 0, which hosts the store,.* has not answered for 3. s.*"
                                     "last heartbeat: rank 0 on .*in the phase update"));
  store->go_on.set_value();
}

}  // namespace rematch
