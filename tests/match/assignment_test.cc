#include "learn/estep/match/assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace rematch {

TEST(SolveAssignment, IsTheIdentityForEqualCosts) {
  EXPECT_EQ(solve_assignment(CostMatrix(4, 1.0)), (std::vector<int>{0, 1, 2, 3}));
}

TEST(SolveAssignment, AcceptsAnEmptyMatrix) {
  EXPECT_TRUE(solve_assignment(CostMatrix(0)).empty());
}

TEST(SolveAssignment, MovesAnEarlierRowAsideWhenThatIsCheaper) {
  CostMatrix costs(2);
  costs.values = {1, 2, 1, 5};
  EXPECT_EQ(solve_assignment(costs), (std::vector<int>{1, 0}));
}

RC_GTEST_PROP(SolveAssignment, IsAnOptimalPermutation, ()) {
  const int n = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, 7));
  CostMatrix costs(n);
  costs.values = *rc::gen::container<std::vector<double>>(
      static_cast<size_t>(n * n),
      rc::gen::map(rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 50)),
                   [](int v) { return v / 8.0; }));
  const auto total = [&](const std::vector<int>& columns) {
    double sum = 0;
    for (int row = 0; row < n; ++row) sum += costs.at(row, columns[static_cast<size_t>(row)]);
    return sum;
  };
  const std::vector<int> found = solve_assignment(costs);
  std::vector<int> columns(static_cast<size_t>(n));
  std::iota(columns.begin(), columns.end(), 0);
  RC_ASSERT(std::is_permutation(found.begin(), found.end(), columns.begin()));
  double best = total(columns);
  while (std::next_permutation(columns.begin(), columns.end()))
    best = std::min(best, total(columns));
  RC_ASSERT(total(found) == best);
}

}  // namespace rematch
