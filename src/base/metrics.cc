#include "base/metrics.h"

#include <numeric>

namespace rematch {

void MetricsBag::add(std::string_view name, double value) {
  auto found = values_.find(name);
  if (found == values_.end())
    found = values_.emplace(std::string(name), std::vector<double>{}).first;
  found->second.push_back(value);
}

void MetricsBag::merge(const MetricsBag& other) {
  for (const auto& [name, values] : other.values_) {
    auto& mine = values_[name];
    mine.insert(mine.end(), values.begin(), values.end());
  }
}

const std::vector<double>& MetricsBag::values(std::string_view name) const {
  static const std::vector<double> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

double MetricsBag::sum(std::string_view name) const {
  const std::vector<double>& all = values(name);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

Span::Span(MetricsBag& bag, std::string name)
    : bag_(bag), name_(std::move(name)), start_(std::chrono::steady_clock::now()) {}

Span::~Span() {
  bag_.add(name_, std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
}

}  // namespace rematch
