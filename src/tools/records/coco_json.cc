#include "tools/records/coco_json.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/flow/bins.h"
#include "base/text.h"

namespace rematch {
std::array<double, 4> edges_px(const Geometry& geometry, int width_px, int height_px) {
  const Aabb box = bounding_box(geometry);
  const auto place = [](int64_t bin, int side) { return place_of(static_cast<int>(bin), side); };
  return {place(box.min_x, width_px), place(box.min_y, height_px), place(box.max_x, width_px),
          place(box.max_y, height_px)};
}

CocoBox coco_box(const Geometry& geometry, int width_px, int height_px) {
  const auto [left, top, right, bottom] = edges_px(geometry, width_px, height_px);
  return {left, top, right - left, bottom - top};
}

Json coco_result(int64_t image_id, int64_t category_id, const CocoBox& box, double score) {
  return {{"image_id", image_id}, {"category_id", category_id}, {"bbox", box}, {"score", score}};
}

CocoFile::CocoFile(const std::set<std::string>& labels) {
  for (const std::string& label : labels) {
    const int64_t id = std::ssize(ids_) + 1;
    ids_[label] = id;
    categories_.push_back(python_json({{"id", id}, {"name", label}}));
  }
}

void CocoFile::add_image(int64_t id, const std::string& path, int width_px, int height_px) {
  images_.push_back(
      python_json({{"id", id}, {"file_name", path}, {"width", width_px}, {"height", height_px}}));
}

void CocoFile::add_box(int64_t image_id, const std::string& label, const CocoBox& box,
                       std::optional<double> score) {
  Json entry{{"id", annotations_.size() + 1},     {"image_id", image_id},
             {"category_id", category_id(label)}, {"bbox", box},
             {"area", box[2] * box[3]},           {"iscrowd", 0}};
  if (score) entry["score"] = *score;
  annotations_.push_back(python_json(entry));
}

std::string CocoFile::text() const {
  std::string text =
      fmt::format("{{\"images\": [{}], \"categories\": [{}], \"annotations\": [{}]}}",
                  join(images_, ", "), join(categories_, ", "), join(annotations_, ", "));
  escape_line_ends(text);
  return text + "\n";
}

CocoIds::CocoIds(const std::string& path) : path_(path) {
  const Json json = read_json_file(path);
  images_ = read(json, "images", "file_name");
  categories_ = read(json, "categories", "name");
}

CocoIds::Entries CocoIds::read(const Json& json, const char* list, const char* name) const {
  const auto refuse = [&](const std::string& what, const std::string& fix) {
    throw data_error({.error = "this file has no ids to take",
                      .where = "--ids " + path_,
                      .what = what,
                      .fix = fix});
  };
  Entries entries;
  std::set<Json> ids;
  const Json all = json.is_object() ? json.value(list, Json()) : Json();
  for (const Json& entry : all) {
    if (!entry.is_object() || !entry.contains(name) || !entry[name].is_string() ||
        !entry.contains("id") || !entry["id"].is_number_integer())
      continue;
    const std::string key = python_strip(entry[name].get<std::string>());
    if (!ids.insert(entry["id"]).second || !entries.emplace(key, entry).second)
      refuse(fmt::format("two entries of `{}` have the id or the `{}` of {}", list, name,
                         show_json(entry)),
             "remove one of them");
  }
  if (entries.empty())
    refuse(fmt::format("no entry of `{}` has an integer `id` and a `{}`", list, name),
           "give the COCO file of these images, with images and categories");
  return entries;
}

const Json& CocoIds::image(const std::string& path) const {
  std::string end = std::filesystem::path(path).lexically_normal().string();
  for (size_t slash = 0; slash != end.npos; end.erase(0, slash + 1)) {
    if (const auto found = images_.find(end); found != images_.end()) return found->second;
    slash = end.find('/');
    if (slash == end.npos) break;
  }
  throw data_error({.error = "an image is not in the file of --ids",
                    .where = path,
                    .what = fmt::format("no `file_name` of the {} images of {} ends this path",
                                        images_.size(), path_),
                    .fix = "leave the image out, or give the COCO file that has it"});
}

int64_t CocoIds::image_id(const std::string& path) const { return image(path)["id"]; }

void CocoIds::require_size(const std::string& path, int width_px, int height_px) const {
  const Json& entry = image(path);
  for (const auto& [key, px] : {std::pair{"width", width_px}, {"height", height_px}}) {
    const Json side = entry.value(key, Json());
    if (side.is_null() || side == px || side == fmt::format("{}", px)) continue;
    throw data_error({.error = "an image has another size than in the file of --ids",
                      .where = path,
                      .what = fmt::format("{} is {} there, and the image has {} x {} px", key,
                                          show_json(side), width_px, height_px),
                      .fix = "give the images that the COCO file describes"});
  }
}

std::optional<int64_t> CocoIds::category_id(const std::string& label) const {
  const auto found = categories_.find(label);
  return found == categories_.end() ? std::nullopt
                                    : std::optional(found->second["id"].get<int64_t>());
}

}  // namespace rematch
