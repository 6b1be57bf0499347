#include "program/cli/augment_choice.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "program/config/config.h"

namespace rematch {
namespace {

AugmentSettings settings_of(const std::string& text) {
  std::vector<std::string> overrides;
  for (const std::string& item : split(text, ',')) overrides.push_back("data.augment." + item);
  return read_settings(overrides).augment;
}

}  // namespace

AugmentChoice read_augment_choice(const std::string& text) {
  AugmentChoice choice;
  if (text.empty()) return choice;
  if (text.find('=') != std::string::npos) {
    choice.settings = settings_of(text);
  } else {
    ConfigResult config = load_config(text);
    const Settings& settings = config.settings;
    choice = {.settings = settings.augment,
              .seed = settings.seed,
              .files = std::move(config.files),
              .train_files = settings.data.train_files,
              .train_sample_limit = settings.data.train_sample_limit};
  }
  if (choice.settings.is_on()) return choice;
  throw UserError(ErrorKind::kConfig,
                  {.error = "there is no augmentation to show",
                   .where = "--augment",
                   .what = text + " switches nothing on",
                   .fix = "give values, such as `--augment hflip=0.5,crop=0.5,color=0.2`, or a "
                          "configuration with `data.augment`"});
}

}  // namespace rematch
