#include "program/cli/predict_output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/first_few.h"
#include "base/flow/object_json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/problem_list.h"
#include "model/text/lossy.h"
#include "model/vision/image.h"
#include "program/cli/standard_output.h"
#include "tools/draw/encode.h"

namespace rematch {
namespace {

constexpr int kDrawnSidePx = 1024;
constexpr size_t kLongestText = 200;  ///< bytes of a shown answer, or of a drawing's name
constexpr const char* kNoCalibration =
    "--min-score left nothing out: the checkpoint does not know what its scores are worth; "
    "`rematch eval MODEL val.jsonl` measures it";

/// @param is_shown  on a terminal, which no program reads: the text of an answer that cannot be
/// read is cut
std::string jsonl_line(const Prediction& one, bool is_shown) {
  Json json;
  json["image"] = lossy_utf8(one.path);
  if (one.unreadable) {
    json["objects"] = Json::array();
    json["status"] = "unreadable";
    json["error"] = fmt::format("{}: {}", one.unreadable->error, one.unreadable->what);
    return json_line(json);
  }
  json["width"] = one.width_px;
  json["height"] = one.height_px;
  json["objects"] = Json::array();
  for (size_t k = 0; k < one.objects.size(); ++k) {
    const SceneObject& object = one.objects[k];
    Json entry = object_json(object.desc, object.geometry);
    entry["box_px"] = edges_px(object.geometry, one.width_px, one.height_px);
    if (!one.scores.empty()) entry["score"] = one.scores[k];
    if (!one.raw_scores.empty()) entry["raw_score"] = one.raw_scores[k];
    json["objects"].push_back(std::move(entry));
  }
  json["status"] = parse_status_name(one.status);
  json["dropped_invalid"] = one.dropped_invalid;
  const std::string text = lossy_utf8(one.text);
  const bool is_cut = is_shown && one.status != ParseStatus::kComplete;
  json["text"] = is_cut ? shorten_bytes(text, kLongestText) : text;
  return json_line(json);
}

/// Leaves out the objects below a score. Does nothing without calibrated scores.
void keep_certain(Prediction& one, double min_score) {
  if (one.scores.empty()) return;
  size_t kept = 0;
  for (size_t k = 0; k < one.scores.size(); ++k) {
    if (one.scores[k] < min_score) continue;
    if (k != kept) one.objects[kept] = std::move(one.objects[k]);
    one.scores[kept] = one.scores[k];
    one.raw_scores[kept++] = one.raw_scores[k];
  }
  one.objects.resize(kept);
  one.scores.resize(kept);
  one.raw_scores.resize(kept);
}

/// Score of a COCO file, which ranks by it: the calibrated score, else the raw one, else the place
/// in the answer.
double ranking_score(const Prediction& one, size_t k) {
  if (!one.scores.empty()) return one.scores[k];
  return one.raw_scores.empty() ? 1.0 - static_cast<double>(k) / 1000.0 : one.raw_scores[k];
}

/// A COCO file of the predictions, without the images that cannot be read.
std::string coco_document(const std::vector<Prediction>& predictions) {
  std::set<std::string> labels;
  for (const Prediction& one : predictions) {
    for (const SceneObject& object : one.objects) labels.insert(object.desc);
  }
  CocoFile file(labels);
  int64_t id = 0;
  for (const Prediction& one : predictions) {
    if (one.unreadable) continue;
    file.add_image(++id, one.path, one.width_px, one.height_px);
    for (size_t k = 0; k < one.objects.size(); ++k)
      file.add_box(id, one.objects[k].desc,
                   coco_box(one.objects[k].geometry, one.width_px, one.height_px),
                   ranking_score(one, k));
  }
  return file.text();
}

/// COCO's list of results, with the ids of a COCO file.
/// @param unknown  receives the names that it does not have; their objects are left out
std::string coco_results(const std::vector<Prediction>& predictions, const CocoIds& ids,
                         std::set<std::string>& unknown) {
  Json list = Json::array();
  for (const Prediction& one : predictions) {
    for (size_t k = 0; k < one.objects.size(); ++k) {
      const SceneObject& object = one.objects[k];
      if (const std::optional<int64_t> category = ids.category_id(object.desc))
        list.push_back(coco_result(ids.image_id(one.path), *category,
                                   coco_box(object.geometry, one.width_px, one.height_px),
                                   ranking_score(one, k)));
      else
        unknown.insert(shown_label(object.desc));
    }
  }
  return json_line(list);
}

/// Path of the drawing of the image with this index. A long name is cut between two characters:
/// with what is added here it could be longer than a file's name may be.
std::string drawing_path(const std::string& directory, const std::string& image, size_t index) {
  const std::string name = std::filesystem::path(image).stem().string();
  return fmt::format("{}/{:04}_{}.png", directory, index, shorten_bytes(name, kLongestText));
}

/// A directory that is read must not fill with drawings: they would replace images, and the next
/// call would answer for them.
/// @throws UserError (configuration)
void refuse_drawing_among(const Strings& images, const std::string& directory) {
  std::set<std::string> parents;
  for (const std::string& image : images) parents.insert(parent_of(image));
  for (const std::string& parent : parents) {
    std::error_code absent;
    if (!std::filesystem::equivalent(parent, directory, absent)) continue;
    throw config_error({.error = "the drawings would lie among the images that are read",
                        .where = "--draw " + directory,
                        .what = "a drawing could replace an image, and the next call of `rematch "
                                "predict` would read the drawings",
                        .fix = "choose a directory without images of this command"});
  }
}

/// Makes the directory of the drawings.
/// @throws UserError (configuration) if one of them would replace an input
void prepare_drawings(const std::string& directory, const Strings& images,
                      const InputFiles& inputs) {
  refuse_drawing_among(images, directory);
  for (size_t i = 0; i < images.size(); ++i) inputs.refuse(drawing_path(directory, images[i], i));
  survive_closed_pipe();  // the pictures are wanted even if no one reads the answers
  make_directories(directory);
}

void draw(const Prediction& one, const std::string& path, const InputFiles& inputs,
          ClassColors& colors) {
  const Image image = load_image(one.path);
  std::vector<DrawnObject> objects;
  for (size_t k = 0; k < one.objects.size(); ++k) {
    const SceneObject& object = one.objects[k];
    objects.push_back(
        {object.geometry, scored_label(object.desc, one.scores, k), colors.of(object.desc)});
  }
  const int side = std::clamp(std::max(image.width_px, image.height_px), 256, kDrawnSidePx);
  write_output(path, inputs, encode_png(scene_panel(image, objects, side).image()));
}

/// @throws UserError (data) that lists the images without an answer
void report_unreadable(const std::vector<Prediction>& predictions) {
  ProblemList problems("the answers", "`error` of each line says what is wrong with its image");
  for (const Prediction& one : predictions) {
    if (one.unreadable) problems.add(UserError(ErrorKind::kData, *one.unreadable));
  }
  problems.throw_if_any();
}

void warn_without_scores(const std::vector<Prediction>& predictions, Terminal& terminal) {
  const bool lacks_scores = std::ranges::any_of(predictions, [](const Prediction& one) {
    return !one.objects.empty() && one.scores.empty();
  });
  if (lacks_scores) terminal.warn(kNoCalibration);
}

/// No drawing shows that an answer could not be read.
void warn_of_unread(int64_t num_unread, int64_t num_answered, Terminal& terminal) {
  if (num_unread == 0) return;
  terminal.warn(fmt::format(
      "{} of {} without an object that can be read: `status` and `text` of a line say what was "
      "written{}",
      num_unread, counted(num_answered, "answer"),
      num_unread == num_answered ? "; if it is another format, name it with --answer-format" : ""));
}

}  // namespace

PredictOutput::PredictOutput(const PredictFormat& format, const Strings& images, InputFiles inputs,
                             Terminal& terminal)
    : format_(format), inputs_(std::move(inputs)), terminal_(terminal) {
  if (!format.ids.empty()) {
    ids_.emplace(format.ids);
    inputs_.add(format.ids);
    std::map<int64_t, std::string> named;
    for (const std::string& image : images) {
      const auto [first, is_new] = named.emplace(ids_->image_id(image), image);
      if (!is_new)
        throw config_error(
            {.error = "two images have one id in the file of --ids",
             .where = image,
             .what = fmt::format("id {} is that of {} too", first->first, first->second),
             .fix = "give one of them, or directories in `file_name`"});
    }
  }
  if (!format.draw_dir.empty()) prepare_drawings(format.draw_dir, images, inputs_);
  if (!format.out.empty()) file_.emplace(format.out, inputs_);
  const bool has_terminal = ::isatty(STDOUT_FILENO) != 0;
  prints_ = !file_ && (format.draw_dir.empty() || !has_terminal);
  is_read_ = !file_ && has_terminal;
}

void PredictOutput::write(const std::string& text) {
  if (file_) file_->write(text);
  if (prints_) std::cout << text << std::flush;
}

void PredictOutput::add(Prediction one) {
  if (ids_ && !one.unreadable) ids_->require_size(one.path, one.width_px, one.height_px);
  num_unread_ += !one.unreadable && is_unread(one);
  keep_certain(one, format_.min_score);
  if (!format_.draw_dir.empty() && !one.unreadable)
    draw(one, drawing_path(format_.draw_dir, one.path, all_.size()), inputs_, colors_);
  if (format_.format == "jsonl") write(jsonl_line(one, is_read_));
  all_.push_back(std::move(one));
}

void PredictOutput::finish() {
  if (format_.min_score > 0) warn_without_scores(all_, terminal_);
  std::set<std::string> unknown;
  if (format_.format == "coco")
    write(ids_ ? coco_results(all_, *ids_, unknown) : coco_document(all_));
  if (!unknown.empty())
    terminal_.warn(fmt::format("objects with names that {} does not have are left out: {}",
                               format_.ids, first_few({unknown.begin(), unknown.end()})));
  if (file_) file_->commit();
  const auto num_answered =
      std::ranges::count_if(all_, [](const Prediction& one) { return !one.unreadable; });
  if (!format_.draw_dir.empty())
    terminal_.say(fmt::format("drew {} into {}{}", counted(num_answered, "image"), format_.draw_dir,
                              file_ || prints_ ? "" : "; --out FILE writes the answers"));
  warn_of_unread(num_unread_, num_answered, terminal_);
  report_unreadable(all_);
}

}  // namespace rematch
