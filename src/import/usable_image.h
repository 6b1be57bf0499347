#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/foreign.h"
#include "vision/upright.h"

namespace rematch {

/// An image that a record can name.
struct UsableImage {
  std::string path;  ///< of the image, or of the copy that is to be written
  ImageSize size;    ///< of the picture
};

/// A copy of an image, turned upright.
struct TurnedCopy {
  std::string source, path;
};

/// Sorts out the images of a split: which can be used, and which need a copy.
class ImageChooser {
 public:
  /// @param directory  for copies; may be missing
  ImageChooser(std::string directory, const ImportOptions& options, WrittenSet& written)
      : directory_(std::move(directory)), options_(options), written_(written) {}

  /// None when the image cannot be used: it is counted, and the first ones are named.
  std::optional<UsableImage> choose(const ForeignImage& image);

  const std::vector<TurnedCopy>& copies() const { return copies_; }

  /// @throws UserError (data) naming the reason why none of `images` can be used.
  /// @param jsonl  that would be written
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
