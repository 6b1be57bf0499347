#include "learn/estep/sample_lengths.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "learn/augment/absent_classes.h"
#include "learn/estep/teach/truth_segment.h"

namespace rematch {
namespace {

constexpr unsigned kMostThreads = 16;
constexpr int64_t kBlock = 64;

using Orders = std::vector<Objects>;

void add_vertices(Objects& objects, int count) {
  for (SceneObject& object : objects) {
    if (object.geometry.kind == GeometryKind::kPoly)
      object.geometry.bins.resize(object.geometry.bins.size() + 2 * static_cast<size_t>(count));
  }
}

/// Orders of the objects, one of which gives the longest answer. An object has the same tokens at
/// every place but the last, where its brackets merge with those that close the answer. So only the
/// kind of the last object matters.
Orders longest_orders(Objects objects, bool any_order) {
  Orders orders{objects};
  const auto other = std::ranges::find_if(objects, [&](const SceneObject& object) {
    return object.geometry.kind != objects.back().geometry.kind;
  });
  if (!any_order || other == objects.end()) return orders;
  std::iter_swap(other, std::prev(objects.end()));
  orders.push_back(std::move(objects));
  return orders;
}

/// The same for formats in which an entry ends with its label: the label's last characters may
/// merge with the following text, so every object is tried at the end. Also tries longer numbers.
Orders longest_digit_orders(Objects objects, const MeasureOptions& options) {
  Orders orders{objects};
  for (SceneObject& object : objects) {
    for (int& bin : object.geometry.bins)
      bin = std::min(bin + options.coord_slack_bins, kNumBins - 1);
  }
  if (options.coord_slack_bins > 0) orders.push_back(objects);
  for (size_t last = 0; options.any_order && last + 1 < objects.size(); ++last) {
    orders.push_back(objects);
    std::swap(orders.back()[last], orders.back().back());
  }
  return orders;
}

/// The longest prompt and answer of a sample.
SampleLength measure(const Sample& sample, const PromptEncoder& prompts, const AnswerFormat& format,
                     const MeasureOptions& options) {
  const Prompt prompt = make_prompt(with_longest_prompt(sample, options.augment),
                                    /*epoch=*/0, &prompts, options.patches);
  Objects truth = order_objects(sample, options.ordering, options.seed, /*epoch=*/0);
  add_vertices(truth, options.num_new_vertices);
  SampleLength length;
  for (const auto& objects : format.lengths_vary_with_coords()
                                 ? longest_digit_orders(std::move(truth), options)
                                 : longest_orders(std::move(truth), options.any_order)) {
    const Segment segment = build_ground_truth_segment(prompt, objects, format);
    length = {
        .prompt_len = segment.prompt_len,
        .answer_len = std::max(length.answer_len, segment.encoded_len() - segment.prompt_len)};
  }
  return length;
}

}  // namespace

std::vector<SampleLength> measure_samples(const Dataset& dataset, const PromptEncoder& prompts,
                                          const AnswerFormat& format, const MeasureOptions& options,
                                          const std::function<void(int64_t)>& on_progress) {
  std::vector<SampleLength> lengths(dataset.samples().size());
  std::atomic<int64_t> next{0}, num_done{0};
  std::mutex mutex;
  std::exception_ptr error;
  // Takes blocks until none is left; the first error stops all threads.
  const auto work = [&](bool reports) {
    try {
      for (int64_t begin = next.fetch_add(kBlock); begin < dataset.size();
           begin = next.fetch_add(kBlock)) {
        const int64_t end = std::min(begin + kBlock, dataset.size());
        for (int64_t i = begin; i < end; ++i) {
          const auto at = static_cast<size_t>(i);
          lengths[at] = measure(dataset.samples()[at], prompts, format, options);
        }
        num_done += end - begin;
        if (reports && num_done < dataset.size()) on_progress(num_done);
      }
    } catch (...) {
      next = dataset.size();
      const std::lock_guard lock(mutex);
      if (error == nullptr) error = std::current_exception();
    }
  };
  {
    const int num_threads =
        options.num_threads > 0
            ? options.num_threads
            : static_cast<int>(std::min(std::thread::hardware_concurrency(), kMostThreads));
    std::vector<std::jthread> helpers;
    for (int i = 1; i < num_threads; ++i) helpers.emplace_back(work, false);
    work(true);
  }
  if (error != nullptr) std::rethrow_exception(error);
  on_progress(dataset.size());
  return lengths;
}

}  // namespace rematch
