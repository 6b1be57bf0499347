#include "engine/ranks/group.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/host_memory.h"
#include "engine/ranks/device.h"
#include "engine/ranks/meeting.h"
#include "engine/ranks/nccl_group.h"
#include "support/capture.h"
#include "support/ranks.h"

namespace rematch {

TEST(Group, OfOneRankChangesNoValue) {
  Group& group = alone();
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.rank(), 0);
  std::array<double, 2> values{0.1, -3};
  std::array<int64_t, 1> counts{7};
  group.all_reduce(values);
  group.all_reduce(counts);
  EXPECT_EQ(values, (std::array<double, 2>{0.1, -3}));
  EXPECT_EQ(counts[0], 7);
  EXPECT_EQ(group.all_gather(std::string("a\0b", 3)),
            (std::vector<std::string>{std::string("a\0b", 3)}));
  EXPECT_EQ(group.broadcast("text"), "text");
  group.barrier();
}

TEST(Group, SumsInRankOrderToTheSameBitsOnEveryRank) {
  test::run_ranks(4, [](Group& group) {
    // 1e16 + 1 + 1 - 1e16 depends on the order of its terms.
    const std::array<double, 4> terms{1e16, 1, 1, -1e16};
    std::array<double, 2> values{terms[static_cast<size_t>(group.rank())], 0.5};
    group.all_reduce(values);
    EXPECT_EQ(values[0], ((1e16 + 1) + 1) - 1e16);
    EXPECT_EQ(values[1], 2);
    std::array<int64_t, 1> counts{group.rank()};
    group.all_reduce(counts);
    EXPECT_EQ(counts[0], 6);
  });
}

TEST(Group, GathersBytesOfAnyLength) {
  test::run_ranks(3, [](Group& group) {
    const std::vector<std::string> texts{"", std::string("a\0b", 3), "a longer text"};
    EXPECT_EQ(group.all_gather(texts[static_cast<size_t>(group.rank())]), texts);
    EXPECT_EQ(group.broadcast(group.rank() == 0 ? "of rank 0" : "not this"), "of rank 0");
    EXPECT_EQ(group.broadcast(""), "");
  });
}

TEST(Group, BroadcastsATensorOfAnyRank) {
  test::run_ranks(2, [](Group& group) {
    at::Tensor values = at::full({2, 3}, group.rank() + 1.0, at::kFloat).t();
    group.broadcast(values, 1);
    EXPECT_TRUE(values.eq(2).all().item<bool>());
  });
}

TEST(Group, ExchangesUnequalCountsAsynchronously) {
  test::run_ranks(3, [](Group& group) {
    // Rank r sends r + 1 values "10 r + to" to every rank.
    const int rank = group.rank();
    std::vector<float> values;
    for (int to = 0; to < 3; ++to)
      values.insert(values.end(), static_cast<size_t>(rank + 1),
                    static_cast<float>(10 * rank + to));
    const at::Tensor send = at::tensor(values), receive = at::zeros({6}, at::kFloat);
    const auto wait = group.exchange(send, std::vector<int64_t>(3, rank + 1), receive, {1, 2, 3});
    wait();
    const auto r = static_cast<float>(rank);
    EXPECT_TRUE(
        receive.equal(at::tensor(std::vector<float>{r, 10 + r, 10 + r, 20 + r, 20 + r, 20 + r})));
  });
}

TEST(OwnGpus, TwoRanksOnOneAreRefusedByName) {
  test::run_ranks(3, [](Group& group) {
    require_own_gpus(group, std::to_string(group.rank()));
    const UserError error = test::catch_user_error(
        [&] { require_own_gpus(group, group.rank() == 0 ? "GPU-7" : "GPU-8f"); });
    EXPECT_EQ(error.problems()[0].where, "ranks 1 and 2");
    EXPECT_NE(error.problems()[0].what.find("GPU-8f on " + host_name()), std::string::npos);
  });
}

TEST(OwnGpus, FollowTheLocalRank) {
  World world{.size = 4, .rank = 3, .local_size = 2, .local_rank = 1};
  EXPECT_EQ(rank_device("auto", world, 2), "cuda:1");
  EXPECT_EQ(rank_device("cuda:0", world, 2), "cuda:0") << "a wish is a wish";
  EXPECT_EQ(rank_device("", world, 0), "") << "the CPU";
  EXPECT_EQ(rank_device("cuda", World{}, 1), "cuda");
  ::setenv("CUDA_VISIBLE_DEVICES", "5", 1);
  const UserError error = test::catch_user_error([&] { rank_device("auto", world, 1); });
  EXPECT_EQ(error.problems()[0].error, "this host has fewer GPUs than ranks");
  EXPECT_NE(
      error.problems()[0].what.find("1 GPU found, CUDA_VISIBLE_DEVICES=5, 2 ranks on this host"),
      std::string::npos);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(Meeting, NamesTheRankAndTheDifference) {
  test::run_ranks(3, [](Group& group) {
    require_equal(group, {{"training.seed", "42"}});
    const auto differ = [&] {
      require_equal(group,
                    {{"training.seed", group.rank() == 2 ? "43" : "42"}, {"the build", "one"}});
    };
    const UserError error = test::catch_user_error(differ);
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_NE(error.problems()[0].error.find("rank 2 was started with a different training.seed"),
              std::string::npos);
    EXPECT_NE(error.problems()[0].what.find("there: 43"), std::string::npos);
  });
}

TEST(Meeting, ReportsAFileOnceWithItsFirstDifferentKey) {
  test::run_ranks(2, [](Group& group) {
    const std::string mine = group.rank() == 0 ? "1" : "2";
    const UserError error = test::catch_user_error([&] {
      require_equal(group, {{"a.json", "present"},
                            {"a.json: x", mine},
                            {"a.json: y", mine},
                            {"a.json: z", "0"},
                            {"b.json: x", mine}});
    });
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_NE(error.problems()[0].error.find("a different a.json: x"), std::string::npos);
    EXPECT_NE(error.problems()[0].what.find("; 1 more of a.json differ"), std::string::npos);
    EXPECT_NE(error.problems()[1].error.find("a different b.json: x"), std::string::npos);
  });
}

TEST(Meeting, DetectsLoopbackNames) {
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_FALSE(is_loopback("192.0.2.1"));
  EXPECT_FALSE(is_loopback("no such host"));
}

TEST(Group, SplitsIntoSubgroupsThatKnowTheirRanksInTheRun) {
  test::run_ranks(4, [](Group& group) {
    for (int again = 0; again < 2; ++again) {
      const std::unique_ptr<Group> part = group.split(2);
      EXPECT_EQ(part->size(), 2);
      EXPECT_EQ(part->rank(), group.rank() % 2);
      EXPECT_EQ(part->run_rank(part->rank()), group.rank());
      std::array<int64_t, 1> ranks{group.rank()};
      part->all_reduce(ranks);
      EXPECT_EQ(ranks[0], group.rank() < 2 ? 1 : 5);
    }
    EXPECT_TRUE(group.split(1)->is_alone());
  });
}

}  // namespace rematch
