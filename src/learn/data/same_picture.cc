#include "learn/data/same_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "base/content_key.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/out_of_resources.h"
#include "model/vision/upright.h"

namespace rematch {
namespace {

constexpr int kCoarse = 32, kFine = 128;         // cells along a side
constexpr int kMostCoarse = 12, kMostFine = 48;  // levels by which a cell may differ
constexpr double kMostMean = 3, kMostAspect = 1.02;

/// A picture in cells of mean grey.
struct Thumbnail {
  double aspect = 0, mean = 0;
  std::vector<uint8_t> cells;
};

Thumbnail shrink(const Image& image, int side) {
  Thumbnail small{.aspect = static_cast<double>(image.width_px) / image.height_px};
  std::vector<double> sums(side * side);
  std::vector<int64_t> counts(sums.size());
  const uint8_t* rgb = image.rgb.data();
  for (int y = 0; y < image.height_px; ++y) {
    const int64_t row = int64_t{y} * side / image.height_px;
    for (int x = 0; x < image.width_px; ++x, rgb += kNumChannels) {
      const int64_t cell = row * side + int64_t{x} * side / image.width_px;
      sums[cell] += 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      ++counts[cell];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const double grey = counts[i] > 0 ? sums[i] / static_cast<double>(counts[i]) : 0;
    small.cells.push_back(static_cast<uint8_t>(std::lround(grey)));
    small.mean += grey / static_cast<double>(sums.size());
  }
  return small;
}

/// nullopt for a file that cannot be decoded.
std::optional<Thumbnail> thumbnail_of(const std::string& path, int side) {
  try {
    return shrink(load_image(path), side);
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

bool are_alike(const Thumbnail& a, const Thumbnail& b, int most) {
  if (std::max(a.aspect, b.aspect) > kMostAspect * std::min(a.aspect, b.aspect)) return false;
  int64_t sum = 0;
  for (size_t i = 0; i < a.cells.size(); ++i) {
    const int difference = std::abs(a.cells[i] - b.cells[i]);
    if (difference > most) return false;
    sum += difference;
  }
  return static_cast<double>(sum) <= kMostMean * static_cast<double>(a.cells.size());
}

/// Pairs of files that show the same picture. Cost: every file is decoded once, candidates twice;
/// files of about the same mean grey are compared with each other.
std::vector<std::pair<size_t, size_t>> find_copies(const Strings& paths) {
  std::vector<std::pair<Thumbnail, size_t>> small;
  for (size_t i = 0; i < paths.size(); ++i) {
    throw_if_interrupted();
    if (auto thumbnail = thumbnail_of(paths[i], kCoarse))
      small.emplace_back(*std::move(thumbnail), i);
  }
  std::ranges::sort(small, {},
                    [](const auto& one) { return std::pair(one.first.mean, one.second); });
  std::vector<std::pair<size_t, size_t>> copies;
  for (size_t i = 0; i < small.size(); ++i) {
    std::optional<Thumbnail> fine;
    for (size_t j = i + 1; j < small.size(); ++j) {
      if (small[j].first.mean - small[i].first.mean > kMostMean) break;
      if (!are_alike(small[i].first, small[j].first, kMostCoarse)) continue;
      if (!fine) fine = thumbnail_of(paths[small[i].second], kFine);
      const std::optional<Thumbnail> other = thumbnail_of(paths[small[j].second], kFine);
      if (fine && other && are_alike(*fine, *other, kMostFine))
        copies.emplace_back(small[i].second, small[j].second);
    }
  }
  return copies;
}

}  // namespace

std::string roboflow_source(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const size_t mark = name.rfind(".rf."), hash = mark + 4;
  if (mark == name.npos || mark == 0) return "";
  const size_t end = std::min(name.find_first_not_of("0123456789abcdefABCDEF", hash), name.size());
  return end - hash >= 8 && end < name.size() && name[end] == '.' ? name.substr(0, mark) : "";
}

std::map<std::string, Strings> picture_texts(const std::map<std::string, std::string>& hashes) {
  std::map<std::string, Strings> texts;
  std::set<std::string> seen;
  Strings different;  // one path of each content
  for (const auto& [path, hash] : hashes) {
    texts[path] = {hash};
    if (const std::string source = roboflow_source(path); !source.empty())
      texts[path].push_back(content_hash_of("roboflow " + source));
    if (seen.insert(hash).second) different.push_back(path);
  }
  for (const auto& [a, b] : find_copies(different)) {
    const std::string& text = std::min(hashes.at(different[a]), hashes.at(different[b]));
    for (const size_t i : {a, b}) texts[different[i]].push_back(text);
  }
  return texts;
}

}  // namespace rematch
