#pragma once
#include <string>

namespace rematch {

/// Names of the links in a run directory.
inline constexpr const char* kBestLink = "best";
inline constexpr const char* kLastLink = "last";

/// A model directory that a user named.
struct NamedModel {
  std::string path;
  std::string note;  ///< names the chosen checkpoint of a run; empty if `path` is unchanged
};

/// Resolves a path that a user gave for a model: for a run directory its checkpoint `best`, else
/// `last`, else the newest; any other path unchanged and unchecked.
/// @throws UserError (data) for a run directory without a checkpoint
NamedModel find_model(const std::string& path);

}  // namespace rematch
