#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/path_from.h"
#include "tools/import/check_units.h"
#include "tools/import/class_prompts.h"
#include "tools/import/foreign.h"
#include "tools/import/image_search.h"
#include "tools/import/make_record.h"
#include "tools/import/reasons.h"
#include "tools/import/usable_image.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// @throws UserError (data) with the reasons why a split has no record
[[noreturn]] void refuse_empty_split(const Ledger& before, const Ledger& after,
                                     const std::string& jsonl) {
  Losses losses;
  for (const auto& [reason, loss] : after.records()) {
    const auto earlier = before.records().find(reason);
    const int64_t count =
        loss.count - (earlier == before.records().end() ? 0 : earlier->second.count);
    if (count > 0) losses[reason] = {count, loss.first};
  }
  std::string what = Ledger::list(losses);
  for (const auto& [reason, loss] : losses) {
    if (!loss.first.empty()) what += fmt::format("; {} ({})", loss.first, reason);
  }
  throw UserError(ErrorKind::kData,
                  {.error = "no record of this split can be used",
                   .where = jsonl,
                   .what = losses.empty() ? "it has no image with box annotations" : what,
                   .fix = Ledger::fix_of(losses, "correct them, or remove this split") +
                          "; nothing has been written"});
}

/// Images with crowds only show objects that have no boxes.
void lose_crowded_images(ForeignSet& set) {
  for (auto& [split, images] : set.splits) {
    for (ForeignImage& image : images) {
      if (image.has_crowds && image.objects.empty() && image.lost.empty())
        image.leave_out(reason::kCrowdsOnly, image.where);
    }
  }
}

/// Two entries of one image would each lack the objects of the other. Equal ones are one.
void lose_repeated_images(ForeignSet& set) {
  for (auto& [split, images] : set.splits) {
    std::map<std::string, size_t> first;  // by file, in `kept`
    std::vector<ForeignImage> kept;
    for (ForeignImage& image : images) {
      const bool has_own_file =
          !image.path.empty() && !(image.defect && image.defect->reason == reason::kImageAmbiguous);
      const auto [known, is_new] =
          has_own_file
              ? first.try_emplace(fs::path(image.path).lexically_normal().string(), kept.size())
              : std::pair(first.end(), true);
      if (!is_new) {
        ForeignImage& earlier = kept[known->second];
        if (image.objects == earlier.objects && image.lost.empty() && earlier.lost.empty()) {
          set.ledger.note("entries that repeat an image with the same objects");
          continue;
        }
        for (ForeignImage* each : {&earlier, &image})
          each->leave_out(reason::kTwoEntries, each->where);
      }
      kept.push_back(std::move(image));
    }
    images = std::move(kept);
  }
}

/// The JSONL of a split.
/// @param before  the ledger with the losses of other splits
/// @param ledger  to which the maker and the chooser write
/// @throws UserError (data) if it has no usable record
std::string make_lines(const std::vector<ForeignImage>& images, std::optional<BoxForm> assumed,
                       const ImportOptions& options, RecordMaker& maker, ImageChooser& chooser,
                       const Ledger& before, const Ledger& ledger, WrittenSplit& split) {
  std::vector<std::optional<UsableImage>> usable;
  for (const ForeignImage& image : images) {
    throw_if_interrupted();
    usable.push_back(chooser.choose(image));
  }
  check_units(images, usable, assumed, options, split.path);
  std::string lines;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!usable[i]) continue;
    const std::optional<std::string> line = maker.make(images[i], *usable[i], split);
    if (!line) continue;
    lines += *line;
    ++split.num_images;
  }
  if (split.num_images == 0) {
    chooser.refuse_images(images, split.path);
    refuse_empty_split(before, ledger, split.path);
  }
  return lines;
}

/// @throws UserError (data) if something is left out
void refuse_losses(const WrittenSet& written) {
  if (!written.ledger.has_losses()) return;
  const std::vector<std::string> places = written.ledger.places();
  throw UserError(ErrorKind::kData,
                  {.error = "something cannot be read, and --strict is set",
                   .where = places.empty() ? "the data set" : places.front(),
                   .what = written.ledger.summary(written.num_records()),
                   .fix = written.ledger.fix() + ", or drop --strict; nothing has been written"});
}

}  // namespace

int64_t WrittenSet::num_records() const {
  int64_t count = 0;
  for (const WrittenSplit& split : splits) count += split.num_images;
  return count;
}

WrittenSet write_records(ForeignSet set, const std::string& out_dir, const ImportOptions& options) {
  lose_crowded_images(set);
  ImageSearch search(options.images_dir);
  find_images(set, search);
  if (!set.repeats_images) lose_repeated_images(set);
  if (options.prompt_classes) add_class_prompts(set, options);
  WrittenSet written{.splits = {}, .ledger = set.ledger};
  InputFiles inputs = set.also_read;
  for (const std::string& source : set.sources) inputs.add(source);
  for (const auto& [name, images] : set.splits) {
    written.splits.push_back({.path = (fs::path(out_dir) / (name + ".jsonl")).string()});
    for (const ForeignImage& image : images) inputs.add(image.path);
  }
  for (const WrittenSplit& split : written.splits) inputs.refuse(split.path);
  std::vector<std::string> contents;
  std::vector<TurnedCopy> copies;
  const PathFrom path_from(out_dir);
  RecordMaker maker(path_from, options, written.ledger);
  for (auto split = written.splits.begin(); const auto& [name, images] : set.splits) {
    ImageChooser chooser((fs::path(out_dir) / "upright" / name).string(), options, search,
                         written.ledger);
    const Ledger before = set.splits.size() == 1 ? Ledger{} : written.ledger;
    contents.push_back(make_lines(images, options.boxes ? std::nullopt : set.assumed_form, options,
                                  maker, chooser, before, written.ledger, *split++));
    copies.insert(copies.end(), chooser.copies().begin(), chooser.copies().end());
  }
  for (const TurnedCopy& copy : copies) inputs.refuse(copy.path);
  if (options.strict) refuse_losses(written);
  make_directories(out_dir);
  write_copies(copies);
  for (size_t i = 0; i < contents.size(); ++i)
    written.splits[i].replaces_earlier = write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
