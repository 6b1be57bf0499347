#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// Raw observations of one optimizer step by metric name. Verbs add; base/observe/catalog defines
/// each name's reduction (sum, mean, p90 …) and unit. Not thread-safe: one bag per thread, merged
/// by its owner.
class MetricsBag {
 public:
  void add(std::string_view name, double value);
  /// Appends all observations of `other`.
  void merge(const MetricsBag& other);
  /// Observations of a name in order of arrival; empty when there are none.
  const std::vector<double>& values(std::string_view name) const;
  double sum(std::string_view name) const;
  const std::map<std::string, std::vector<double>, std::less<>>& all() const { return values_; }
  bool empty() const { return values_.empty(); }
  void clear() { values_.clear(); }

  friend void fields(auto& wire, MetricsBag& bag) { wire(bag.values_); }

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

/// Adds the seconds between construction and destruction to `name`: `Span span(bag,
/// "time/forward_s");`
class Span {
 public:
  Span(MetricsBag& bag, std::string name);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  MetricsBag& bag_;
  std::string name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace rematch
