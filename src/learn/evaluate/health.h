#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

/// A sign of a model's health that got worse.
struct Harm {
  std::string sign;  ///< as under `health/`, e.g. "precision"
  double before = 0, now = 0;
};

/// An evaluation compared with an earlier one over the same set.
struct Health {
  /// step of the earlier evaluation; 0: the start of the run
  int64_t since_step = 0;
  std::vector<std::pair<std::string, double>> changes;  ///< sign → now minus before; every sign
  std::vector<Harm> harms;
  std::vector<Harm> falls;       ///< F1, label F1: named, but no alarm and no reason to stop
  bool nothing_to_lose = false;  ///< F1 of the earlier evaluation was 0

  bool is_worse() const { return !harms.empty(); }
  /// "health: nothing in the answers is worse than at the start", or a first line that names each
  /// harm with its two values and a line of advice for each; without harms the same about falls.
  /// @param is_stage1  a run without rollouts: its advice names none
  std::vector<std::string> lines(bool is_stage1 = false) const;
};

/// Looks up a score of an evaluation by its name in base/observe/catalog; nullopt when absent.
using ScoreOf = std::function<std::optional<double>(std::string_view)>;

/// Compares the signs of the health line (learn/evaluate/signs.h). A change is a harm when it
/// exceeds the sign's tolerance (noise between runs) and two standard errors of the difference
/// (noise of few samples).
/// @param num_samples  evaluated samples, ≥ 1
/// @return nullopt when one of the two has no rollout scores
std::optional<Health> compare_health(const ScoreOf& before, const ScoreOf& now, int64_t num_samples,
                                     int64_t since_step);

}  // namespace rematch
