#pragma once
#include <cstddef>
#include <vector>

namespace rematch {

/// Square cost matrix, row by row.
struct CostMatrix {
  int size = 0;
  std::vector<double> values;  ///< size * size, finite

  explicit CostMatrix(int n, double fill = 0.0)
      : size(n), values(static_cast<size_t>(n) * static_cast<size_t>(n), fill) {}
  double& at(int row, int column) { return values[place(row, column)]; }
  double at(int row, int column) const { return values[place(row, column)]; }

 private:
  size_t place(int row, int column) const {
    return static_cast<size_t>(row) * size + static_cast<size_t>(column);
  }
};

/// Solves the assignment problem: the column of each row at least total cost. Among equal solutions
/// it returns the one of scipy's `linear_sum_assignment`. Cost: O(n³) at worst, near O(n²) when
/// most rows find a free column at once.
/// @source D. F. Crouse, "On implementing 2D rectangular assignment algorithms", 2016, with scipy's
/// order of candidates
std::vector<int> solve_assignment(const CostMatrix& costs);

}  // namespace rematch
