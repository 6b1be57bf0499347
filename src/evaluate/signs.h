#pragma once
#include <limits>
#include <span>
#include <string_view>

namespace rematch {

/// Change of a sign that is for the worse.
enum class Worse { kLower, kHigher, kFartherFromOne };

/// Judges that use a sign, as bits.
enum SignJudge : unsigned {
  kHealthLine = 1,   ///< each evaluation of a run against its start (evaluate/health.h)
  kReportLimit = 2,  ///< the last evaluation against the limits (report/score_table.h)
  kReportFall = 4,   ///< the last evaluation of a report against the first
  kProbe = 8,        ///< a checkpoint against the limits (evaluate/probe_verdict.h)
};

/// A property of a model's answers by which they are judged. Each number has its reason in
/// docs/health.md or docs/probe.md.
struct Sign {
  const char* name;   ///< as under `health/`, e.g. "precision"
  const char* label;  ///< for people
  const char* score;  ///< in an evaluation; "": only the probe measures it
  const char* count;  ///< score that counts what the sign is a share of; "": the samples
  unsigned judges;    ///< SignJudge
  Worse worse;
  double tolerance = 0;  ///< a smaller change is noise between runs
  /// limits of a healthy model
  double least = 0, most = std::numeric_limits<double>::infinity();
  const char* advice = "";           ///< one sentence, in lower case: what to do about it
  const char* advice_if_fewer = "";  ///< kFartherFromOne: when it is too low
  const char* stage1_advice = "";    ///< of a stage-1 run; "": `advice`
  const char* stage1_advice_if_fewer = "";

  bool is_good(double value) const { return value >= least && value <= most; }
  /// @param is_stage1  the model was trained on the truth alone: no word about rollouts
  const char* advice_for(bool is_low, bool is_stage1 = false) const {
    const char* fewer = is_stage1 ? stage1_advice_if_fewer : advice_if_fewer;
    if (is_low && *fewer != '\0') return fewer;
    return is_stage1 && *stage1_advice != '\0' ? stage1_advice : advice;
  }
};

/// The ONE table of signs, in the order in which judges name them.
std::span<const Sign> signs();
/// The sign of that name, which must exist.
const Sign& sign_named(std::string_view name);

}  // namespace rematch
