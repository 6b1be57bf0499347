// `rematch data show`: a sheet of images with their objects.
#include "cli/cmd_data_show.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/keep_source.h"
#include "base/terminal_text.h"
#include "data/dataset.h"
#include "draw/encode.h"
#include "draw/panel.h"

namespace rematch {
namespace {

constexpr int64_t kMegapixel = 1'000'000, kMaxSheetPixels = 200 * kMegapixel;

struct ShowArguments {
  std::string path, out;
  int count = 12, columns = 4, panel_px = 360;
};

/// All panels are in memory at once, and the sheet is as large again.
void check_sheet_size(int64_t count, int panel_px) {
  const int64_t pixels = count * panel_px * panel_px;
  if (pixels <= kMaxSheetPixels) return;
  throw UserError(
      ErrorKind::kConfig,
      {.error = "the sheet would be too large",
       .where = fmt::format("--count and --size: {} of up to {} x {} px", counted(count, "image"),
                            panel_px, panel_px),
       .what = fmt::format("{} megapixels, of at most {}", pixels / kMegapixel,
                           kMaxSheetPixels / kMegapixel),
       .fix = fmt::format("lower --size to {} or --count to {}",
                          static_cast<int>(std::sqrt(static_cast<double>(kMaxSheetPixels) /
                                                     static_cast<double>(count))),
                          kMaxSheetPixels / (int64_t{panel_px} * panel_px))});
}

int run_data_show(const ShowArguments& arguments) {
  const Dataset dataset =
      Dataset::load(arguments.path, {.require_single_image = false, .check_image_files = false});
  keep_source(arguments.path, arguments.out);
  for (const Sample& sample : dataset.samples()) {
    for (const std::string& image : sample.image_paths) keep_source(image, arguments.out);
  }
  const auto count = std::min<int64_t>(arguments.count, dataset.size());
  check_sheet_size(count, arguments.panel_px);
  std::vector<std::pair<std::string, Canvas>> panels;
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = dataset.samples()[static_cast<size_t>(i * dataset.size() / count)];
    std::vector<DrawnObject> objects;
    for (const SceneObject& object : sample.objects)
      objects.push_back({object.geometry, object.desc, kTruthColor});
    const std::string& path = sample.image_paths.front();
    const std::string caption =
        fmt::format("line {}: {}, {} x {}", sample.sample_id + 1, path.substr(path.rfind('/') + 1),
                    sample.width_px, sample.height_px);
    try {
      panels.emplace_back(caption, scene_panel(load_image(path), objects, arguments.panel_px));
    } catch (const UserError& error) {
      panels.emplace_back(caption, blank_panel(error.problems().front().error, arguments.panel_px));
    }
  }
  write_file_atomic(arguments.out, encode_png(sheet_of(panels, arguments.columns).image()));
  std::cout << fmt::format("wrote {}: {} of {} records\n", arguments.out, count, dataset.size());
  return 0;
}

}  // namespace

Command add_data_show(CLI::App& data) {
  CLI::App* app =
      data.add_subcommand("show", "a sheet of images with their labelled boxes and polygons");
  const auto arguments = std::make_shared<ShowArguments>();
  app->add_option("JSONL", arguments->path, "records as training reads them")->required();
  app->add_option("--out", arguments->out, "PNG file to write")->required();
  app->add_option("--count", arguments->count, "images, evenly spaced over the file")
      ->capture_default_str()
      ->check(CLI::Range(1, 400));
  app->add_option("--columns", arguments->columns, "images in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  app->add_option("--size", arguments->panel_px, "longer side of an image on the sheet, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(64, 2000));
  app->footer(
      "Examples:\n  rematch data show data/train.jsonl --out sheet.png\n  rematch data show "
      "data/val.jsonl --out big.png --count 4 "
      "--columns 2 --size 900");
  return {app, [arguments] { return run_data_show(*arguments); }};
}

}  // namespace rematch
