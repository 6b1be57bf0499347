#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/output_file.h"

namespace rematch {

/// An object as an annotation tool wrote it, in pixels of its image; it may reach beyond the image.
struct ForeignObject {
  std::string desc;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< box
  /// outline, when it is wanted and one ring says it; else empty
  std::vector<std::array<double, 2>> ring;
};

/// An image and its objects.
struct ForeignImage {
  std::string path;
  int width_px = 0, height_px = 0;  ///< as the annotation says; 0 = it does not
  bool is_relative = false;         ///< coordinates are shares (0..1) of the sides, not pixels
  bool lost_objects = false;  ///< some were left out in reading: without `objects`, no empty scene
  bool in_bins = false;       ///< coordinates are bins: kept as they are, without area too
  std::string prompt;         ///< its own user text; empty: none
  std::vector<ForeignObject> objects;
};

/// A data set of another program: splits by name, and how often something could not be taken over
/// as it was.
struct ForeignSet {
  std::map<std::string, std::vector<ForeignImage>> splits;
  std::map<std::string, int64_t> notes;  ///< e.g. "left out: crowds" → 12
  std::vector<std::string> examples;     ///< what was left out, by place, and why
  std::vector<std::string> sources;      ///< files it was read from, which nothing may replace
  InputFiles also_read{};                ///< as `sources`: files of a model
};

/// Options for reading a data set.
struct ImportOptions {
  std::string images_dir;  ///< directory of relative image names; empty: that of the annotations
  bool polygons = false;   ///< outlines of one ring become `poly`; else boxes only
  bool upright = false;    ///< photos stored rotated (EXIF) are copied upright; else left out
  std::string split;       ///< name of the split; empty: as the data set says
};

/// COCO's instances: one file for each split (split_of_name), or a directory that holds them,
/// itself or in folders train, valid and test. Crowds are left out, masks and outlines of several
/// rings become their boxes.
/// @throws UserError (data) when a file is not COCO's or has an id twice; (configuration) when two
/// files are the same split; (environment) when one cannot be read
ForeignSet read_coco_files(const std::vector<std::string>& sources, const ImportOptions& options);

/// Pascal VOC: a directory with Annotations/, JPEGImages/ and ImageSets/Main/{train,val,test}.txt
/// (without lists: one split `train`), or a directory with each XML next to its image, as labelImg
/// writes them (annotation_files says which split).
/// @throws UserError as read_coco_files; a corner that is not a number is one, and a name of a list
/// without its XML
ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options);

/// labelMe: a directory with one JSON an image (annotation_files says which split). Circles and
/// masks become their boxes; points and lines are left out.
/// @throws UserError as read_coco_files
ForeignSet read_labelme_dir(const std::string& directory, const ImportOptions& options);

/// Ultralytics YOLO: the data set's YAML with `path`, `train`, `val`, `test`, `names`, or the
/// directory that holds one; labels lie in `labels/` where `images/` are. Key points are left out.
/// @throws UserError as read_coco_files; a split without any label file is one, and
/// labels in pixels
ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options);

/// ms-swift's grounding records: JSONL with `images` and `objects: {ref, bbox, bbox_type}`; one
/// file for each split. The user's text becomes the record's prompt. Records without boxes
/// (questions, captions) are left out: only `"bbox": []` says that there is nothing.
/// @throws UserError as read_coco_files, naming the line; also for a file of shares that says it
/// has pixels, and for one with boxes in the text of its answers (read_stock_files reads it)
ForeignSet read_swift_files(const std::vector<std::string>& paths, const ImportOptions& options);

/// The split named by a word of `name`: train (training), val (valid, validation) or test
/// (testing); "" without one, or with two.
std::string split_in_words(const std::string& name);

/// The split of a file: the word in its name, else in its folder's, else the file's name itself.
std::string split_of_name(const std::string& path);

/// @throws UserError (configuration) when two files are the same split and `split` is not set
void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options);

/// The files written for a split.
struct WrittenSplit {
  std::string path;
  int64_t num_images = 0, num_boxes = 0, num_polygons = 0;
  std::map<std::string, int64_t> classes;  ///< objects by desc
};

/// The result of write_records.
struct WrittenSet {
  std::vector<WrittenSplit> splits;
  std::map<std::string, int64_t> notes;  ///< those of reading, and what did not fit a record
  std::vector<std::string> examples;     ///< a few images that were left out, and why
};

/// A coordinate as a bin: min(999, round(1000 · value / side)), within the image. @param side  > 0
int bin_of(double value, double side);

/// Writes `SPLIT.jsonl` for each split into `out_dir` (created). Paths of images are relative to
/// it. Sizes come from the files' headers. Boxes are cut at the image's edge; those without area or
/// name and images that cannot be read are left out and counted. With `upright`, turned copies of
/// rotated images are written to `out_dir`/upright/SPLIT. @param options  those of reading
/// @throws UserError (data) when no image of a split is left; (configuration) when a split or a
/// copy would replace a source; both before anything is written; (environment) when a file cannot
/// be written
WrittenSet write_records(const ForeignSet& set, const std::string& out_dir,
                         const ImportOptions& options = {});

}  // namespace rematch
