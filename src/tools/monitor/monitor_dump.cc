#include "tools/monitor/monitor_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "learn/estep/make_target.h"
#include "tools/draw/encode.h"
#include "tools/monitor/answer_view.h"

namespace rematch {

/// The background thread that draws and writes.
class MonitorDump::Writer {
 public:
  Writer(const Options& options, Terminal& terminal)
      : options_(options),
        pictures_dir_(options.settings.out_dir.value_or(options.run_dir + "/monitor")),
        completions_dir_(options.run_dir + "/completions"),
        terminal_(terminal) {
    make_directories(pictures_dir_);
    make_directories(completions_dir_);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void push(int64_t step, std::vector<AnswerView> answers) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(step, std::move(answers));
    }
    wake_.notify_one();
  }

 private:
  /// Returns after a stop request, when nothing is waiting.
  void run(const std::stop_token& stop) {
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, stop, [this] { return !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto [step, answers] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        write(step, answers);
      } catch (const UserError& error) {
        const Problem& problem = error.problems().front();
        terminal_.warn(
            fmt::format("a monitor dump was not written: {} ({})", problem.error, problem.what));
      }
    }
  }

  void write(int64_t step, const std::vector<AnswerView>& answers) const {
    const std::string name = fmt::format("step_{:06}", step), base = pictures_dir_ + "/" + name;
    const Image sheet = answer_sheet(answers);
    const PngPicture picture{
        .bytes = encode_png(sheet), .width_px = sheet.width_px, .height_px = sheet.height_px};
    const std::string texts = answer_texts(answers, options_.target.policy);

    write_file_atomic(base + ".png", picture.bytes);
    if (options_.settings.write_markdown) {
      write_file_atomic(
          base + ".md",
          fmt::format("# Step {}\n\n![truth green, answer red, matches yellow]({}.png)\n{}", step,
                      name, texts));
    }
    write_file_atomic(completions_dir_ + "/" + name + ".jsonl",
                      answer_lines(answers, step, options_.user_prompt));
    if (options_.tensorboard == nullptr) return;
    options_.tensorboard->image(step, "monitor/answers", picture);
    options_.tensorboard->text(step, "monitor/texts", texts);
  }

  const Options& options_;
  const std::string pictures_dir_, completions_dir_;
  Terminal& terminal_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::pair<int64_t, std::vector<AnswerView>>> waiting_;
  std::jthread thread_;  // last member: joined before the others are destroyed
};

MonitorDump::MonitorDump(Options options, const AnswerFormat& format, Terminal& terminal)
    : options_(std::move(options)),
      format_(format),
      labels_(LabelMatch::from(
          options_.match.label_match,
          [&own = format.tokenizer()](std::string_view text) { return own.normalize(text); })),
      writer_(std::make_unique<Writer>(options_, terminal)) {}

MonitorDump::~MonitorDump() = default;

bool MonitorDump::is_due(int64_t step) const {
  const MonitorSettings& settings = options_.settings;
  if (num_dumps_ >= settings.max_events) return false;
  const int64_t every = std::max<int64_t>(1, settings.every_steps.value_or(options_.logging_steps));
  return step % every == 0 || (step == 1 && settings.dump_first_step);
}

void MonitorDump::dump(int64_t step, const std::vector<ScoredRollout>& rollouts) {
  if (rollouts.empty() || !is_due(step)) return;
  const auto start = std::chrono::steady_clock::now();
  ++num_dumps_;
  std::vector<AnswerView> answers;
  for (const ScoredRollout& rollout : rollouts) {
    if (std::ssize(answers) == options_.settings.max_samples) break;
    answers.push_back(view_answer(rollout, build_target(rollout, format_, options_.target),
                                  format_.tokenizer(), labels_,
                                  static_cast<size_t>(options_.settings.max_text_chars)));
  }
  writer_->push(step, std::move(answers));
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string MonitorDump::summary_text(double seconds) const {
  return fmt::format("pictures: steps waited {:.3f} s for them, {:.2f} % of the time", waited_s_,
                     100 * waited_s_ / seconds);
}

}  // namespace rematch
