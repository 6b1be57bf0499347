#include "tools/records/split.h"
#include "learn/data/same_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/terminal_text.h"
#include "learn/data/problem_list.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

using Hashes = std::vector<Strings>;

// Separates this random stream from others with the same seed.
constexpr uint64_t kSplitStream = 0x73706C6974ULL;

/// Groups of records connected by common images (union-find).
class Groups {
 public:
  explicit Groups(const Hashes& hashes) : parents_(hashes.size()) {
    std::iota(parents_.begin(), parents_.end(), size_t{0});
    std::unordered_map<std::string, size_t> first;
    for (size_t i = 0; i < hashes.size(); ++i) {
      for (const std::string& hash : hashes[i]) join(i, first.try_emplace(hash, i).first->second);
    }
  }

  /// The representative record of record i's group.
  size_t root(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

 private:
  void join(size_t a, size_t b) { parents_[root(a)] = root(b); }

  std::vector<size_t> parents_;
};

struct Group {
  uint64_t rank = 0;
  std::string smallest;  ///< smallest image hash
  std::vector<size_t> records;
};

/// Draws a random order of the groups.
std::vector<Group> draw_groups(const Hashes& hashes, uint64_t seed) {
  Groups groups(hashes);
  std::map<size_t, Group> by_root;
  for (size_t i = 0; i < hashes.size(); ++i) {
    Group& group = by_root[groups.root(i)];
    group.records.push_back(i);
    const std::string& hash = *std::ranges::min_element(hashes[i]);
    if (group.smallest.empty() || hash < group.smallest) group.smallest = hash;
  }
  std::vector<Group> drawn;
  for (auto& [root, group] : by_root) {
    group.rank = random_key(kSplitStream, seed, std::stoull(group.smallest, nullptr, 16));
    drawn.push_back(std::move(group));
  }
  std::ranges::sort(drawn, {},
                    [](const Group& group) { return std::pair(group.rank, group.smallest); });
  return drawn;
}

/// Content hashes of the images of records, by path.
std::map<std::string, std::string> hash_images(const std::vector<Sample>& samples) {
  std::map<std::string, std::string> hashes;
  for (const Sample& sample : samples) {
    for (const std::string& path : sample.image_paths) {
      const auto [known, is_new] = hashes.try_emplace(path);
      if (!is_new) continue;
      try {
        known->second = content_hash_of(MappedFile(path).bytes());
      } catch (const UserError& error) {
        throw with_record(error, sample.where);
      }
    }
  }
  return hashes;
}

/// Number of records that share a picture with an earlier one.
int64_t count_repeats(const Hashes& pictures) {
  int64_t num_repeats = 0;
  std::set<std::string> seen;
  for (const Strings& texts : pictures) {
    num_repeats +=
        std::ranges::any_of(texts, [&](const std::string& text) { return seen.contains(text); });
    seen.insert(texts.begin(), texts.end());
  }
  return num_repeats;
}

void check_share(double share) {
  if (share > 0 && share < 1) return;
  throw config_error({.error = "the share of validation records is out of range",
                      .where = "--val",
                      .what = fmt::format("{}", share),
                      .fix = "set a number between 0 and 1, e.g. --val 0.1"});
}

std::string part_path(const std::string& path, const std::string& out_dir, const char* name) {
  const fs::path file(path);
  const fs::path directory = out_dir.empty() ? file.parent_path() : fs::path(out_dir);
  return (directory / fmt::format("{}-{}.jsonl", file.stem().string(), name)).string();
}

}  // namespace

std::vector<bool> choose_val(const Hashes& image_hashes, const SplitOptions& options,
                             const std::string& where) {
  const std::vector<Group> groups = draw_groups(image_hashes, options.seed);
  if (groups.size() < 2) {
    throw data_error({.error = "the file cannot be split",
                      .where = where,
                      .what = fmt::format("{}, all connected by common images",
                                          counted(std::ssize(image_hashes), "record")),
                      .fix = "use records of different images"});
  }
  const auto num_records = static_cast<double>(image_hashes.size());
  const auto wanted =
      std::max<size_t>(1, static_cast<size_t>(std::llround(options.val_share * num_records)));
  std::vector<bool> is_val(image_hashes.size());
  size_t num_val = 0, num_groups = 0;
  for (const Group& group : groups) {
    if (num_val + group.records.size() > wanted || num_groups + 1 == groups.size()) continue;
    for (const size_t i : group.records) is_val[i] = true;
    num_val += group.records.size();
    ++num_groups;
  }
  if (num_val > 0) return is_val;
  // Every group exceeds the share: take the first of the smallest groups.
  const auto smallest =
      std::ranges::min_element(groups, {}, [](const Group& group) { return group.records.size(); });
  for (const size_t i : smallest->records) is_val[i] = true;
  return is_val;
}

SplitFiles write_split(const std::string& path, const SplitOptions& options) {
  check_share(options.val_share);
  SplitFiles files{.train = {.path = part_path(path, options.out_dir, "train")},
                   .val = {.path = part_path(path, options.out_dir, "val")}};
  const RecordFile file(path);
  const InputFiles inputs = file.inputs();
  for (const SplitPart* part : {&files.train, &files.val}) inputs.refuse(part->path);
  const std::map<std::string, std::string> hash_of = hash_images(file.samples());
  const auto texts_of = picture_texts(hash_of);
  Hashes pictures;
  for (const Sample& sample : file.samples()) {
    Strings& texts = pictures.emplace_back();
    for (const std::string& image : sample.image_paths)
      texts.insert(texts.end(), texts_of.at(image).begin(), texts_of.at(image).end());
  }
  const std::vector<bool> is_val = choose_val(pictures, options, path);
  files.num_repeats = count_repeats(pictures);
  std::string lines[2];
  std::set<std::string> images[2];
  for (size_t i = 0; i < is_val.size(); ++i) {
    SplitPart& part = is_val[i] ? files.val : files.train;
    lines[is_val[i]] += file.line_for(file.samples()[i], part.path) + "\n";
    for (const std::string& image : file.samples()[i].image_paths)
      images[is_val[i]].insert(hash_of.at(image));
    ++part.num_records;
  }
  files.train.num_images = std::ssize(images[0]);
  files.val.num_images = std::ssize(images[1]);
  if (!options.out_dir.empty()) make_directories(options.out_dir);
  // Writes both files before the first gets its final name.
  OutputFile train(files.train.path, inputs), val(files.val.path, inputs);
  files.train.replaces_earlier = train.replaces_earlier();
  files.val.replaces_earlier = val.replaces_earlier();
  train.write(lines[0]);
  val.write(lines[1]);
  train.commit();
  val.commit();
  return files;
}

}  // namespace rematch
