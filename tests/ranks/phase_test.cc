#include "engine/ranks/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/interrupt.h"
#include "support/ranks.h"

namespace rematch {
namespace {

class Keeping : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

const Problem kProblem{.error = "it broke", .where = "here", .what = "so", .fix = "repair it"};

/// Outcome of a phase on this rank: who failed, and the first problem's headline.
std::string outcome(Group& group, const std::function<void()>& part) {
  try {
    together(group, part);
    return "went well";
  } catch (const Interrupted&) {
    return "interrupted";
  } catch (const KeepingPeerFailure& error) {
    return "kept, " + error.problems()[0].error;
  } catch (const PeerFailure& error) {
    return "lost, " + error.problems()[0].error;
  } catch (const UserError& error) {
    return "own, " + error.problems()[0].error;
  } catch (const std::runtime_error& error) {
    return std::string("own, ") + error.what();
  }
}

}  // namespace

TEST(Phase, ReturnsWhenNoRankFails) {
  test::run_ranks(3, [](Group& group) { EXPECT_EQ(outcome(group, [] {}), "went well"); });
}

TEST(Phase, EveryRankReportsTheOneThatFailed) {
  test::run_ranks(3, [](Group& group) {
    const auto fails = [&] {
      if (group.rank() == 1) throw UserError(ErrorKind::kData, kProblem);
    };
    EXPECT_EQ(outcome(group, fails),
              group.rank() == 1 ? "own, it broke" : "lost, rank 1: it broke");
    const auto bug = [&] {
      if (group.rank() == 2) throw std::runtime_error("bad luck");
    };
    EXPECT_EQ(outcome(group, bug),
              group.rank() == 2 ? "own, bad luck" : "lost, rank 2: Rematch hit a bug");
    const auto refused = [&] {
      if (group.rank() == 0) std::filesystem::directory_iterator("/no/such/directory");
    };
    EXPECT_THAT(outcome(group, refused),
                group.rank() == 0 ? ::testing::HasSubstr("/no/such/directory")
                                  : ::testing::HasSubstr("rank 0: cannot use /no/such/directory"));
    EXPECT_EQ(outcome(group, [] {}), "went well") << "and the group is as good as before";
  });
}

TEST(Phase, AllKeepTheStateOrNone) {
  test::run_ranks(3, [](Group& group) {
    const auto keeps = [&] {
      if (group.rank() == 2) throw Keeping(ErrorKind::kData, kProblem);
    };
    EXPECT_EQ(outcome(group, keeps),
              group.rank() == 2 ? "own, it broke" : "kept, rank 2: it broke");
    const auto both = [&] {
      if (group.rank() == 0) throw Interrupted{};
      if (group.rank() == 2) throw UserError(ErrorKind::kData, kProblem);
    };
    EXPECT_EQ(outcome(group, both), group.rank() == 2 ? "own, it broke" : "lost, rank 2: it broke");
    const auto interrupt = [&] {
      if (group.rank() == 1) throw Interrupted{};
    };
    EXPECT_EQ(outcome(group, interrupt), "interrupted");
  });
}

TEST(Phase, ThePeersOwnErrorReplacesReportsAboutIt) {
  test::run_ranks(3, [](Group& group) {
    const auto part = [&] {
      if (group.rank() == 0) throw PeerFailure(ErrorKind::kEnvironment, kProblem);
      if (group.rank() == 1) throw Keeping(ErrorKind::kData, {.error = "the cause"});
    };
    EXPECT_EQ(outcome(group, part),
              group.rank() == 1 ? "own, the cause" : "kept, rank 1: the cause");
  });
}

// Rank 1 fails while the others are in, or on their way to, a synchronous call.
TEST(Phase, NoRankBlocksInACallThatTheOthersNeverEnter) {
  const std::vector<std::function<void(Group&)>> calls{
      [](Group& group) {
        double value = 1;
        group.all_reduce(std::span<double>(&value, 1));
      },
      [](Group& group) { group.all_gather("text"); },
      [](Group& group) { group.broadcast(std::string("text")); },
      [](Group& group) {
        at::Tensor values = at::zeros({4});
        group.broadcast(values, 2);
      },
      [](Group& group) { group.barrier(); },
      [](Group& group) { on_any_rank(group, false); },
      [](Group& group) { together(group, [&] { group.barrier(); }); }};
  test::run_ranks(3, [&](Group& group) {
    for (const auto& call : calls) {
      const auto body = [&] {
        call(group);
        if (group.rank() == 1) throw UserError(ErrorKind::kData, kProblem);
        call(group);
        call(group);
        ADD_FAILURE() << "rank " << group.rank() << " should have been stopped";
      };
      EXPECT_EQ(outcome(group, body),
                group.rank() == 1 ? "own, it broke" : "lost, rank 1: it broke");
    }
    int64_t sum = group.rank();
    EXPECT_EQ(outcome(group, [&] { group.all_reduce(std::span<int64_t>(&sum, 1)); }), "went well");
    EXPECT_EQ(sum, 3) << "the group is as good as before";
  });
}

TEST(Phase, TwoRanksMayFailInDifferentPlaces) {
  test::run_ranks(3, [](Group& group) {
    const auto body = [&] {
      if (group.rank() == 2) throw UserError(ErrorKind::kData, kProblem);
      if (group.rank() == 0) throw Keeping(ErrorKind::kData, {.error = "kept"});
      group.barrier();
    };
    EXPECT_EQ(outcome(group, body), group.rank() == 2 ? "own, it broke" : "lost, rank 2: it broke");
  });
}

TEST(Phase, NamesItselfForTheWatchdog) {
  run_phase(alone(), "update", [] { EXPECT_STREQ(alone().phase(), "update"); });
}

TEST(Phase, AloneThrowsAtOnce) {
  EXPECT_THROW(together(alone(), [] { throw Keeping(ErrorKind::kData, kProblem); }), Keeping);
  EXPECT_TRUE(on_any_rank(alone(), true));
  EXPECT_FALSE(on_any_rank(alone(), false));
}

}  // namespace rematch
