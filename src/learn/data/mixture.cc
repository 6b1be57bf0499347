#include "learn/data/mixture.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace rematch {
namespace {

// Separates this random stream from others with the same seed and epoch.
constexpr uint64_t kMixtureStream = 0x6D697874757265ULL;

}  // namespace

int64_t MixturePart::num_drawn() const {
  return static_cast<int64_t>(std::floor(weight * num_records() + 0.5));
}

int64_t mixture_size(const std::vector<MixturePart>& parts) {
  return std::accumulate(
      parts.begin(), parts.end(), int64_t{0},
      [](int64_t sum, const MixturePart& part) { return sum + part.num_drawn(); });
}

std::vector<int64_t> draw_mixture(const std::vector<MixturePart>& parts, uint64_t seed,
                                  int64_t epoch) {
  std::vector<int64_t> drawn;
  for (size_t i = 0; i < parts.size(); ++i) {
    const MixturePart& part = parts[i];
    if (part.num_records() == 0) continue;
    int64_t num_left = part.num_drawn();
    for (; num_left >= part.num_records(); num_left -= part.num_records()) {
      for (int64_t sample = part.begin; sample < part.end; ++sample) drawn.push_back(sample);
    }
    const std::vector<int64_t> order =
        random_permutation(random_key(kMixtureStream, seed, epoch, i), part.num_records());
    for (int64_t k = 0; k < num_left; ++k) drawn.push_back(part.begin + order[k]);
  }
  return drawn;
}

void check_train_files(const std::vector<TrainFile>& files) {
  std::map<std::pair<dev_t, ino_t>, std::string> known;
  std::vector<Problem> problems;
  for (const TrainFile& file : files) {
    struct stat info{};
    if (::stat(file.path.c_str(), &info) != 0) continue;
    const auto [first, is_new] = known.try_emplace({info.st_dev, info.st_ino}, file.path);
    if (is_new) continue;
    problems.push_back(
        {.error = "a file is listed twice",
         .where = "custom.train_jsonl",
         .what = first->second == file.path
                     ? file.path
                     : fmt::format("{} and {} are the same file", first->second, file.path),
         .fix = fmt::format("list it once, with a weight: `{{path: {}, weight: 2}}` uses every "
                            "record twice per epoch",
                            first->second)});
  }
  if (!problems.empty()) throw UserError(ErrorKind::kConfig, std::move(problems));
}

}  // namespace rematch
