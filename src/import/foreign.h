#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/output_file.h"

namespace rematch {

/// An object of an annotation file, in pixels of its image; it may extend beyond the image.
struct ForeignObject {
  std::string desc;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;    ///< box
  std::vector<std::array<double, 2>> ring;  ///< outline, if requested and a single ring; else empty
};
/// The object with the smallest box around points. @param points  at least one, [x, y]
ForeignObject box_around(const std::vector<std::array<double, 2>>& points);

/// An image and its objects.
struct ForeignImage {
  std::string path;
  int width_px = 0, height_px = 0;  ///< size in the annotation; 0 = none
  bool is_relative = false;         ///< coordinates are normalized (0..1 of the sides), not pixels
  bool lost_objects = false;        ///< the reader left objects out
  bool in_bins = false;             ///< coordinates are bins, kept unchanged, even without area
  std::string prompt;               ///< user text of this image; empty: none
  std::vector<ForeignObject> objects;
};

/// A data set of another program: splits by name, and counts of everything that was changed or left
/// out.
struct ForeignSet {
  std::map<std::string, std::vector<ForeignImage>> splits;
  std::map<std::string, int64_t> notes;  ///< e.g. "left out: crowds" → 12
  std::vector<std::string> examples;     ///< places and reasons of what was left out
  std::vector<std::string> sources;      ///< input files, which no output may replace
  InputFiles also_read{};                ///< as `sources`: files of a model

  /// True if no split has images.
  bool is_empty() const {
    return std::all_of(splits.begin(), splits.end(),
                       [](const auto& split) { return split.second.empty(); });
  }
};

/// Options for reading a data set.
struct ImportOptions {
  std::string images_dir;  ///< base of relative image names; empty: the annotations' directory
  bool polygons = false;   ///< outlines of one ring become `poly`; else only boxes
  bool upright = false;    ///< copies photos stored rotated (EXIF) upright; else leaves them out
  std::string split;       ///< name of the split; empty: guess_split()

  /// The base of relative image names in a file of annotations.
  std::string image_directory(const std::string& file) const;
  /// The split of a file of annotations.
  std::string split_name(const std::string& file) const;
};

/// Reads COCO instances: one file per split (guess_split), or a directory with these files,
/// directly or in folders train, valid and test. Crowds are left out; masks and outlines of several
/// rings become boxes.
/// @throws UserError (data) if a file is not a COCO file or repeats an id; (configuration) if two
/// files are the same split; (environment) if a file cannot be read
ForeignSet read_coco_files(const std::vector<std::string>& sources, const ImportOptions& options);

/// Reads Pascal VOC: a directory with Annotations/, JPEGImages/ and
/// ImageSets/Main/{train,val,test}.txt (without lists: one split `train`), or a directory with each
/// XML next to its image, as labelImg writes them (splits as in list_annotations).
/// @throws UserError as read_coco_files, and for a corner that is not a number or a list entry
/// without XML
ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options);

/// Reads labelMe: a directory with one JSON per image (splits as in list_annotations). Circles and
/// masks become boxes; points and lines are left out.
/// @throws UserError as read_coco_files
ForeignSet read_labelme_dir(const std::string& directory, const ImportOptions& options);

/// Reads Ultralytics YOLO: the data set's YAML with `path`, `train`, `val`, `test`, `names`, or the
/// directory with this YAML; labels are in `labels/` next to `images/`. Keypoints are left out.
/// @throws UserError as read_coco_files, and for a split without label files or labels in pixels
ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options);

/// Reads ms-swift grounding records: JSONL with `images` and `objects: {ref, bbox, bbox_type}`, one
/// file per split. The user's text becomes the record's prompt. Records without boxes (questions,
/// captions) are left out; only `"bbox": []` is an empty scene.
/// @throws UserError as read_coco_files, with the line; also for normalized coordinates declared as
/// pixels, and for boxes in the text of the answers (read_stock_files reads these)
ForeignSet read_swift_files(const std::vector<std::string>& paths, const ImportOptions& options);

/// Finds the split that a word of `name` stands for: train (training), val (valid, validation) or
/// test (testing); "" if there is none or more than one.
std::string find_split_word(const std::string& name);

/// Guesses the split of a file: find_split_word() of its name, else of its folder, else its name
/// without extension.
std::string guess_split(const std::string& path);

/// @throws UserError (configuration) if two files are the same split and `split` is not set
void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options);

/// The file written for a split.
struct WrittenSplit {
  std::string path;
  bool replaces_earlier = false;  ///< a file was there before
  int64_t num_images = 0, num_boxes = 0, num_polygons = 0;
  std::map<std::string, int64_t> classes;  ///< objects by desc
};

/// The result of write_records.
struct WrittenSet {
  std::vector<WrittenSplit> splits;
  std::map<std::string, int64_t> notes;  ///< ForeignSet::notes, and counts of changes in writing
  std::vector<std::string> examples;     ///< a few left-out images with reasons
};

/// Converts a coordinate to a bin: round(1000 · value / side), clamped to 0..999. @param side  > 0
int to_bin(double value, double side);

/// Writes `SPLIT.jsonl` for each split into `out_dir`, which is created. Image paths are relative
/// to it, sizes come from the image headers. Boxes are clipped to the image; boxes without area or
/// name and unreadable images are left out and counted. With `upright`, upright copies of rotated
/// images go to `out_dir`/upright/SPLIT. @param options  the options of the reader
/// @throws UserError (data) if a split has no usable image; (configuration) if an output would
/// replace an input, both before anything is written; (environment) if a file cannot be written
WrittenSet write_records(const ForeignSet& set, const std::string& out_dir,
                         const ImportOptions& options = {});

}  // namespace rematch
