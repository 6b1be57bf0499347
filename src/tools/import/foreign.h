#pragma once
#include "base/flow/bins.h"
#include "base/flow/box_form.h"
#include "base/output_file.h"
#include "learn/data/stock_answer.h"
#include "tools/import/class_names.h"
#include "tools/import/ledger.h"
#include "tools/import/values.h"

namespace rematch {

/// An object of an annotation file; it may extend beyond the image.
struct ForeignObject {
  std::string desc;                       ///< empty: ImportOptions::label stands for it
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< box
  Outline ring = {};                      ///< outline, if requested and a single ring

  bool operator==(const ForeignObject&) const = default;
};

/// An object as a form has it; ForeignImage::add() decides what becomes of it.
struct ForeignEntry {
  std::string place;                              ///< "FILE:7: entry 2: …"
  std::optional<std::string> name = "";           ///< nullopt: of a class without a name
  std::optional<std::array<double, 4>> box = {};  ///< in the order of `form`
  BoxForm form = BoxForm::kCorners;               ///< unless ImportOptions::boxes says another
  std::vector<Outline> rings = {};                ///< an outline; an empty one is unreadable
  std::string reason = {};                        ///< why it cannot be read; empty: it can
  const char* skipped = nullptr;                  ///< the note of a region that is no object
};

/// An object or a record that cannot be read.
struct LostObject {
  std::string reason;  ///< as in reasons.h
  std::string place;   ///< "FILE:7: entry 2: …"
};

struct ForeignSet;

/// Unit of the coordinates of an image.
enum class CoordUnit {
  kPixels,  ///< of the image as annotated
  kShares,  ///< 0..1 of the sides
  kAnswer,  ///< as ImportOptions::scale says; never beyond the sides
};

/// An image and its objects.
struct ForeignImage {
  std::string name;       ///< as written
  std::string directory;  ///< of the file that names it
  std::string stem = {};  ///< name, without extension, of an annotation file for this image alone
  std::string where;      ///< "FILE:7", for what is left out
  int width_px = 0, height_px = 0;  ///< size in the annotation; 0 = none, of either side
  CoordUnit unit = CoordUnit::kPixels;
  std::string prompt = {};  ///< user text of this image; empty: none
  std::string extra = {};   ///< JSON object with the members `summary` and `metadata`; empty: none
  std::vector<ForeignObject> objects = {};
  std::vector<LostObject> lost = {};      ///< leave out the record, or are left out of it
  std::optional<LostObject> defect = {};  ///< leaves out the record, whatever else it has
  bool has_pixels = false;                ///< its record holds the image itself (base64)
  bool has_crowds = false;                ///< regions that are no objects
  Strings doubtful = {};                  ///< classes that it may show without objects; "": any
  bool is_partial = false;                ///< it may show any class without objects (LVIS)
  // what join_images() fills in
  std::string path = {};  ///< of the image file; empty: not found
  ImageSize size = {};    ///< of the file, as viewers show it
  std::string split = {};

  /// Takes the sides that a row or record states, as numbers or texts; null, an empty text and
  /// numbers below 1 state none. All of them are compared with each other here, and with the image
  /// file later; a record with a side that is not a number is left out.
  void state_size(const Json& width, const Json& height);
  /// Adds an object, or counts it as lost or as a region that may show its class.
  void add(const ForeignEntry& entry, ForeignSet& set);
  void lose(const std::string& reason, const std::string& place) {
    lost.push_back({reason, place});
  }
  void leave_out(const std::string& reason, const std::string& place) {
    if (!defect) defect = {reason, place};
  }
};

using ForeignImages = std::vector<ForeignImage>;

/// Options for reading and writing a data set.
struct ImportOptions {
  std::string images_dir;         ///< where images are looked for; empty: near the annotations
  bool polygons = false;          ///< outlines of one ring become `poly`; else only boxes
  std::string split;              ///< name of the split; empty: guess_split()
  std::string label;              ///< name of objects that have none
  std::string label_from_prompt;  ///< e.g. "Locate {} in": the name is in the question
  Strings empty_answers;          ///< answers that mean "no object"
  bool missing_labels_are_empty = false;  ///< YOLO: an image without a label file shows nothing
  bool drop_unreadable = false;           ///< keeps records without their unreadable objects
  bool strict = false;                    ///< leaving something out is an error
  std::string names;                      ///< class names: "cat,dog", or a file with one a line
  std::optional<BoxForm> boxes;           ///< meaning of four numbers; unset: what the format says
  StockScale scale;                       ///< unit of the numbers in answers
  std::string usual_text;                 ///< user text that records omit from `prompt`
  bool prompt_classes = false;            ///< lists class names in the prompt (write_steps.h)
  double negatives = 0;  ///< share of the listed names that the image does not show
};

/// A data set of another program: splits by name, and counts of everything that was changed or left
/// out.
struct ForeignSet {
  std::map<std::string, ForeignImages> splits;
  Ledger ledger;
  Strings sources;              ///< input files, which no output may replace
  InputFiles also_read{};       ///< as `sources`: files of a model
  Strings classes;              ///< in the order of the file; empty: the names that occur
  bool repeats_images = false;  ///< conversations: an image may have several records
  std::optional<BoxForm> assumed_form = {};  ///< of four numbers, where no format or option says it
  ImportOptions options = {};                ///< of reading and writing it
  NamesById names = {};                      ///< ImportOptions::names, or those of the data set
};

/// Reads COCO instances: one file per split (guess_split), or a directory with these files,
/// directly or in folders train, valid and test.
/// @throws UserError (data) if a file is not a COCO file; (configuration) if two files are the same
/// split; (environment) if a file cannot be read
ForeignSet read_coco_files(const Strings& sources, const ImportOptions& options);

/// Reads Pascal VOC: a directory with a folder of XML files, one of images and
/// ImageSets/Main/{train,val,test}.txt (without lists: one split `train`), or a directory with each
/// XML next to its image, as labelImg writes them (splits as in find_files).
/// @throws UserError as read_coco_files
ForeignSet read_voc_dir(const Strings& directory, const ImportOptions& options);

/// Reads labelMe: a directory with one JSON per image (splits as in find_files).
/// @throws UserError as read_coco_files
ForeignSet read_labelme_dir(const Strings& directory, const ImportOptions& options);

/// Reads Ultralytics YOLO: the data set's YAML with `path`, `train`, `val`, `test`, `names`, the
/// directory with this YAML, or a directory of images and label files with `options.names` or a
/// classes.txt.
/// @throws UserError as read_coco_files, and for a split without label files or labels in pixels
ForeignSet read_yolo_set(const Strings& yaml_or_directory, const ImportOptions& options);

/// Reads conversations with boxes: `messages` or `conversations` in a JSON array
/// or JSON lines, one file per split. Each answer becomes a record with its question as prompt.
/// Boxes are in the text of the answer, or in ms-swift's `objects`, for which the text has
/// placeholders.
/// @throws UserError as read_coco_files
ForeignSet read_chat_files(const Strings& sources, const ImportOptions& options);

/// Reads CSV files with one box a row: columns of TensorFlow's tutorials, OpenImages and others,
/// one file per split.
/// @throws UserError as read_coco_files
ForeignSet read_csv_files(const Strings& sources, const ImportOptions& options);

/// Reads metadata.jsonl of Hugging Face's imagefolder: `file_name` and `objects` with lists of
/// boxes (x, y, width, height) and categories; one file per split, or a directory as for COCO.
/// @throws UserError as read_coco_files
ForeignSet read_hf_files(const Strings& sources, const ImportOptions& options);

/// Finds the split that a word of `name` stands for: train (training), val (valid, validation) or
/// test (testing); "" if there is none or more than one.
std::string find_split_word(const std::string& name);

/// Guesses the split of a file: find_split_word() of its name, else of its folder, else its name
/// without extension.
std::string guess_split(const std::string& path);

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
  Ledger ledger;  ///< that of the set, and what was changed in writing

  int64_t num_records() const;
};

/// Writes `SPLIT.jsonl` for each split into `out_dir`, which is created. Image paths are relative
/// to it, sizes come from the image headers. Geometries are clipped to the image. A record with an
/// object that cannot be written is left out; with `drop_unreadable` it is written without it,
/// unless no object is left.
/// @throws UserError (data) if a split has no usable record, if the numbers are in another unit, or
/// with `strict` if something is left out; (configuration) if an output would replace an input; all
/// before anything is written; (environment) if a file cannot be written
WrittenSet write_records(ForeignSet set, const std::string& out_dir);

}  // namespace rematch
