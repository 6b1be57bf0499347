#include "assembly/monitor_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "draw/encode.h"
#include "draw/panel.h"
#include "estep/estep.h"
#include "text/lossy.h"
#include "vision/image.h"

namespace rematch {
namespace {

constexpr int kPanelPx = 512, kColumns = 3;

/// What is drawn and written of a sample; nothing in it belongs to the run any more.
struct Shown {
  std::string image_path, caption;
  std::vector<DrawnObject> objects;           ///< truth first
  std::vector<std::pair<int, int>> links;     ///< of matches, into objects
  std::string kept, dropped, taught, policy;  ///< texts
};

struct Event {
  int64_t step = 0;
  std::vector<Shown> samples;
};

/// The first `most` bytes, in whole characters.
std::string cut(std::string text, int64_t most) {
  if (static_cast<int64_t>(text.size()) <= most) return text;
  auto end = static_cast<size_t>(most);
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "…";
}

/// Lines of a diff, which Markdown viewers colour.
std::string marked(const std::string& text, const char* mark) {
  std::string lines;
  if (text.empty()) return lines;
  for (const std::string& line : split(text, '\n')) lines += mark + line + "\n";
  return lines;
}

std::string markdown_of(const Event& event) {
  std::string text = fmt::format("# Step {}\n\n![truth green, answer red, matches yellow](step_{:06}.png)\n", event.step, event.step);
  for (const Shown& one : event.samples) {
    text += fmt::format(
        "\n## {}\n\nUnmarked: the prefix of the answer that is kept. `-`: what of the answer is not. `+`: what is taught "
        "({}).\n\n```diff\n{}{}{}```\n",
        one.caption, one.policy, marked(one.kept, "  "), marked(one.dropped, "- "), marked(one.taught, "+ "));
  }
  return text;
}

Canvas sheet_for(const Event& event) {
  std::vector<std::pair<std::string, Canvas>> panels;
  for (const Shown& one : event.samples) {
    try {
      panels.emplace_back(one.caption, scene_panel(load_image(one.image_path), one.objects, kPanelPx, one.links));
    } catch (const UserError& error) {
      panels.emplace_back(one.caption, blank_panel(error.problems().front().error, kPanelPx));
    }
  }
  return sheet_of(panels, kColumns);
}

Shown shown_of(const Examined& one, const Session& session, int64_t max_chars) {
  const auto num_truths = static_cast<int>(one.ground_truth.size());
  Shown shown{.image_path = one.sample->image_paths.front(),
              .caption = fmt::format("line {}: {} true, {} found, {} matched, answer {}", one.sample->sample_id + 1, num_truths,
                                     one.parsed.objects.size(), one.matching.pairs.size(), parse_status_name(one.parsed.status)),
              .policy = session.settings.target.policy};
  for (const SceneObject& object : one.ground_truth) shown.objects.push_back({object.geometry, object.desc, kTruthColor});
  for (const ParsedObject& object : one.parsed.objects) shown.objects.push_back({object.geometry, object.desc, kPredictionColor});
  for (const auto& [p, t] : one.matching.pairs) shown.links.emplace_back(t, num_truths + p);
  const std::string answer = session.tokenizer->decode_bytes(one.parsed.response_token_ids);
  const SegmentResult target = target_of(one, session.vocab, session.settings.match, session.settings.target);
  const size_t kept = answer.rfind(one.parsed.prefix_text, 0) == 0 ? one.parsed.prefix_text.size() : 0;
  shown.kept = cut(lossy_utf8(answer.substr(0, kept)), max_chars);
  shown.dropped = cut(lossy_utf8(answer.substr(kept)), max_chars);
  shown.taught = cut(target.append_text, max_chars);
  return shown;
}

}  // namespace

/// The thread that draws and writes.
struct MonitorDump::Writer {
  Writer(std::string directory_, bool markdown_, Terminal& terminal_)
      : directory(std::move(directory_)), markdown(markdown_), terminal(terminal_) {
    thread = std::thread([this] { run(); });
  }
  ~Writer() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    wake.notify_one();
    thread.join();
  }

  void push(Event event) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      waiting.push_back(std::move(event));
    }
    wake.notify_one();
  }

  void run() {
    while (true) {
      Event event;
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [this] { return stop || !waiting.empty(); });
        if (waiting.empty()) return;
        event = std::move(waiting.front());
        waiting.pop_front();
      }
      try {
        const std::string base = fmt::format("{}/step_{:06}", directory, event.step);
        write_file_atomic(base + ".png", encode_png(sheet_for(event).image()));
        if (markdown) write_file_atomic(base + ".md", markdown_of(event));
      } catch (const UserError& error) {
        terminal.warn(
            fmt::format("a monitor dump was not written: {} ({})", error.problems().front().error, error.problems().front().what));
      }
    }
  }

  const std::string directory;
  const bool markdown;
  Terminal& terminal;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Event> waiting;
  bool stop = false;
  std::thread thread;
};

MonitorDump::MonitorDump(const Session& session, Options options) : session_(session), options_(std::move(options)) {
  const std::string directory = options_.settings.out_dir.value_or(options_.run_dir + "/monitor");
  make_directories(directory);
  writer_ = std::make_unique<Writer>(directory, options_.settings.write_markdown, session.terminal);
}

MonitorDump::~MonitorDump() = default;

bool MonitorDump::is_due(int64_t step) const {
  if (num_events_ >= options_.settings.max_events) return false;
  const int64_t every = std::max<int64_t>(1, options_.settings.every_steps.value_or(options_.logging_steps));
  return step % every == 0 || (step == 1 && options_.settings.dump_first_step);
}

void MonitorDump::operator()(const std::vector<Examined>& examined) {
  const int64_t step = options_.step();
  if (examined.empty() || !is_due(step)) return;
  ++num_events_;
  Event event{.step = step, .samples = {}};
  const auto count = std::min(examined.size(), static_cast<size_t>(options_.settings.max_samples));
  for (size_t i = 0; i < count; ++i) event.samples.push_back(shown_of(examined[i], session_, options_.settings.max_text_chars));
  writer_->push(std::move(event));
}

}  // namespace rematch
