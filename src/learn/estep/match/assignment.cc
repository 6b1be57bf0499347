#include "learn/estep/match/assignment.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

constexpr int kNone = -1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Inserts rows one by one; each insertion finds the shortest augmenting path in the reduced costs.
class AssignmentSolver {
 public:
  explicit AssignmentSolver(const CostMatrix& costs)
      : costs_(costs),
        n_(static_cast<size_t>(costs.size)),
        row_dual_(n_, 0.0),
        column_dual_(n_, 0.0),
        column_of_row_(n_, kNone),
        row_of_column_(n_, kNone),
        from_row_(n_, kNone),
        distance_(n_),
        row_seen_(n_),
        column_seen_(n_),
        open_columns_(n_) {}

  std::vector<int> solve() {
    for (int row = 0; row < costs_.size; ++row) insert(row);
    return std::move(column_of_row_);
  }

 private:
  void insert(int new_row) {
    const auto [sink, length] = find_path(new_row);
    update_duals(new_row, length);
    flip_path(new_row, sink);
  }

  // Dijkstra from `new_row` to the nearest unassigned column. To break ties as scipy does, the
  // order of candidates is part of the contract: they start as n-1…0, and the last one replaces a
  // removed one.
  std::pair<int, double> find_path(int new_row) {
    for (size_t i = 0; i < n_; ++i) open_columns_[i] = static_cast<int>(n_ - 1 - i);
    size_t num_open = n_;
    distance_.assign(n_, kInfinity);
    row_seen_.assign(n_, false);
    column_seen_.assign(n_, false);
    double reached = 0.0;
    int row = new_row;
    while (true) {
      row_seen_[row] = true;
      const size_t nearest = relax_row(row, reached, num_open);
      const int column = open_columns_[nearest];
      reached = distance_[column];
      REMATCH_CHECK(reached < kInfinity, "costs must be finite");
      column_seen_[column] = true;
      open_columns_[nearest] = open_columns_[--num_open];
      if (row_of_column_[column] == kNone) return {column, reached};
      row = row_of_column_[column];
    }
  }

  // Shortens distances through `row` and returns the index in open_columns_ of the nearest column;
  // a free column wins a tie.
  size_t relax_row(int row, double reached, size_t num_open) {
    size_t nearest = 0;
    double lowest = kInfinity;
    for (size_t i = 0; i < num_open; ++i) {
      const int column = open_columns_[i];
      const double through =
          reached + costs_.at(row, column) - row_dual_[row] - column_dual_[column];
      double& distance = distance_[column];
      if (through < distance) {
        distance = through;
        from_row_[column] = row;
      }
      if (distance < lowest || (distance == lowest && row_of_column_[column] == kNone)) {
        lowest = distance;
        nearest = i;
      }
    }
    return nearest;
  }

  void update_duals(int new_row, double length) {
    row_dual_[new_row] += length;
    for (size_t row = 0; row < n_; ++row) {
      if (row_seen_[row] && row != static_cast<size_t>(new_row))
        row_dual_[row] += length - distance_[column_of_row_[row]];
    }
    for (size_t column = 0; column < n_; ++column) {
      if (column_seen_[column]) column_dual_[column] -= length - distance_[column];
    }
  }

  void flip_path(int new_row, int sink) {
    int column = sink;
    int row = kNone;
    while (row != new_row) {
      row = from_row_[column];
      row_of_column_[column] = row;
      std::swap(column_of_row_[row], column);
    }
  }

  const CostMatrix& costs_;
  size_t n_;
  std::vector<double> row_dual_, column_dual_;
  std::vector<int> column_of_row_, row_of_column_;
  std::vector<int> from_row_;     // row before each column on its shortest path
  std::vector<double> distance_;  // to each column
  std::vector<bool> row_seen_, column_seen_;
  std::vector<int> open_columns_;
};

}  // namespace

std::vector<int> solve_assignment(const CostMatrix& costs) {
  return AssignmentSolver(costs).solve();
}

}  // namespace rematch
