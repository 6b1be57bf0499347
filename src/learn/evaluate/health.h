#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "learn/evaluate/advice.h"

namespace rematch {

/// Direction in which a sign gets worse.
enum class Worse { kLower, kHigher, kFartherFromOne };

/// A score that shows the quality of a model's answers (docs/health.md).
struct Sign {
  const char* name;        ///< as under `health/`, e.g. "precision"
  const char* score;       ///< name in an evaluation
  const char* count = "";  ///< name of the score that is its denominator; "": the number of samples
  Worse worse = Worse::kLower;
  double tolerance = 0.02;  ///< smaller changes are noise between runs
  bool alarms = true;       ///< false: a fall is named, but is not a harm
};

/// All signs, in display order.
std::span<const Sign> signs();

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
  /// signs that got worse; none while F1 of the earlier evaluation was 0
  std::vector<Harm> harms;
  std::vector<Harm> falls;       ///< F1, label F1: named, but no harm
  bool nothing_to_lose = false;  ///< F1 of the earlier evaluation was 0
  bool f1_rose = false;

  /// True where `stop_on_harm` ends a run: never while F1 is above that of the earlier evaluation.
  bool is_harmful() const { return !harms.empty() && !f1_rose; }
  /// "health: nothing in the answers is worse than at the start", or a first line that names each
  /// harm with its two values and a line of advice for each; without harms the same about falls.
  Strings lines(const advice::Training& training) const;
};

/// Looks up a score of an evaluation by its name in base/observe/catalog; nullopt when absent.
using ScoreOf = std::function<std::optional<double>(std::string_view)>;

/// Compares the signs. A change is a harm when it exceeds the sign's tolerance (noise between runs)
/// and two standard errors of the difference (noise of few samples). A share of nothing, before or
/// now, is not compared.
/// @param num_samples  evaluated samples, ≥ 1
/// A sign that one of the two lacks is not compared.
/// @return nullopt when one of the two has no rollout scores
std::optional<Health> compare_health(const ScoreOf& before, const ScoreOf& now, int64_t num_samples,
                                     int64_t since_step);

}  // namespace rematch
