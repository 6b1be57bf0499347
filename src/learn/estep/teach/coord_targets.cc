#include "learn/estep/teach/coord_targets.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/flow/bins.h"
#include "base/option_range.h"

namespace rematch {
namespace {

double distance(const BinPoint& a, const BinPoint& b, OtCost cost) {
  const double dx = a.x - b.x, dy = a.y - b.y;
  return cost == OtCost::kL1 ? std::abs(dx) + std::abs(dy) : std::sqrt(dx * dx + dy * dy);
}

double divide(double numerator, double denominator) {
  return numerator / (denominator == 0.0 ? 1.0 : denominator);
}

// exp(−cost / epsilon) of each pair, [num_from, num_to], row-major.
class Kernel {
 public:
  Kernel(const std::vector<BinPoint>& from, const std::vector<BinPoint>& to,
         const TargetSettings& options)
      : num_from_(from.size()), num_to_(to.size()) {
    for (const BinPoint& a : from) {
      for (const BinPoint& b : to) {
        values_.push_back(std::exp(
            std::clamp(-distance(a, b, options.ot_cost) / options.ot_epsilon, -50.0, 50.0)));
      }
    }
  }
  double at(size_t i, size_t j) const { return values_[i * num_to_ + j]; }

  std::vector<double> times(const std::vector<double>& v) const {
    std::vector<double> product(num_from_, 0.0);
    for (size_t i = 0; i < num_from_; ++i) {
      for (size_t j = 0; j < num_to_; ++j) product[i] += at(i, j) * v[j];
    }
    return product;
  }
  std::vector<double> transposed_times(const std::vector<double>& u) const {
    std::vector<double> product(num_to_, 0.0);
    for (size_t i = 0; i < num_from_; ++i) {
      for (size_t j = 0; j < num_to_; ++j) product[j] += at(i, j) * u[i];
    }
    return product;
  }

 private:
  size_t num_from_, num_to_;
  std::vector<double> values_;
};

// The corners of a box, or the vertices of a polygon.
std::vector<BinPoint> vertices(const Geometry& geometry) {
  const std::vector<int>& b = geometry.bins;
  if (geometry.kind == GeometryKind::kBbox2d) {
    const double x1 = b[0], y1 = b[1], x2 = b[2], y2 = b[3];
    return {{x1, y1}, {x2, y1}, {x2, y2}, {x1, y2}};
  }
  std::vector<BinPoint> points;
  for (size_t i = 0; i + 1 < b.size(); i += 2)
    points.push_back({static_cast<double>(b[i]), static_cast<double>(b[i + 1])});
  return points;
}

std::vector<int> bounding_bins(const std::vector<int>& xy) {
  const Aabb box = bounding_box({GeometryKind::kPoly, xy});
  return {static_cast<int>(box.min_x), static_cast<int>(box.min_y), static_cast<int>(box.max_x),
          static_cast<int>(box.max_y)};
}

}  // namespace

OtCost ot_cost_from(std::string_view name) {
  const std::optional<OtCost> cost = value_of<OtCost>(name);
  if (!cost) refuse_value("ot_cost", name, "l1 or l2");
  return *cost;
}

void check_target_options(const TargetSettings& options) {
  if (!(options.ot_epsilon > 0.0 && std::isfinite(options.ot_epsilon))) {
    refuse_value("ot_epsilon", options.ot_epsilon, "a number > 0");
  }
  if (options.ot_iters < 1) refuse_value("ot_iters", options.ot_iters, "an integer ≥ 1");
}

std::vector<BinPoint> transport_points(const std::vector<BinPoint>& from,
                                       const std::vector<BinPoint>& to,
                                       const TargetSettings& options) {
  REMATCH_CHECK(!from.empty() && !to.empty(), "transport needs points");
  const Kernel kernel(from, to, options);
  const double from_mass = 1.0 / from.size();
  const double to_mass = 1.0 / to.size();
  std::vector<double> u(from.size(), 1.0), v(to.size(), 1.0);
  for (int iter = 0; iter < options.ot_iters; ++iter) {
    const std::vector<double> kernel_v = kernel.times(v);
    for (size_t i = 0; i < u.size(); ++i) u[i] = divide(from_mass, kernel_v[i]);
    const std::vector<double> kernel_u = kernel.transposed_times(u);
    for (size_t j = 0; j < v.size(); ++j) v[j] = divide(to_mass, kernel_u[j]);
  }
  std::vector<BinPoint> moved(from.size());
  std::vector<double> plan_row(to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    double row_sum = 0.0;
    for (size_t j = 0; j < to.size(); ++j) {
      plan_row[j] = u[i] * kernel.at(i, j) * v[j];
      row_sum += plan_row[j];
    }
    for (size_t j = 0; j < to.size(); ++j) {
      const double share = plan_row[j] / row_sum;
      moved[i].x += share * to[j].x;
      moved[i].y += share * to[j].y;
    }
  }
  return moved;
}

std::optional<std::vector<int>> rounded_bins(const std::vector<BinPoint>& points) {
  std::vector<int> bins;
  for (const BinPoint& point : points) {
    for (const double value : {point.x, point.y}) {
      if (!std::isfinite(value)) return std::nullopt;
      // nearbyint rounds half to even in the default mode.
      bins.push_back(static_cast<int>(
          std::clamp(std::nearbyint(value), 0.0, static_cast<double>(kNumBins - 1))));
    }
  }
  return bins;
}

std::optional<std::vector<int>> coord_targets(const Geometry& predicted,
                                              const Geometry& ground_truth,
                                              const TargetSettings& options) {
  const bool predicted_box = predicted.kind == GeometryKind::kBbox2d;
  if (predicted_box && ground_truth.kind == GeometryKind::kBbox2d) return ground_truth.bins;
  const auto bins =
      rounded_bins(transport_points(vertices(predicted), vertices(ground_truth), options));
  return bins && predicted_box ? bounding_bins(*bins) : bins;
}

}  // namespace rematch
