#pragma once
#include <optional>
#include <string>

#include "base/path_from.h"
#include "learn/data/record.h"
#include "tools/import/foreign.h"

namespace rematch {

/// Makes the JSON lines of the records of a set.
class RecordMaker {
 public:
  RecordMaker(const PathFrom& path_from, const ImportOptions& options, Ledger& ledger);

  /// The line of an image; nullopt for a record that is left out, which the ledger then counts.
  std::optional<std::string> make(const ForeignImage& image, WrittenSplit& split);

 private:
  const PathFrom& path_from_;
  const ImportOptions& options_;
  Ledger& ledger_;
  ForbiddenTexts forbidden_;
};

}  // namespace rematch
