#include "learn/data/foreign_keys.h"

#include <span>

namespace rematch {
namespace {

struct Advice {
  const char* key;
  const char* text;
};

constexpr const char* kImages =
    "write \"images\": [\"path/to/image.jpg\"]; for annotations of other programs run `rematch "
    "data "
    "from-coco FILE --images DIR --out DIR`, or from-voc, from-yolo, from-labelme, from-swift";
constexpr const char* kObjects =
    "write the objects as \"objects\": [{\"desc\": \"cat\", \"bbox_2d\": [x1, y1, x2, y2]}, ...] "
    "in bins 0..999; `rematch data from-coco FILE --images DIR --out DIR` converts COCO "
    "annotations";
constexpr const char* kMessages =
    "a record is an image and its objects, not a conversation: write \"images\", \"objects\", "
    "\"width\" and \"height\", and the user's text as \"prompt\"; `rematch data from-qwen FILE "
    "--out DIR` converts conversations with boxes in the text of the answer, `rematch data "
    "from-swift FILE --out DIR` converts ms-swift records with \"objects\"";
constexpr const char* kBox =
    "if its values are left, top, right and bottom, rename it to \"bbox_2d\": `rematch data check "
    "FILE --fix OUT` does it and converts pixels to bins 0..999; COCO boxes are left, top, width "
    "and height in pixels: `rematch data from-coco FILE --images DIR --out DIR` converts them";
constexpr const char* kOtherBox =
    "if its values are left, top, right and bottom, rename it to \"bbox_2d\"; `rematch data check "
    "FILE --fix OUT` then converts pixels to bins 0..999";
constexpr const char* kPoly =
    "if its values are [x, y] pairs of one outline, rename it to \"poly\"; `rematch data check "
    "FILE --fix OUT` then converts pixels to bins 0..999; for COCO files run `rematch data "
    "from-coco FILE --images DIR --out DIR --polygons`";
constexpr const char* kDesc = "rename it to \"desc\": `rematch data check FILE --fix OUT` does it";

constexpr Advice kRecordAdvice[] = {
    {"image", kImages},        {"file_name", kImages},      {"image_path", kImages},
    {"annotations", kObjects}, {"boxes", kObjects},         {"bboxes", kObjects},
    {"bbox", kObjects},        {"bbox_2d", kObjects},       {"labels", kObjects},
    {"messages", kMessages},   {"conversations", kMessages}};
constexpr Advice kObjectAdvice[] = {
    {"bbox", kBox},     {"box", kOtherBox}, {"bndbox", kOtherBox}, {"segmentation", kPoly},
    {"polygon", kPoly}, {"points", kPoly},  {"label", kDesc},      {"category", kDesc},
    {"name", kDesc},    {"class", kDesc},   {"caption", kDesc},    {"description", kDesc}};

const char* find_advice(std::span<const Advice> table, std::string_view key) {
  for (const Advice& row : table) {
    if (key == row.key) return row.text;
  }
  return nullptr;
}

}  // namespace

const char* advice_for_record_key(std::string_view key) { return find_advice(kRecordAdvice, key); }
const char* advice_for_object_key(std::string_view key) { return find_advice(kObjectAdvice, key); }

}  // namespace rematch
