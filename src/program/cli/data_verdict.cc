#include "program/cli/data_verdict.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {

std::string find_trouble(const Review& review) {
  if (review.num_records == 0) return "training refuses it: it has no records";
  if (review.form_doubt) return "fix this first: " + review.form_doubt->why;
  if (review.unit_doubt)
    return fmt::format("fix this first: the coordinates {}", review.unit_doubt->why);
  for (const FindingKind kind :
       {FindingKind::kRefused, FindingKind::kUnreadableImage, FindingKind::kWrongSize,
        FindingKind::kUnturned, FindingKind::kInverted}) {
    if (!review.of(kind).empty()) return "training refuses it as it is";
  }
  return review.split_images.num_images > 0 ? "fix this first: " + review.split_images.text() : "";
}

std::string repair_advice(const Review& review, const std::string& path, RepairOptions options) {
  std::string flags;
  if (review.unit_doubt && !review.unit_doubt->is_sure && !options.unit) {
    options.unit = review.unit_doubt->unit;
    flags = fmt::format(" --unit {}", name_of(*options.unit));
  }
  try {
    const RepairedRecords trial = repair_records(path, path, options);
    const std::string& fix = trial.first_fix.empty() ? review.first_fix : trial.first_fix;
    if (trial.num_records == 0)
      return "`--fix` cannot repair it; " +
             (fix.empty() ? "correct the records by hand, or convert them with `rematch data "
                            "from-…` (docs/data.md)"
                          : fix);
    std::string advice =
        fmt::format("`rematch data check {} --fix OUT{}` writes a {}copy", shell_word(path), flags,
                    trial.changes.empty() ? "" : "repaired ");
    if (trial.num_lost == 0) return advice;
    advice += fmt::format(", without {} of {}", trial.num_lost,
                          counted(trial.num_records + trial.num_lost, "record"));
    return fix.empty() ? advice : advice + "; to keep all: " + fix;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    return fmt::format("{}: {}", error.problems().front().error, error.problems().front().fix);
  }
}

}  // namespace rematch
