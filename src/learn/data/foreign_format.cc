#include "learn/data/foreign_format.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/utf16.h"

namespace rematch {
namespace {

constexpr size_t kBeginning = size_t{1} << 20;
constexpr std::string_view kSpace = " \t\r\n";

/// The beginning of a file, without byte order mark and leading white space.
class Beginning {
 public:
  explicit Beginning(std::string_view bytes) : text_(bytes.substr(0, kBeginning)) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    text_.remove_prefix(std::min(text_.find_first_not_of(kSpace), text_.size()));
  }

  std::string_view text() const { return text_; }
  std::string_view first_line() const { return text_.substr(0, text_.find('\n')); }
  bool begins(std::string_view with) const { return text_.starts_with(with); }
  bool is_json() const { return begins("{") || begins("["); }
  bool has(std::string_view part) const { return text_.find(part) != text_.npos; }
  bool has_key(const char* name) const { return has(fmt::format("\"{}\"", name)); }

 private:
  std::string_view text_;
};

/// A format and how to recognise it. The first that fits counts.
struct Row {
  const char* name;
  bool (*fits)(const Beginning&);
  const char* command;  ///< of `rematch data`; null: none
  const char* rest;     ///< with a command: its arguments, "{}" is the file; else the fix
};

constexpr const char* kFile = "{} --out DIR";

bool is_csv(const Beginning& text) {
  const std::string_view line = text.first_line();
  return std::count(line.begin(), line.end(), ',') >= 3 && !text.is_json() &&
         line.find('{') == line.npos;
}

const Row kRows[] = {
    {"Parquet", [](const Beginning& t) { return t.begins("PAR1"); }, nullptr,
     "write images and metadata.jsonl from it (docs/data.md, \"Hugging Face\"), then run `rematch "
     "data from-hf DIR --out DIR`"},
    {"CVAT's XML",
     [](const Beginning& t) {
       return t.has("<annotations>") && (t.has("<image ") || t.has("<track "));
     },
     nullptr, "export the task again as \"COCO 1.0\", and run `rematch data from-coco`"},
    {"LabelMe's XML",
     [](const Beginning& t) { return t.has("<annotation") && t.has("<polygon>") && t.has("<pt>"); },
     nullptr, "export the task again as \"COCO 1.0\", and run `rematch data from-coco`"},
    {"a Pascal VOC annotation",
     [](const Beginning& t) { return t.begins("<") && t.has("<annotation"); }, "from-voc",
     "DIR --out DIR"},
    {"panoptic COCO",
     [](const Beginning& t) { return t.has_key("segments_info") && t.has_key("annotations"); },
     nullptr, "give the file of boxes: instances_….json"},
    {"COCO captions",
     [](const Beginning& t) {
       return t.has_key("annotations") && t.has_key("caption") && !t.has_key("bbox") &&
              !t.has_key("bbox_2d") && t.has_key("image_id");
     },
     nullptr, "give the file of boxes: instances_….json"},
    {"a labelMe annotation",
     [](const Beginning& t) { return t.has_key("shapes") && t.has_key("imagePath"); },
     "from-labelme", "DIR --out DIR"},
    {"VGG Image Annotator's project",
     [](const Beginning& t) {
       return t.has_key("_via_img_metadata") || t.has_key("shape_attributes") ||
              t.has("region_shape_attributes");
     },
     nullptr, "export the annotations again in VIA as COCO, and run `rematch data from-coco`"},
    {"Label Studio's JSON",
     [](const Beginning& t) {
       return t.is_json() && t.has_key("annotations") && t.has_key("result") && t.has_key("data");
     },
     nullptr, "export it again in COCO format, and run `rematch data from-coco`"},
    {"Label Studio's JSON-MIN",
     [](const Beginning& t) {
       return t.is_json() && (t.has_key("rectanglelabels") || t.has_key("polygonlabels") ||
                              t.has_key("brushlabels") || t.has_key("keypointlabels") ||
                              t.has_key("annotation_id") || t.has_key("original_width"));
     },
     nullptr, "export it again in COCO format, and run `rematch data from-coco`"},
    {"Label Studio's CSV",
     [](const Beginning& t) {
       return !t.is_json() && t.first_line().find("annotation_id") != std::string_view::npos;
     },
     nullptr, "export it again in COCO format, and run `rematch data from-coco`"},
    {"Labelbox's export",
     [](const Beginning& t) { return t.has_key("data_row") && t.has_key("projects"); }, nullptr,
     "convert it to COCO with Labelbox's converter, and run `rematch data from-coco`"},
    {"FiftyOne's JSON",
     [](const Beginning& t) {
       return t.is_json() &&
              (t.has_key("bounding_box") || t.has_key("samples") || t.has_key("sample_fields")) &&
              (t.has_key("detections") || t.has_key("filepath") || t.has_key("samples") ||
               t.has_key("labels") || t.has_key("media_type"));
     },
     nullptr,
     "export it again with dataset.export(…, dataset_type=fo.types.COCODetectionDataset), and run "
     "`rematch data from-coco`"},
    {"VoTT's JSON",
     [](const Beginning& t) {
       return t.is_json() && t.has_key("boundingBox") && t.has_key("tags");
     },
     nullptr, "export the project as Pascal VOC, and run `rematch data from-voc`"},
    {"a JSONL of PaliGemma or Florence",
     [](const Beginning& t) { return t.has_key("prefix") && t.has_key("suffix") && t.has("<loc"); },
     nullptr, "export the data set as COCO, and run `rematch data from-coco`"},
    {"ODVG, as Grounding DINO reads it",
     [](const Beginning& t) { return t.has_key("detection") && t.has_key("instances"); }, nullptr,
     "give the COCO annotations that it was made of to `rematch data from-coco`"},
    {"MMDetection's annotations",
     [](const Beginning& t) {
       return t.is_json() && ((t.has_key("metainfo") && t.has_key("data_list")) ||
                              (t.has_key("ann") && t.has_key("bboxes")));
     },
     nullptr, "give the COCO annotations that they were made of to `rematch data from-coco`"},
    {"CrowdHuman's odgt", [](const Beginning& t) { return t.has_key("gtboxes"); }, nullptr,
     "convert it to COCO, and run `rematch data from-coco`"},
    {"Create ML's JSON",
     [](const Beginning& t) {
       return t.begins("[") && t.has_key("coordinates") && t.has_key("annotations");
     },
     nullptr, "export the data again as COCO, and run `rematch data from-coco`"},
    {"BDD100K's labels", [](const Beginning& t) { return t.is_json() && t.has_key("box2d"); },
     nullptr, "convert them with bdd100k.label.to_coco, and run `rematch data from-coco`"},
    {"Datumaro's JSON",
     [](const Beginning& t) {
       return t.has_key("dm_format_version") || t.has_key("dm_format") ||
              (t.has_key("items") && t.has_key("categories") && t.has_key("label_id"));
     },
     nullptr,
     "convert it with `datum convert -f coco_instances`, and run `rematch data from-coco`"},
    {"Supervisely's annotations", [](const Beginning& t) { return t.has_key("classTitle"); },
     nullptr, "export the project as COCO, and run `rematch data from-coco`"},
    {"a manifest of SageMaker Ground Truth",
     [](const Beginning& t) { return t.has_key("source-ref"); }, nullptr,
     "write one row a box into a CSV (filename,xmin,ymin,xmax,ymax,class), and run `rematch data "
     "from-csv`"},
    {"Azure Custom Vision's JSON",
     [](const Beginning& t) { return t.has_key("tagName") && t.has_key("regions"); }, nullptr,
     "write one row a box into a CSV (filename,xmin,ymin,xmax,ymax,class) in pixels, and run "
     "`rematch data from-csv`"},
    {"a list of detectron2's dataset dicts",
     [](const Beginning& t) {
       return t.begins("[") && t.has_key("file_name") && t.has_key("annotations") &&
              (t.has_key("bbox_mode") || (t.has_key("bbox") && t.has_key("category_id")));
     },
     nullptr,
     "register it and write COCO: detectron2.data.datasets.convert_to_coco_json(NAME, "
     "\"coco.json\"), then run `rematch data from-coco coco.json --images DIR --out DIR`"},
    {"COCO results, which are answers of a model",
     [](const Beginning& t) {
       return t.begins("[") && t.has_key("image_id") && t.has_key("category_id") &&
              t.has_key("score");
     },
     nullptr, "give the annotations: the JSON with \"images\", \"annotations\" and \"categories\""},
    {"COCO annotations",
     [](const Beginning& t) {
       return t.is_json() && (t.has_key("annotations") || t.has_key("categories")) &&
              t.has_key("images") && !t.has_key("messages");
     },
     "from-coco", "{} --images DIR --out DIR"},
    {"ms-swift messages",
     [](const Beginning& t) {
       return t.is_json() && (t.has_key("messages") || t.has_key("query")) && t.has_key("objects");
     },
     "from-swift", kFile},
    {"conversations with boxes in the text of the answer",
     [](const Beginning& t) {
       return t.is_json() &&
              (t.has_key("conversations") || (t.has_key("messages") && t.has("bbox_2d")));
     },
     "from-qwen", kFile},
    {"ms-swift messages",
     [](const Beginning& t) {
       return t.is_json() &&
              (t.has_key("messages") || (t.has_key("query") && t.has_key("response")));
     },
     "from-swift", kFile},
    {"Ultralytics' NDJSON",
     [](const Beginning& t) {
       return t.is_json() && t.has_key("class_names") && t.has_key("task");
     },
     nullptr, "download the data set as YOLO, and run `rematch data from-yolo`"},
    {"a question and an answer in two members (Alpaca, ShareGPT, TRL or GRPO)",
     [](const Beginning& t) {
       return t.is_json() && ((t.has_key("instruction") && t.has_key("output")) ||
                              (t.has_key("human") && t.has_key("assistant")) ||
                              (t.has_key("prompt") && t.has_key("completion")) ||
                              (t.has_key("problem") && t.has_key("solution")));
     },
     nullptr,
     "write them as {\"messages\": [{\"role\": \"user\", \"content\": \"<image>…\"}, {\"role\": "
     "\"assistant\", \"content\": \"…\"}], \"images\": [path]}, and run `rematch data from-qwen`"},
    {"Hugging Face's metadata.jsonl",
     [](const Beginning& t) {
       return t.is_json() && t.has_key("objects") && !t.has_key("desc") &&
              (t.has_key("bbox") || t.has_key("boxes")) &&
              (t.has_key("file_name") || t.has_key("image") || t.has_key("image_id"));
     },
     "from-hf", kFile},
    {"a YOLO data set",
     [](const Beginning& t) { return !t.is_json() && t.has("names:") && t.has("train:"); },
     "from-yolo", kFile},
    {"a CSV", is_csv, "from-csv", kFile},
};

/// True for one JSON document in place of lines.
bool is_pretty_printed(const Beginning& text) {
  std::string_view line = text.first_line();
  while (!line.empty() && kSpace.find(line.back()) != kSpace.npos) line.remove_suffix(1);
  return text.begins("{") &&
         (line == "{" || line.ends_with(',') || line.ends_with('[') || line.ends_with('{'));
}

}  // namespace

std::optional<ForeignFormat> find_foreign_format(const std::string& path, std::string_view bytes) {
  const Beginning text(bytes);
  for (const Row& row : kRows) {
    if (!row.fits(text)) continue;
    ForeignFormat format{.name = row.name, .command = row.command == nullptr ? "" : row.command};
    format.fix = row.command == nullptr
                     ? row.rest
                     : fmt::format(
                           "run `rematch data {} {}`, then use the JSONL that it writes "
                           "(docs/data.md)",
                           row.command, fmt::format(fmt::runtime(row.rest), shell_word(path)));
    return format;
  }
  return std::nullopt;
}

void refuse_foreign_format(const std::string& path, std::string_view bytes) {
  refuse_utf16(bytes, path);
  constexpr const char* kWanted =
      "expected a JSONL with one record per line: images, objects, width, height";
  if (const std::optional<ForeignFormat> format = find_foreign_format(path, bytes))
    throw UserError(ErrorKind::kData,
                    {.error = fmt::format("this file has another format: {}", format->name),
                     .where = path,
                     .what = kWanted,
                     .fix = format->fix});
  const Beginning text(bytes);
  const bool is_array = text.begins("[");
  if (!is_array && !is_pretty_printed(text)) return;
  throw UserError(ErrorKind::kData,
                  {.error = is_array ? "this file is a JSON array, not JSON lines"
                                     : "this file is pretty-printed JSON, not JSON lines",
                   .where = path,
                   .what = kWanted,
                   .fix = fmt::format("write one record a line: jq -c {} {} > NEW.jsonl",
                                      is_array ? "'.[]'" : ".", shell_word(path))});
}

}  // namespace rematch
