#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/vision/upright.h"
#include "tools/import/foreign.h"
#include "tools/import/image_search.h"

namespace rematch {

/// An image that a record can use.
struct UsableImage {
  std::string path;  ///< the image, or its upright copy, which is written later
  ImageSize size;    ///< upright
};

/// An upright copy of an image.
struct TurnedCopy {
  std::string source, path;
};

/// Decides for each image of a split if it is usable and if it needs an upright copy.
class ImageChooser {
 public:
  /// @param directory  of the copies; need not exist
  ImageChooser(std::string directory, const ImportOptions& options, ImageSearch& search,
               Ledger& ledger)
      : directory_(std::move(directory)), options_(options), search_(search), ledger_(ledger) {}

  /// Returns nullopt for an unusable image, and counts its record as left out.
  std::optional<UsableImage> choose(const ForeignImage& image);

  const std::vector<TurnedCopy>& copies() const { return copies_; }

 private:
  std::optional<UsableImage> leave_out(const ForeignImage& image, const char* reason,
                                       const std::string& problem);
  /// The same for an image whose annotation says another size.
  std::optional<UsableImage> leave_out_size(const ForeignImage& image, const StoredImage& stored);
  /// The path of an image that is stored turned, or of the upright copy that it needs.
  std::string choose_rotated(const ForeignImage& image);
  std::string new_copy_name(const std::string& source);

  std::string directory_;
  const ImportOptions& options_;
  ImageSearch& search_;
  Ledger& ledger_;
  std::vector<TurnedCopy> copies_;
  std::set<std::string> copy_names_;
  std::unordered_map<std::string, UsableImage> known_;  // by path, with the annotated size
};

/// Writes the copies.
/// @throws UserError (environment)
void write_copies(const std::vector<TurnedCopy>& copies);

}  // namespace rematch
