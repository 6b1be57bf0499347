#include "ranks/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

/// Two watchdogs on one store, and the warnings of rank 0. Tests that expect none make them
/// `slower`: a crowded machine delays threads.
struct Pair {
  explicit Pair(int slower = 1) : slower(slower) {}

  const int slower;
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::promise<std::string> warned, gave_up;
  std::unique_ptr<Watchdog> first = make(0), second = make(1);

  std::unique_ptr<Watchdog> make(int rank) {
    const auto note = [rank](std::promise<std::string>& promise, const std::string& text) {
      if (rank == 0) promise.set_value(text);
    };
    return std::make_unique<Watchdog>(
        store, Watchdog::Options{
                   .rank = rank,
                   .size = 2,
                   .interval = milliseconds(20 * slower),
                   .warn_after = milliseconds(200 * slower),
                   .give_up_after = milliseconds(400 * slower),
                   .phase = [] { return "rollout"; },
                   .warn = [this, note](const std::string& text) { note(warned, text); },
                   .give_up = [this, note](const std::string& text) { note(gave_up, text); }});
  }
};

bool has(std::future<std::string>& future, milliseconds patience) {
  return future.wait_for(patience) == std::future_status::ready;
}

}  // namespace

TEST(Watchdog, NamesASilentRankThenGivesUp) {
  Pair pair;
  auto warned = pair.warned.get_future(), gave_up = pair.gave_up.get_future();
  pair.first->start();  // rank 1 has said that it is there, and never beats
  ASSERT_TRUE(has(warned, milliseconds(5000)));
  const std::string text = warned.get();
  EXPECT_NE(text.find("rank 1 on "), std::string::npos) << text;
  EXPECT_NE(text.find("in the phase rollout has been silent"), std::string::npos) << text;
  EXPECT_NE(pair.first->explain().find("rank 1 on "), std::string::npos);
  ASSERT_TRUE(has(gave_up, milliseconds(5000)));
  pair.first->stop(false);
}

TEST(Watchdog, IsSilentAboutRanksThatBeatOrHaveLeft) {
  Pair pair(/*slower=*/5);
  auto warned = pair.warned.get_future();
  pair.first->start();
  pair.second->start();
  EXPECT_FALSE(has(warned, milliseconds(1200)));
  EXPECT_EQ(pair.first->explain(), "");
  pair.second->stop(true);
  EXPECT_FALSE(has(warned, milliseconds(1200)));
  EXPECT_NE(pair.first->explain().find("has left, with an error"), std::string::npos);
  pair.first->stop(false);
  pair.first->wait_for_others(milliseconds(5000));
}

TEST(Watchdog, NamesAStalledRankThatOthersWaitFor) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::promise<std::string> warned, gave_up;
  std::atomic<int64_t> num_moves = 0;
  Watchdog::Options options{
      .size = 2, .interval = milliseconds(20), .warn_when_stuck = milliseconds(2000)};
  options.give_up_when_stuck = milliseconds(4000);
  options.phase = [] { return "update"; };
  std::once_flag once, once_warned;
  options.warn = [&](const std::string& text) {
    std::call_once(once_warned, [&] { warned.set_value(text); });
  };
  options.give_up = [&](const std::string& text) {
    std::call_once(once, [&] { gave_up.set_value(text); });
  };
  Watchdog::Options of_first = options, of_second = options;
  of_first.progress = [] { return Watchdog::Progress{.is_waiting = true}; };
  of_second.rank = 1;
  of_second.progress = [&] { return Watchdog::Progress{.num_moves = num_moves}; };
  Watchdog first(store, of_first), second(store, of_second);
  first.start();
  second.start();
  auto told = warned.get_future(), ended = gave_up.get_future();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(has(told, milliseconds(50))) << "a rank that goes on is waited for";
    ++num_moves;
  }
  ASSERT_TRUE(has(told, milliseconds(5000)));
  const std::string text = told.get();
  EXPECT_NE(text.find("rank 1 on "), std::string::npos) << text;
  EXPECT_NE(text.find("in the phase update has not moved for"), std::string::npos) << text;
  ASSERT_TRUE(has(ended, milliseconds(5000)));
  first.stop(false);
  second.stop(false);
}

TEST(Watchdog, GivesUpWhenAllWaitAndNoneMoves) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::promise<std::string> gave_up;
  std::atomic<int64_t> num_moves = 0;
  Watchdog::Options options{
      .size = 2, .interval = milliseconds(20), .give_up_when_stuck = milliseconds(2000)};
  options.phase = [] { return "update"; };
  options.progress = [&] { return Watchdog::Progress{.num_moves = num_moves, .is_waiting = true}; };
  options.warn = [](const std::string&) {};
  std::once_flag once;
  Watchdog::Options of_second = options;
  of_second.rank = 1;
  of_second.give_up = options.warn;
  options.give_up = [&](const std::string& text) {
    std::call_once(once, [&] { gave_up.set_value(text); });
  };
  Watchdog first(store, options), second(store, of_second);
  first.start();
  second.start();
  auto told = gave_up.get_future();
  for (int i = 0; i < 10; ++i) {
    ++num_moves;
    EXPECT_FALSE(has(told, milliseconds(300))) << "calls are long, and end";
  }
  ASSERT_TRUE(has(told, milliseconds(10000)));
  const std::string text = told.get();
  EXPECT_NE(text.find("rank 1 on "), std::string::npos) << text;
  EXPECT_NE(text.find("has not moved"), std::string::npos) << text;
  second.stop(false);
  first.stop(false);
}

TEST(Watchdog, DoesNotWaitForARankThatHasLeft) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::promise<std::string> gave_up;
  Watchdog::Options options{
      .size = 2, .interval = milliseconds(20), .warn_after = milliseconds(200)};
  options.progress = [] { return Watchdog::Progress{.is_waiting = true}; };
  std::once_flag once;
  options.give_up = [&](const std::string& text) {
    std::call_once(once, [&] { gave_up.set_value(text); });
  };
  Watchdog::Options of_second = options;
  of_second.rank = 1;
  Watchdog first(store, options), second(store, of_second);
  first.start();
  second.start();
  second.stop(/*failed=*/true);
  auto told = gave_up.get_future();
  ASSERT_TRUE(has(told, milliseconds(5000)));
  EXPECT_NE(told.get().find("has left, with an error"), std::string::npos);
  first.stop(false);
}

TEST(Watchdog, NamesTheRanksThatHaveNotConnected) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Watchdog only(store, {.rank = 0, .size = 3});
  const UserError error =
      test::catch_user_error([&] { only.wait_for_first_beats(milliseconds(50)); });
  EXPECT_NE(std::string(error.what()).find("rank 1, 2"), std::string::npos) << error.what();
}

}  // namespace rematch
