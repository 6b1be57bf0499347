#include "tools/import/marks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "learn/data/image_files.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

/// True for a number of degrees, also with a unit ("30 deg"); words such as "front" are none.
bool is_turned(const Json* angle) {
  return read_number(*angle).value_or(angle->dump().find_first_of("123456789") + 1) != 0;
}

/// True for a flag such as COCO's `iscrowd`: true, a number above 0 (OpenImages writes -1 for
/// unknown), also as text, or "yes".
bool is_set(const Json* flag) {
  constexpr const char* kYes[] = {"true", "yes", "y", "t", "on"};
  if (flag->is_boolean()) return flag->get<bool>();
  if (const std::optional<double> number = read_number(*flag)) return *number > 0;
  return flag->is_string() && is_among(flag->get<std::string>(), kYes);
}

}  // namespace

void read_marks(const Json& value, ForeignEntry& entry, Ledger& ledger) {
  const Json* holders[] = {&value, find_member(value, "attributes"), find_member(value, "flags")};
  // true if one of the members is there and fits
  const auto has = [&holders](std::initializer_list<const char*> keys, const auto& fits) {
    return std::ranges::any_of(keys, [&](const char* key) {
      return std::ranges::any_of(holders, [&](const Json* holder) {
        const Json* mark = holder == nullptr ? nullptr : find_member(*holder, key);
        return mark != nullptr && *mark != "" && fits(mark);
      });
    });
  };
  if (has({"iscrowd", "is_crowd", "isgroupof"}, is_set)) entry.skipped = kCrowd;
  if (has({"ignore"}, is_set)) entry.skipped = "objects marked to be ignored, left out";
  if (has({"difficult"}, is_set)) ledger.note("objects marked difficult, kept");
  if (has({"score", "confidence"},
          [](const Json* mark) { return read_number(*mark).value_or(1) < 1; }))
    ledger.note("objects with a score (predictions?), kept as truth");
  if (entry.box && has({"rotation", "angle", "theta"}, is_turned)) entry.reason = reason::kRotated;
}

}  // namespace rematch
