// `rematch data show`: a sheet of images with their objects.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/augment/augmentation.h"
#include "learn/data/dataset.h"
#include "learn/data/order_score.h"
#include "learn/data/ordering.h"
#include "learn/data/records_path.h"
#include "program/cli/arguments.h"
#include "program/cli/data_commands.h"
#include "program/cli/standard_output.h"
#include "program/config/config.h"
#include "tools/draw/encode.h"
#include "tools/draw/panel.h"
#include "tools/records/record_file.h"
#include "tools/report/evaluated_sample.h"

namespace rematch {
namespace {

constexpr int64_t kMegapixel = 1'000'000, kMaxSheetPixels = 200 * kMegapixel;

struct ShowArguments {
  std::string path, out, augment;
  int count = 12, columns = 4, panel_px = 360, draws = 1;
};

/// All panels are in memory at once, and the sheet is as large again.
void check_sheet_size(int64_t count, int panel_px) {
  const int64_t pixels = count * panel_px * panel_px;
  if (pixels <= kMaxSheetPixels) return;
  throw config_error({.error = "the sheet would be too large",
                      .where = fmt::format("--count and --size: {} of up to {} x {} px",
                                           counted(count, "image"), panel_px, panel_px),
                      .what = fmt::format("{} megapixels, of at most {}", pixels / kMegapixel,
                                          kMaxSheetPixels / kMegapixel),
                      .fix = "lower --size or --count"});
}

/// Reads `--augment`: a configuration file (its `data.augment`, `custom.absent_classes`,
/// `custom.object_ordering`, `training.seed` and files count), or values such as
/// `hflip=0.5,crop=0.5,color=0.2`. Empty: off.
/// @throws UserError (config) as the keys of a configuration
ConfigResult read_augment(const std::string& text, const std::string& records) {
  if (text.empty()) return {};
  Strings values = split(text, ',');
  for (std::string& value : values) value = "data.augment." + value;
  Settings base;  // the keys that every configuration has
  base.model.directory = "/";
  base.data.train_files = {{.path = records}};
  return text.find('=') == std::string::npos ? load_config(text) : load_config("", values, 1, base);
}

std::string describe(const ObjectOrder& order) {
  if (order.own != nullptr) return order_text(*order.own);
  if (order.kind == ObjectOrdering::kRandom) return "random";
  return order.kind == ObjectOrdering::kOwn ? "from the top until training learns its own"
                                            : "from the top";
}

/// The records of a file with the ids and the class names that they have in a training: ids
/// continue from file to file, and decide the draws.
std::vector<Sample> read_samples(const std::string& path, const Settings& settings) {
  const auto load = [](const std::string& file, std::optional<int64_t> limit) {
    return Dataset::load(
        file, {.limit = limit, .require_single_image = false, .check_image_files = false});
  };
  Dataset shown = load(path, std::nullopt);
  Terminal::standard()->warn_all(shown.warnings());
  std::vector<Dataset> files;
  std::optional<size_t> place;
  for (const TrainFile& file : settings.data.train_files) {
    std::error_code error;
    const bool is_shown = std::filesystem::equivalent(file.path, path, error);
    if (is_shown) place = files.size();
    files.push_back(is_shown ? shown : load(file.path, settings.data.train_sample_limit));
    if (place && settings.augment.absent_share == 0) break;
  }
  if (!place) files = {std::move(shown)};
  const std::vector<double> weights(files.size(), 1.0);
  Dataset all = Dataset::mix(std::move(files), weights);
  if (settings.augment.absent_share > 0) all.offer_classes();
  const MixturePart& part = all.parts()[place.value_or(0)];
  return {all.samples().begin() + part.begin, all.samples().begin() + part.end};
}

std::string caption_of(const Sample& sample) {
  const std::string& path = sample.image_paths.front();
  std::string text =
      fmt::format("line {}: {}, {} x {}", sample.where.substr(sample.where.rfind(':') + 1),
                  path.substr(path.rfind('/') + 1), sample.width_px, sample.height_px);
  const auto& crop = sample.change.crop_px;
  if (sample.change.is_mirrored()) text += ", mirrored";
  if (sample.change.is_upside_down()) text += ", upside down";
  if (const int quarters = sample.change.num_quarter_turns(); quarters > 0)
    text += fmt::format(", turned by {}", 90 * quarters);
  if (sample.change.has_crop())
    text += fmt::format(", {} x {} at {},{}", crop[2], crop[3], crop[0], crop[1]);
  if (!sample.drawn_names.empty()) text += ", absent: " + join(sample.drawn_names, ", ");
  return text;
}

/// @param numbered  the objects get numbers, in their order
Canvas panel_of(const Sample& sample, int panel_px, bool numbered, ClassColors& colors) {
  std::vector<DrawnObject> objects;
  for (int place = 1; const SceneObject& object : sample.objects) {
    const std::string number = numbered ? fmt::format("{} ", place++) : "";
    objects.push_back({object.geometry, number + object.desc, colors.of(object.desc)});
  }
  try {
    Image image = load_image(sample.image_paths.front());
    change_image(image, sample.change);
    return scene_panel(image, objects, panel_px);
  } catch (const UserError& error) {
    return blank_panel(error.problems().front().error, panel_px);
  }
}

int run_data_show(const ShowArguments& arguments) {
  const ConfigResult config = read_augment(arguments.augment, arguments.path);
  const Settings& settings = config.settings;
  require_records_file(arguments.path);
  const std::vector<Sample> samples = read_samples(arguments.path, settings);
  InputFiles inputs{arguments.path};
  for (const std::string& path : config.files) inputs.add(path);
  add_images(inputs, samples);
  inputs.refuse(arguments.out);
  OutputFile file(arguments.out, inputs);
  const std::vector<size_t> chosen = evenly_spaced_indices(samples.size(), arguments.count);
  check_sheet_size(std::ssize(chosen) * arguments.draws, arguments.panel_px);
  const bool numbered = !arguments.augment.empty();
  const ObjectOrder order(settings.data.object_ordering,
                          stored_order(settings.data, settings.model.directory));
  std::vector<std::pair<std::string, Canvas>> panels;
  ClassColors colors;
  std::set<std::string> hollow;  // names with characters that the font lacks
  for (const size_t i : chosen) {
    const Sample& sample = samples[i];
    for (int epoch = 0; epoch < arguments.draws; ++epoch) {
      Sample shown = augment_sample(sample, settings.augment, settings.seed, epoch);
      if (numbered) shown.objects = order_objects(shown, order, settings.seed, epoch);
      panels.emplace_back(caption_of(shown), panel_of(shown, arguments.panel_px, numbered, colors));
      for (const SceneObject& object : shown.objects) {
        if (!has_glyphs(object.desc)) hollow.insert(object.desc);
      }
    }
  }
  file.write(encode_png(sheet_of(panels, arguments.columns).image()));
  file.commit();
  print("wrote {}: {} of {} records\n", arguments.out, chosen.size(), samples.size());
  if (numbered) std::cout << wrapped("numbers: " + describe(order) + "\n", 2);
  if (!hollow.empty())
    std::cout << wrapped("the built-in font lacks characters of " +
                             counted(std::ssize(hollow), "name") + ", drawn as hollow boxes (" +
                             printable(*hollow.begin()) + (hollow.size() > 1 ? ", …" : "") +
                             "); the records are right\n",
                         2);
  return 0;
}

}  // namespace

Command add_data_show(CLI::App& data) {
  const auto [command, app, arguments] = make_command(
      data, "show", "a sheet of images with their labelled boxes and polygons", run_data_show,
      {"data/train.jsonl --out sheet.png",
       "data/val.jsonl --out big.png --count 4 --columns 2 --size 900",
       "data/train.jsonl --out augmented.png --augment train.yaml --draws 4"});
  app.add_option("JSONL", arguments.path, "records as training reads them")->required();
  app.add_option("--out", arguments.out, "PNG file to write")
      ->required()
      ->check(file_ending(".png"));
  app.add_option("--count", arguments.count, "images, evenly spaced over the file")
      ->capture_default_str()
      ->check(CLI::Range(1, 400));
  app.add_option("--columns", arguments.columns, "images in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  app.add_option("--size", arguments.panel_px, "longer side of an image on the sheet, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(64, 2000));
  CLI::Option* augment = app.add_option(
      "--augment", arguments.augment,
      "pictures as training shows them, objects numbered in its order: a configuration, or values "
      "of data.augment such as hflip=0.5,crop=0.5,color=0.2");
  app.add_option("--draws", arguments.draws,
                 "with --augment: pictures of each record, one an epoch from the first")
      ->capture_default_str()
      ->needs(augment)
      ->check(CLI::Range(1, 100));
  return command;
}

}  // namespace rematch
