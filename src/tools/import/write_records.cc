#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/import/write_steps.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// @throws UserError (data) with all losses
[[noreturn]] void refuse(const char* error, const std::string& where, const Ledger& ledger,
                         int64_t num_kept) {
  throw data_error({.error = error,
                    .where = where,
                    .what = ledger.has_losses()
                                ? ledger.summary(num_kept) + "; " + join(ledger.places(), "; ")
                                : "it has no image with box annotations",
                    .fix = ledger.fix() + "; nothing has been written"});
}

/// Two entries of one image would each lack the objects of the other. Equal ones are one.
void lose_repeated_images(ForeignSet& set) {
  for (auto& [split, images] : set.splits) {
    std::map<std::string, size_t> first;  // by file, in `kept`
    ForeignImages kept;
    for (ForeignImage& image : images) {
      const bool is_shared = image.defect && image.defect->reason == reason::kImageAmbiguous;
      // the number makes an image without a certain file differ from all others
      const std::string file = image.path.empty() || is_shared
                                   ? std::to_string(kept.size())
                                   : fs::path(image.path).lexically_normal().string();
      const auto [known, is_new] = first.try_emplace(file, kept.size());
      ForeignImage* earlier = is_new ? nullptr : &kept[known->second];
      if (!is_new && image.objects == earlier->objects && image.lost.empty() &&
          earlier->lost.empty() && image.defect.has_value() == earlier->defect.has_value()) {
        set.ledger.note("entries that repeat an image with the same objects");
        continue;
      }
      if (!is_new) earlier->leave_out(reason::kTwoEntries, earlier->where);
      if (!is_new) image.leave_out(reason::kTwoEntries, image.where);
      kept.push_back(std::move(image));
    }
    images = std::move(kept);
  }
}

}  // namespace

int64_t WrittenSet::num_records() const {
  int64_t count = 0;
  for (const WrittenSplit& split : splits) count += split.num_images;
  return count;
}

WrittenSet write_records(ForeignSet set, const std::string& out_dir, const ImportOptions& options) {
  join_images(set, options.images_dir);
  if (!set.repeats_images) lose_repeated_images(set);
  if (options.prompt_classes) add_class_prompts(set, options);
  WrittenSet written{.splits = {}, .ledger = set.ledger};
  InputFiles inputs = set.also_read;
  for (const std::string& source : set.sources) inputs.add(source);
  for (const auto& [name, images] : set.splits) {
    written.splits.push_back({.path = (fs::path(out_dir) / (name + ".jsonl"))});
    for (const ForeignImage& image : images) inputs.add(image.path);
  }
  for (const WrittenSplit& split : written.splits) inputs.refuse(split.path);
  const PathFrom path_from(out_dir);
  RecordMaker maker(path_from, options, written.ledger);
  Strings contents;
  for (auto split = written.splits.begin(); const auto& [name, images] : set.splits) {
    check_units(images, options.boxes ? std::nullopt : set.assumed_form, options, split->path);
    std::string& lines = contents.emplace_back();
    for (const ForeignImage& image : images) lines += maker.make(image, *split).value_or("");
    if (lines.empty())
      refuse("no record of this split can be used", split->path, written.ledger, 0);
    ++split;
  }
  if (options.strict && written.ledger.has_losses())
    refuse("something cannot be read, and --strict is set", out_dir, written.ledger,
           written.num_records());
  make_directories(out_dir);
  for (size_t i = 0; i < contents.size(); ++i)
    written.splits[i].replaces_earlier = write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
