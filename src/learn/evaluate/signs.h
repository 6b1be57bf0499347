#pragma once
#include <limits>
#include <span>
#include <string_view>

namespace rematch {

/// Direction in which a sign gets worse.
enum class Worse { kLower, kHigher, kFartherFromOne };

/// Users of a sign, as bits.
enum SignJudge : unsigned {
  kHealthLine = 1,   ///< each evaluation of a run against its start (learn/evaluate/health.h)
  kReportLimit = 2,  ///< the last evaluation against the limits (tools/report/score_table.h)
  kReportFall = 4,   ///< the last evaluation of a report against the first
  kProbe = 8,        ///< a checkpoint against the limits (learn/evaluate/probe_verdict.h)
};

/// A property of a model's answers that shows their quality. docs/health.md and docs/probe.md
/// explain each number.
struct Sign {
  const char* name;        ///< as under `health/`, e.g. "precision"
  const char* label;       ///< displayed name
  const char* score = "";  ///< name in an evaluation; "": measured by the probe only
  const char* count = "";  ///< name of the score that is its denominator; "": the number of samples
  unsigned judges;         ///< SignJudge
  Worse worse;
  double tolerance = 0;  ///< smaller changes are noise between runs
  double least = 0;      ///< limit of a healthy model
  double most = std::numeric_limits<double>::infinity();  ///< limit of a healthy model
  const char* advice = "";                                ///< one sentence in lower case
  const char* advice_if_fewer = "";  ///< kFartherFromOne: advice when it is too low
  const char* stage1_advice = "";    ///< for a stage-1 run; "": `advice`
  const char* stage1_advice_if_fewer = "";

  bool is_good(double value) const { return value >= least && value <= most; }
  /// @param is_stage1  the model was trained on the truth alone: give no advice about rollouts
  const char* advice_for(bool is_low, bool is_stage1 = false) const {
    const char* fewer = is_stage1 ? stage1_advice_if_fewer : advice_if_fewer;
    if (is_low && *fewer != '\0') return fewer;
    return is_stage1 && *stage1_advice != '\0' ? stage1_advice : advice;
  }
};

/// Advice for a bad value of a sign. A lack of predictions that malformed answers explain by half
/// or more, and answers without any object, say nothing about the truth.
/// @param malformed  share of the answers
inline const char* advice_for_value(const Sign& sign, double value, bool is_low, double malformed,
                                    bool is_stage1) {
  const bool lacks_predictions = is_low && sign.worse == Worse::kFartherFromOne;
  if (lacks_predictions && malformed > 0 && malformed >= (1 - value) / 2)
    return "most of what is missing is in the answers that are not JSON: fix these first";
  if (lacks_predictions && value == 0)
    return "no answer names an object: read some with `rematch rollout`";
  return sign.advice_for(is_low, is_stage1);
}

/// The only table of signs, in display order.
std::span<const Sign> signs();
/// Finds a sign, which must exist.
const Sign& sign_named(std::string_view name);

}  // namespace rematch
