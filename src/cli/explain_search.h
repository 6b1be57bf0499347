#pragma once
#include <string>
#include <vector>

namespace rematch {

/// A key or a metric that a search found.
struct FoundName {
  std::string name, meaning;
  bool is_metric = false;
};

/// Searches the names and meanings of all honoured keys and of all metrics for the words of a query
/// ("lr", "mAP", "batch size"), best matches first; common words of the field have entries of their
/// own.
std::vector<FoundName> search_names(const std::string& query);

/// The names nearest to a word that nothing was found for; may be empty.
std::vector<std::string> near_known_names(const std::string& query);

}  // namespace rematch
