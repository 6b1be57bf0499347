#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/foreign.h"
#include "vision/upright.h"

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
  ImageChooser(std::string directory, const ImportOptions& options, WrittenSet& written)
      : directory_(std::move(directory)), options_(options), written_(written) {}

  /// Returns nullopt for an unusable image, counts it, and keeps the first ones as examples.
  std::optional<UsableImage> choose(const ForeignImage& image);

  const std::vector<TurnedCopy>& copies() const { return copies_; }

  /// @throws UserError (data) with the reason why none of `images` is usable.
  /// @param jsonl  the output file
  [[noreturn]] void refuse_split(const std::vector<ForeignImage>& images,
                                 const std::string& jsonl) const;

 private:
  std::optional<UsableImage> leave_out(const ForeignImage& image, const std::string& note,
                                       const std::string& problem);
  std::optional<UsableImage> choose_rotated(const ForeignImage& image, const StoredImage& stored);
  std::string new_copy_name(const std::string& source);

  std::string directory_;
  const ImportOptions& options_;
  WrittenSet& written_;
  std::vector<TurnedCopy> copies_;
  std::set<std::string> copy_names_;
  std::string last_problem_;
  int64_t num_missing_ = 0, num_rotated_ = 0;
};

/// Writes the copies. @throws UserError (environment)
void write_copies(const std::vector<TurnedCopy>& copies);

}  // namespace rematch
