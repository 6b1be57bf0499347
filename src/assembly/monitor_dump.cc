#include "assembly/monitor_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "draw/encode.h"
#include "draw/panel.h"
#include "estep/estep.h"
#include "estep/match/labels.h"
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
  std::string prompt, answer;                 ///< whole
  double f1 = 0, f1_labels = 0;
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

/// The texts of an event, below the picture that stands beside them.
std::string texts_of(const Event& event) {
  std::string text;
  for (const Shown& one : event.samples) {
    text += fmt::format(
        "\n## {}\n\nUnmarked: the prefix of the answer that is kept. `-`: what of the answer is "
        "not. `+`: what is taught "
        "({}).\n\n```diff\n{}{}{}```\n",
        one.caption, one.policy, marked(one.kept, "  "), marked(one.dropped, "- "),
        marked(one.taught, "+ "));
  }
  return text;
}

std::string markdown_of(const Event& event) {
  return fmt::format("# Step {}\n\n![truth green, answer red, matches yellow](step_{:06}.png)\n",
                     event.step, event.step) +
         texts_of(event);
}

/// One line for each answer, with the columns of TRL's completions: its rewards are our scores, and
/// the only answer to a prompt has no advantage over others.
std::string completions_of(const Event& event) {
  std::string lines;
  for (const Shown& one : event.samples) {
    lines += python_json({{"step", event.step},
                          {"prompt", one.prompt},
                          {"completion", one.answer},
                          {"f1", one.f1},
                          {"f1_labels", one.f1_labels},
                          {"advantage", 0.0}}) +
             "\n";
  }
  return lines;
}

Canvas sheet_for(const Event& event) {
  std::vector<std::pair<std::string, Canvas>> panels;
  for (const Shown& one : event.samples) {
    try {
      panels.emplace_back(
          one.caption, scene_panel(load_image(one.image_path), one.objects, kPanelPx, one.links));
    } catch (const UserError& error) {
      panels.emplace_back(one.caption, blank_panel(error.problems().front().error, kPanelPx));
    }
  }
  return sheet_of(panels, kColumns);
}

Shown shown_of(const Examined& one, const Session& session, const LabelMatch& labels,
               int64_t max_chars) {
  const auto num_truths = static_cast<int>(one.ground_truth.size());
  Shown shown{
      .image_path = one.sample->image_paths.front(),
      .caption = fmt::format("line {}: {} true, {} found, {} matched, answer {}",
                             one.sample->sample_id + 1, num_truths, one.parsed.objects.size(),
                             one.matching.pairs.size(), parse_status_name(one.parsed.status)),
      .policy = session.settings.target.policy};
  for (const SceneObject& object : one.ground_truth)
    shown.objects.push_back({object.geometry, object.desc, kTruthColor});
  for (const ParsedObject& object : one.parsed.objects)
    shown.objects.push_back({object.geometry, object.desc, kPredictionColor});
  for (const auto& [p, t] : one.matching.pairs) shown.links.emplace_back(t, num_truths + p);
  const std::string answer = session.tokenizer->decode_bytes(one.parsed.response_token_ids);
  const SegmentResult target =
      target_of(one, session.vocab, session.settings.match, session.settings.target);
  const size_t kept =
      answer.rfind(one.parsed.prefix_text, 0) == 0 ? one.parsed.prefix_text.size() : 0;
  const auto num_objects = static_cast<double>(one.ground_truth.size() + one.parsed.objects.size());
  shown.f1 =
      num_objects == 0 ? 1 : 2 * static_cast<double>(one.matching.pairs.size()) / num_objects;
  const auto is_named_right = [&](const std::pair<int, int>& pair) {
    return labels.canonical(one.parsed.objects[static_cast<size_t>(pair.first)].desc) ==
           labels.canonical(one.ground_truth[static_cast<size_t>(pair.second)].desc);
  };
  const auto num_right =
      std::count_if(one.matching.pairs.begin(), one.matching.pairs.end(), is_named_right);
  shown.f1_labels = num_objects == 0 ? 1 : 2 * static_cast<double>(num_right) / num_objects;
  shown.prompt = session.prompts->user_prompt();
  shown.answer = lossy_utf8(answer);
  shown.kept = cut(lossy_utf8(answer.substr(0, kept)), max_chars);
  shown.dropped = cut(lossy_utf8(answer.substr(kept)), max_chars);
  shown.taught = cut(target.append_text, max_chars);
  return shown;
}

}  // namespace

/// The thread that draws and writes.
struct MonitorDump::Writer {
  Writer(std::string directory_, const Options& options, Terminal& terminal_)
      : directory(std::move(directory_)),
        completions(options.run_dir + "/completions"),
        markdown(options.settings.write_markdown),
        tensorboard(options.tensorboard),
        terminal(terminal_) {
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
        write(event);
      } catch (const UserError& error) {
        terminal.warn(fmt::format("a monitor dump was not written: {} ({})",
                                  error.problems().front().error, error.problems().front().what));
      }
    }
  }

  void write(const Event& event) const {
    const std::string base = fmt::format("{}/step_{:06}", directory, event.step);
    const Image sheet = sheet_for(event).image();
    const PngPicture picture{
        .bytes = encode_png(sheet), .width_px = sheet.width_px, .height_px = sheet.height_px};
    write_file_atomic(base + ".png", picture.bytes);
    if (markdown) write_file_atomic(base + ".md", markdown_of(event));
    write_file_atomic(fmt::format("{}/step_{:06}.jsonl", completions, event.step),
                      completions_of(event));
    if (tensorboard == nullptr) return;
    tensorboard->image(event.step, "monitor/answers", picture);
    tensorboard->text(event.step, "monitor/texts", texts_of(event));
  }

  const std::string directory, completions;
  const bool markdown;
  TensorboardSink* const tensorboard;
  Terminal& terminal;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Event> waiting;
  bool stop = false;
  std::thread thread;
};

MonitorDump::MonitorDump(const Session& session, Options options)
    : session_(session),
      options_(std::move(options)),
      labels_(LabelMatch::from(session.settings.match.label_match)) {
  const std::string directory = options_.settings.out_dir.value_or(options_.run_dir + "/monitor");
  make_directories(directory);
  make_directories(options_.run_dir + "/completions");
  writer_ = std::make_unique<Writer>(directory, options_, session.terminal);
}

MonitorDump::~MonitorDump() = default;

bool MonitorDump::is_due(int64_t step) const {
  if (num_events_ >= options_.settings.max_events) return false;
  const int64_t every =
      std::max<int64_t>(1, options_.settings.every_steps.value_or(options_.logging_steps));
  return step % every == 0 || (step == 1 && options_.settings.dump_first_step);
}

void MonitorDump::operator()(const std::vector<Examined>& examined) {
  const int64_t step = options_.step();
  if (examined.empty() || !is_due(step)) return;
  const auto start = std::chrono::steady_clock::now();
  ++num_events_;
  Event event{.step = step, .samples = {}};
  const auto count = std::min(examined.size(), static_cast<size_t>(options_.settings.max_samples));
  for (size_t i = 0; i < count; ++i)
    event.samples.push_back(
        shown_of(examined[i], session_, labels_, options_.settings.max_text_chars));
  writer_->push(std::move(event));
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace rematch
