#include "train/rank_metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "ranks/bag_bytes.h"

namespace rematch {
namespace {

/// What one rank sends.
struct Share {
  MetricsBag bag;
  std::vector<size_t> micro_batches;

  size_t num_samples() const {
    return std::accumulate(micro_batches.begin(), micro_batches.end(), size_t{0});
  }
};

std::string bytes_of(const Share& share) {
  const std::string sizes = Json(share.micro_batches).dump();
  return sizes + "\n" + rematch::bytes_of(share.bag);
}

Share share_of(const std::string& bytes) {
  const size_t end = bytes.find('\n');
  return {bag_of(std::string_view(bytes).substr(end + 1)),
          Json::parse(bytes.substr(0, end)).get<std::vector<size_t>>()};
}

/// Observations in each micro-batch of every rank: as many as it has samples, or one; nothing when
/// neither holds for all ranks.
std::vector<std::vector<size_t>> observations_by_micro_batch(const std::vector<Share>& shares,
                                                             const std::string& name) {
  std::vector<std::vector<size_t>> by_sample, by_micro_batch;
  bool is_by_sample = true, is_by_micro_batch = true;
  for (const Share& share : shares) {
    const size_t count = share.bag.values(name).size();
    is_by_sample = is_by_sample && count == share.num_samples();
    is_by_micro_batch = is_by_micro_batch && count == share.micro_batches.size();
    by_sample.push_back(share.micro_batches);
    by_micro_batch.emplace_back(share.micro_batches.size(), 1);
  }
  return is_by_sample        ? by_sample
         : is_by_micro_batch ? by_micro_batch
                             : std::vector<std::vector<size_t>>();
}

/// Micro-batch t of each rank in turn, then t + 1: the order of the window.
void add_in_turns(const std::vector<Share>& shares, const std::string& name,
                  const std::vector<std::vector<size_t>>& counts, MetricsBag& all) {
  std::vector<size_t> next(shares.size(), 0);
  size_t num_turns = 0;
  for (const auto& of_rank : counts) num_turns = std::max(num_turns, of_rank.size());
  for (size_t turn = 0; turn < num_turns; ++turn) {
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      const size_t count = turn < counts[rank].size() ? counts[rank][turn] : 0;
      for (size_t i = 0; i < count; ++i) all.add(name, shares[rank].bag.values(name)[next[rank]++]);
    }
  }
}

void add_values(const std::vector<double>& values, const std::string& name, MetricsBag& all) {
  for (const double value : values) all.add(name, value);
}

}  // namespace

MetricsBag gather_metrics(Group& group, const MetricsBag& mine,
                          const std::vector<size_t>& micro_batches) {
  if (group.is_alone()) return mine;
  const std::vector<std::string> texts = group.all_gather(bytes_of(Share{mine, micro_batches}));
  if (group.rank() != 0) return mine;
  std::vector<Share> shares;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    shares.push_back(share_of(text));
    for (const auto& [name, values] : shares.back().bag.all()) names.insert(name);
  }
  MetricsBag all;
  for (const std::string& name : names) {
    const auto is_slower = [&](const Share& a, const Share& b) {
      return a.bag.sum(name) < b.bag.sum(name);
    };
    const std::vector<std::vector<size_t>> counts = observations_by_micro_batch(shares, name);
    if (name.rfind("time/", 0) == 0) {
      add_values(std::max_element(shares.begin(), shares.end(), is_slower)->bag.values(name), name,
                 all);
    } else if (!counts.empty() && !micro_batches.empty()) {
      add_in_turns(shares, name, counts, all);
    } else if (shares.front().bag.values(name).size() <= 1) {
      add_values(shares.front().bag.values(name), name, all);
    } else {
      for (const Share& share : shares) add_values(share.bag.values(name), name, all);
    }
  }
  return all;
}

}  // namespace rematch
