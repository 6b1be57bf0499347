#include "ranks/watchdog.h"

#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "ranks/meeting.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSilentIntervals = 4;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string key_of(int rank) { return fmt::format("beat/{}", rank); }

/// What is known of another rank.
struct Peer {
  std::string beat;
  Clock::time_point since = Clock::now();  ///< when the beat last changed, by this rank's clock
  bool is_warned = false;
  Watchdog::Progress progress;
  /// when its moves last grew, by this rank's clock
  Clock::time_point moved_at = Clock::now();
  Clock::time_point stands_since = Clock::now();  ///< when it last moved or waited
  bool is_told_stuck = false;

  Json content() const {
    return beat.empty() ? Json{{"host", "?"}, {"pid", 0}, {"phase", "start"}, {"left", ""}}
                        : Json::parse(beat);
  }
  /// Takes a beat. Returns how long the rank had stood still, when it goes on.
  Clock::duration hear(std::string text) {
    beat = std::move(text);
    since = Clock::now();
    is_warned = false;
    const Json now = content();
    const Watchdog::Progress next{now["moves"].get<int64_t>(), now["waits"].get<bool>()};
    if (next.num_moves != progress.num_moves) moved_at = since;
    if (next.num_moves == progress.num_moves && !next.is_waiting) return {};
    progress = next;
    is_told_stuck = false;
    return since - std::exchange(stands_since, since);
  }
  std::string phase() const { return content()["phase"]; }
  bool has_left() const { return content()["left"] != ""; }
  std::string text(int rank) const {
    const Json now = content();
    return fmt::format("rank {} on {}, pid {}, in the phase {}", rank,
                       now["host"].get<std::string>(), now["pid"].get<int64_t>(), phase());
  }
};

}  // namespace

struct Watchdog::Impl {
  Options options;
  c10::intrusive_ptr<c10d::Store> store;
  std::mutex mutex;
  std::condition_variable wake;
  bool is_stopping = false;
  int64_t num_beats = 0;
  /// by rank; this one's own entry knows its progress only
  std::vector<Peer> peers;
  /// by phase, of ranks that went on in the end
  std::map<std::string, Clock::duration> longest_stands;
  std::thread thread;

  Progress progress() const {
    return options.progress ? options.progress() : Progress{.is_waiting = false};
  }

  void beat(const std::string& left) {
    const Progress now = progress();
    const Json content = {{"host", host_name()},
                          {"pid", ::getpid()},
                          {"phase", options.phase ? options.phase() : "start"},
                          {"moves", now.num_moves},
                          {"waits", now.is_waiting},
                          {"left", left},
                          {"beat", ++num_beats}};
    const std::string text = content.dump(-1, ' ', false, Json::error_handler_t::replace);
    store->set(key_of(options.rank), std::vector<uint8_t>(text.begin(), text.end()));
  }

  void read() {
    for (int rank = 0; rank < options.size; ++rank) {
      if (rank == options.rank) continue;
      const std::vector<uint8_t> bytes = store->get(key_of(rank));
      Peer& peer = peers[static_cast<size_t>(rank)];
      std::string text(bytes.begin(), bytes.end());
      if (text == peer.beat) continue;
      Clock::duration& longest = longest_stands[peer.phase()];
      longest = std::max(longest, peer.hear(std::move(text)));
    }
  }

  /// The rank that has been silent longest, and for how long; -1 when every rank has left.
  std::pair<int, Clock::duration> most_silent() const {
    std::pair<int, Clock::duration> found{-1, {}};
    for (int rank = 0; rank < options.size; ++rank) {
      const Peer& peer = peers[static_cast<size_t>(rank)];
      if (rank == options.rank || peer.has_left()) continue;
      const Clock::duration silence = Clock::now() - peer.since;
      if (found.first < 0 || silence > found.second) found = {rank, silence};
    }
    return found;
  }

  /// Of ranks that this one waits for: the first that has left, or else the one that stands still
  /// for longest; -1 when there is none.
  std::pair<int, Clock::duration> most_stuck() const {
    std::pair<int, Clock::duration> found{-1, {}};
    if (!progress().is_waiting) return found;
    for (int rank = 0; rank < options.size; ++rank) {
      const Peer& peer = peers[static_cast<size_t>(rank)];
      if (rank == options.rank) continue;
      if (peer.has_left()) return {rank, Clock::now() - peer.since};
      const Clock::duration stand = Clock::now() - peer.stands_since;
      if (!peer.progress.is_waiting && (found.first < 0 || stand > found.second))
        found = {rank, stand};
    }
    return found;
  }

  /// When all ranks wait, and so none can end the others' waiting: how long ago the last one moved.
  std::optional<Clock::duration> deadlock() {
    Peer& own = peers[static_cast<size_t>(options.rank)];
    const Progress now = progress();
    if (now.num_moves != own.progress.num_moves) own.moved_at = Clock::now();
    own.progress = now;
    Clock::time_point last{};
    for (const Peer& peer : peers) {
      if (!peer.progress.is_waiting || peer.has_left()) return std::nullopt;
      last = std::max(last, peer.moved_at);
    }
    return Clock::now() - last;
  }

  void judge_deadlock() {
    const std::optional<Clock::duration> stand = deadlock();
    if (!stand || *stand < options.give_up_when_stuck || options.size == 1) return;
    const int other = options.rank == 0 ? 1 : 0;
    options.give_up(fmt::format(
        "{} has not moved for {:.0f} s, and nor has any other rank: all wait for each other",
        peers[static_cast<size_t>(other)].text(other), seconds(*stand)));
  }

  void judge_stuck() {
    const auto [rank, stand] = most_stuck();
    if (rank < 0) return;
    Peer& peer = peers[static_cast<size_t>(rank)];
    if (peer.has_left()) {
      if (stand >= options.warn_after)
        options.give_up(fmt::format("{} has left, {}", peer.text(rank),
                                    peer.content()["left"].get<std::string>()));
      return;
    }
    const std::string text = fmt::format("{} has not moved for {:.0f} s, and others wait for it",
                                         peer.text(rank), seconds(stand));
    if (stand >= options.give_up_when_stuck) return options.give_up(text);
    const Clock::duration usual =
        std::max<Clock::duration>(options.warn_when_stuck, 2 * longest_stands[peer.phase()]);
    if (stand >= usual && !std::exchange(peer.is_told_stuck, true)) options.warn(text);
  }

  void judge() {
    const auto [rank, silence] = most_silent();
    if (rank < 0 || silence < options.warn_after) return;
    Peer& peer = peers[static_cast<size_t>(rank)];
    const std::string text =
        fmt::format("{} has been silent for {:.0f} s", peer.text(rank), seconds(silence));
    if (silence >= options.give_up_after) return options.give_up(text);
    if (!std::exchange(peer.is_warned, true)) options.warn(text);
  }

  void watch() {
    Clock::time_point last = Clock::now();
    std::unique_lock<std::mutex> lock(mutex);
    while (!is_stopping) {
      try {
        beat("");
        read();
      } catch (const std::exception&) {
        options.give_up(
            "the ranks' store does not answer: the launcher, or rank 0 on its host, has ended" +
            (options.rank == 0 ? std::string() : "; last heard of " + peers[0].text(0)));
        return;
      }
      // A rank that was itself stopped must not take the others for silent.
      if (Clock::now() - last > options.warn_after / 2) {
        for (Peer& peer : peers) peer.since = peer.stands_since = peer.moved_at = Clock::now();
      }
      last = Clock::now();
      judge();
      judge_stuck();
      judge_deadlock();
      wake.wait_for(lock, options.interval);
    }
  }
};

Watchdog::Watchdog(const c10::intrusive_ptr<c10d::Store>& store, Options options)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  impl_->store = store->clone();
  impl_->peers.resize(static_cast<size_t>(impl_->options.size));
  impl_->beat("");
}

Watchdog::~Watchdog() { stop(false); }

void Watchdog::wait_for_first_beats(milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  const Clock::time_point warning = Clock::now() + impl_->options.warn_after;
  bool is_warned = false;
  std::vector<std::string> missing;
  do {
    throw_if_interrupted();
    missing.clear();
    for (int rank = 0; rank < impl_->options.size; ++rank) {
      if (!impl_->store->check({key_of(rank)})) missing.push_back(std::to_string(rank));
    }
    if (missing.empty()) return;
    if (Clock::now() > warning && !std::exchange(is_warned, true))
      impl_->options.warn(fmt::format("still waiting for rank {} to connect", join(missing, ", ")));
    std::this_thread::sleep_for(milliseconds(20));
  } while (Clock::now() < end);
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = "not all ranks have come",
       .where = fmt::format("rank {} of {} on {}", impl_->options.rank, impl_->options.size,
                            host_name()),
       .what =
           fmt::format("missing after {:.0f} s: rank {}", seconds(patience), join(missing, ", ")),
       .fix =
           "look at the messages of those ranks, and start all of them with the same WORLD_SIZE"});
}

void Watchdog::start() {
  for (Peer& peer : impl_->peers) peer.since = peer.stands_since = Clock::now();
  impl_->thread = std::thread([this] { impl_->watch(); });
}

void Watchdog::stop(bool failed) {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->is_stopping = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
  try {
    impl_->beat(failed ? "with an error" : "in order");
  } catch (const std::exception&) {  // the store is gone: nobody is left to tell
  }
}

void Watchdog::wait_for_others(milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  try {
    while (Clock::now() < end) {
      impl_->read();
      if (impl_->most_silent().first < 0) return;
      std::this_thread::sleep_for(milliseconds(20));
    }
  } catch (const std::exception&) {
  }
}

std::string Watchdog::explain() {
  const milliseconds silent = impl_->options.interval * kSilentIntervals;
  const Clock::time_point end = Clock::now() + silent + impl_->options.interval * 2;
  while (Clock::now() < end) {
    {
      const std::lock_guard<std::mutex> lock(impl_->mutex);
      const auto [rank, silence] = impl_->most_silent();
      if (rank >= 0 && silence >= silent) {
        return fmt::format("{} has been silent for {:.0f} s",
                           impl_->peers[static_cast<size_t>(rank)].text(rank), seconds(silence));
      }
    }
    std::this_thread::sleep_for(impl_->options.interval / 4);
  }
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  for (int rank = 0; rank < impl_->options.size; ++rank) {
    const Peer& peer = impl_->peers[static_cast<size_t>(rank)];
    if (rank != impl_->options.rank && peer.has_left())
      return fmt::format("{} has left, {}", peer.text(rank),
                         peer.content()["left"].get<std::string>());
  }
  return {};
}

}  // namespace rematch
