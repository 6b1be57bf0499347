#include "estep/sample_lengths.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "estep/target/truth_segment.h"

namespace rematch {
namespace {

constexpr int64_t kBlock = 64;

}  // namespace

std::vector<SampleLength> measure_samples(const Dataset& dataset, const PromptEncoder& prompts, const AnswerVocab& vocab,
                                          const MeasureOptions& options, const std::function<void(int64_t)>& on_progress) {
  std::vector<SampleLength> lengths(dataset.samples().size());
  std::atomic<int64_t> next{0}, num_done{0};
  std::mutex mutex;
  std::exception_ptr error;
  // Takes blocks until none is left; the first error ends all threads' work.
  const auto work = [&](bool reports) {
    try {
      for (int64_t begin = next.fetch_add(kBlock); begin < dataset.size(); begin = next.fetch_add(kBlock)) {
        const int64_t end = std::min(begin + kBlock, dataset.size());
        for (int64_t i = begin; i < end; ++i) {
          const Sample& sample = dataset.samples()[static_cast<size_t>(i)];
          const Prompt prompt = make_prompt(sample, /*epoch=*/0, prompts, options.patches);
          const Segment segment =
              build_ground_truth_segment(prompt, order_objects(sample, options.ordering, options.seed, /*epoch=*/0), vocab);
          lengths[static_cast<size_t>(i)] = {.prompt_len = segment.prompt_len, .answer_len = segment.encoded_len() - segment.prompt_len};
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
    std::vector<std::jthread> helpers;
    for (int i = 1; i < options.num_threads; ++i) helpers.emplace_back(work, false);
    work(true);
  }
  if (error != nullptr) std::rethrow_exception(error);
  on_progress(dataset.size());
  return lengths;
}

}  // namespace rematch
