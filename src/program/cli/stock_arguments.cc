#include "program/cli/stock_arguments.h"

#include "learn/estep/answer/answer_format.h"
#include "model/vision/patches.h"

namespace rematch {
namespace {

constexpr const char* kScaleHelp =
    "unit of the coordinates. relative: 0..1000 of the image's side (Qwen3-VL, Qwen3.5). pixels: "
    "pixels of the resized image, which is what Qwen2.5-VL sees and answers in: both sides are "
    "rounded to multiples of 28 and the area is kept within 3136 and 12845056 pixels, unless "
    "--model says otherwise. file-pixels: pixels of the image file. normalized: 0..1 of the side, "
    "only read";

}  // namespace

std::string usual_stock_text() {
  return answer_formats().find("qwen_json").built_in_prompt({}).user;
}

void add_stock_options(CLI::App& app, StockArguments& arguments, const char* prompt_help,
                       bool reads) {
  Strings units = {"relative", "pixels", "file-pixels"};
  if (reads) units.push_back("normalized");
  app.add_option("--scale", arguments.scale, kScaleHelp)
      ->default_str("relative")
      ->check(CLI::IsMember(units));
  app.add_option("--model", arguments.model_dir,
                 "model directory whose image processor resizes, for --scale pixels");
  app.add_option("--prompt", arguments.usual_text, prompt_help)->capture_default_str();
}

StockScale scale_of(const StockArguments& arguments) {
  StockScale scale{.is_assumed = arguments.scale.empty()};
  if (arguments.scale == "normalized") scale.unit = StockScale::Unit::kShares;
  if (arguments.scale == "pixels") scale.unit = StockScale::Unit::kResizedPixels;
  if (arguments.scale == "file-pixels") scale.unit = StockScale::Unit::kFilePixels;
  if (arguments.model_dir.empty()) return scale;
  const PatchOptions patches = PatchOptions::from_model_dir(arguments.model_dir);
  if (scale.unit == StockScale::Unit::kResizedPixels && !patches.do_resize)
    scale.unit = StockScale::Unit::kFilePixels;
  scale.resize = {.side_multiple_px = patches.side_multiple_px(),
                  .min_pixels = patches.min_pixels,
                  .max_pixels = patches.max_pixels};
  return scale;
}

}  // namespace rematch
