#pragma once
#include <string>

namespace rematch {

/// A file of training records (`custom.train_jsonl`).
struct TrainFile {
  std::string path;
  double weight = 1;  ///< > 0: an epoch uses weight × records of the file

  bool operator==(const TrainFile&) const = default;
};

}  // namespace rematch
