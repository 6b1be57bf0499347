#include "program/cli/check_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr int64_t kFewObjects = 30;  // too few to tell a unit

/// Tries the repair in memory and returns the command with its effect, or the reason against it.
std::string repair_advice(const Review& review, const std::string& path,
                          const RepairOptions& options, const std::string& flags) {
  try {
    const RepairedRecords trial = repair_records(path, path, options);
    const int64_t num_all = trial.num_records + trial.num_lost;
    const bool changes =
        std::any_of(trial.repairs.begin(), trial.repairs.end(), [](const auto& row) {
          return !row.first.starts_with("left out: records where") &&
                 !row.first.starts_with("left out: damaged");
        });
    const std::string& fix = trial.first_fix.empty() ? review.first_fix : trial.first_fix;
    if (trial.num_records == 0)
      return "`--fix` cannot repair it; " +
             (fix.empty() ? "correct the records by hand, or convert them with "
                            "`rematch data from-…` (docs/data.md)"
                          : fix);
    std::string kept = trial.num_lost == 0 ? ""
                                           : fmt::format(", without {} of {}", trial.num_lost,
                                                         counted(num_all, "record"));
    if (trial.num_lost > 0 && !fix.empty()) kept += "; to keep all: " + fix;
    return fmt::format("`rematch data check {} --fix OUT{}` writes a {}copy{}", shell_word(path),
                       flags, changes ? "repaired " : "", kept);
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    return fmt::format("{}: {}", error.problems().front().error, error.problems().front().fix);
  }
}

/// The unit of the numbers of a file, where they are no bins.
std::optional<CoordinateUnit> find_likely_unit(const std::string& path,
                                               const RepairOptions& options) {
  RepairOptions trial = options;
  trial.unit = CoordinateUnit::kBins;  // so that few objects are no error
  if (!trial.boxes) trial.boxes = BoxForm::kCorners;
  return repair_records(path, path, trial).likely_unit;
}

const char* unit_words(CoordinateUnit unit) {
  switch (unit) {
    case CoordinateUnit::kShares: return "look normalized (0 to 1), but bins are 0 to 999";
    case CoordinateUnit::kBins: return "look like bins with fractions, but bins are whole numbers";
    case CoordinateUnit::kPixels: break;
  }
  return "look like pixels: none exceeds its image's side, but bins go to 999 on every side";
}

}  // namespace

bool is_usable(const Review& review) {
  bool usable =
      review.num_records > 0 && !review.looks_like_pixels && !review.box_forms.is_suspicious();
  for (const FindingKind kind :
       {FindingKind::kRefused, FindingKind::kUnreadableImage, FindingKind::kWrongSize,
        FindingKind::kUnturned, FindingKind::kInverted})
    usable = usable && review.of(kind).empty();
  return usable;
}

std::string check_advice(const Review& review, const std::string& path,
                         const RepairOptions& options) {
  if (review.num_records == 0) return "training refuses it: it has no records";
  if (review.box_forms.is_suspicious() && !options.boxes)
    return wrapped(
        fmt::format(
            "fix this first: {} of {} have swapped corners; {}. Say what the numbers are: "
            "`rematch data check {} --fix OUT --boxes {}` (xywh, cxcywh, or xyxy, which puts "
            "corners in order)",
            review.box_forms.num_swapped(), counted(review.box_forms.num_boxes(), "box", "boxes"),
            review.box_forms.verdict(), shell_word(path), review.box_forms.likely_form()),
        2);
  const std::optional<CoordinateUnit> unit =
      options.unit ? std::nullopt : find_likely_unit(path, options);
  RepairOptions trial = options;
  std::string flags;
  if (unit && (*unit != CoordinateUnit::kPixels || review.num_objects < kFewObjects)) {
    trial.unit = unit;
    flags = fmt::format(" --unit {}", unit_name(*unit));
  }
  const std::string advice = repair_advice(review, path, trial, flags);
  if (unit)
    return wrapped(fmt::format("fix this first: the coordinates {}. {}", unit_words(*unit), advice),
                   2);
  return wrapped("training refuses it as it is: " + advice, 2);
}

}  // namespace rematch
