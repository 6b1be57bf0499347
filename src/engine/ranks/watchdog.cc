#include "engine/ranks/watchdog.h"

#include <fmt/core.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/host_memory.h"
#include "base/interrupt.h"
#include "base/json.h"

namespace rematch {
namespace {

constexpr std::chrono::milliseconds kPoll{20};
constexpr int kSilent = 4;  // even a busy rank writes a heartbeat in fewer intervals

std::string beat_key(int rank) { return fmt::format("beat/{}", rank); }

}  // namespace

struct Watchdog::Peer {
  Json beat = Json::object();
  int num_silent = 0;  ///< intervals without a new heartbeat

  std::string text(const char* field) const { return beat[field]; }
  bool is_waiting() const { return beat["is_waiting"]; }
  bool has_exited() const { return beat["has_exited"]; }
  std::string trouble() const {
    return text("name") +
           (has_exited() ? "" : fmt::format(" has been silent for {} s", num_silent));
  }
};

Watchdog::Watchdog(const c10::intrusive_ptr<c10d::Store>& store, Options options)
    : options_(std::move(options)), store_(store->clone()) {
  write_beat("");
}

Watchdog::~Watchdog() { stop(false); }

void Watchdog::write_beat(const char* exit) {
  const Progress now = options_.progress();
  const Json beat = {{"name", fmt::format("rank {} on {}, pid {}, in the phase {}{}", options_.rank,
                                          host_name(), ::getpid(), now.phase, exit)},
                     {"phase", now.phase},
                     {"num_moves", now.num_moves},
                     {"is_waiting", now.is_waiting},
                     {"has_exited", *exit != 0},
                     {"count", ++num_beats_}};
  const std::string text = beat.dump(-1, ' ', false, Json::error_handler_t::replace);
  store_->set(beat_key(options_.rank), std::vector<uint8_t>(text.begin(), text.end()));
}

void Watchdog::read_beats() {
  std::vector<Json> beats;
  for (int rank = 0; rank < options_.size; ++rank) {
    beats.push_back(Json::parse(store_->get(beat_key(rank))));
    if (options_.guard) options_.guard->answered(beats.front()["name"]);
  }
  const std::lock_guard lock(mutex_);
  peers_.resize(beats.size());
  bool has_moved = false;
  for (size_t rank = 0; rank < beats.size(); ++rank) {
    Peer& peer = peers_[rank];
    ++peer.num_silent;
    if (beats[rank] == peer.beat) continue;
    has_moved |= beats[rank]["num_moves"] != peer.beat.value("num_moves", Json());
    peer = {.beat = beats[rank]};
  }
  const Peer& own = peers_[options_.rank];
  num_stuck_ += count_.next(options_.interval);
  if (own.is_waiting() && !has_moved) return;
  int& longest = longest_pause_[own.text("phase")];
  longest = std::max(longest, std::exchange(num_stuck_, 0));
  warned_stuck_ = false;
}

// Warns, or returns the reason to end the process.
std::string Watchdog::find_problem() {
  const Peer& own = peers_[options_.rank];
  const Peer* stuck = &peers_[options_.rank == 0 ? 1 : 0];
  bool do_all_wait = true;
  for (const Peer& peer : peers_) {
    if (peer.has_exited() && !own.is_waiting()) continue;
    const int limit = peer.has_exited() ? options_.warn_after : options_.give_up_after;
    if (peer.num_silent >= limit) return peer.trouble();
    if (peer.num_silent == options_.warn_after) options_.warn(peer.trouble());
    if (peer.is_waiting() || !do_all_wait) continue;
    stuck = &peer;
    do_all_wait = false;
  }
  const int usual = std::max(options_.warn_when_stuck, 2 * longest_pause_[own.text("phase")]);
  const bool is_lost = num_stuck_ >= options_.give_up_when_stuck;
  if (!is_lost && (warned_stuck_ || num_stuck_ < usual)) return {};
  warned_stuck_ = true;
  const std::string text =
      fmt::format("{} has made no progress for {} s while {}", stuck->text("name"), num_stuck_,
                  do_all_wait ? "all ranks waited for each other" : "others waited for it");
  if (is_lost) return text;
  options_.warn(text);
  return {};
}

void Watchdog::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::string problem;
    try {
      write_beat("");
      read_beats();
      problem = find_problem();
    } catch (const std::exception&) {
      problem = "the ranks' store does not answer: torchrun, or rank 0 on its host, has ended";
      if (options_.rank != 0) problem += "; last heartbeat: " + peers_[0].text("name");
    }
    if (!problem.empty()) return options_.give_up(problem);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, options_.interval, [] { return false; });
  }
}

void Watchdog::start(std::chrono::seconds patience) {
  std::string missing;
  for (auto waited = 0 * kPoll; waited <= patience; waited += kPoll) {
    throw_if_interrupted();
    missing.clear();
    for (int rank = 0; rank < options_.size; ++rank) {
      if (!store_->check({beat_key(rank)}))
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      if (options_.guard) options_.guard->answered();
    }
    if (missing.empty()) {
      read_beats();
      thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
      return;
    }
    std::this_thread::sleep_for(kPoll);
  }
  throw environment_error(
      {.error = "not all ranks connected in time",
       .where = fmt::format("rank {} of {} on {}", options_.rank, options_.size, host_name()),
       .what = fmt::format("missing after {} s: rank {}", patience.count(), missing),
       .fix = "look at the messages of these ranks; start all ranks with the same WORLD_SIZE"});
}

void Watchdog::stop(bool failed, std::chrono::seconds patience) {
  if (std::exchange(has_stopped_, true)) return;
  thread_ = {};
  try {
    write_beat(failed ? " exited with an error" : " exited normally");
    for (auto waited = 0 * kPoll; waited < patience; waited += kPoll) {
      read_beats();
      if (std::ranges::all_of(peers_, std::mem_fn(&Peer::has_exited))) return;
      std::this_thread::sleep_for(kPoll);
    }
  } catch (const std::exception&) {  // the store is gone: no one is left to read this
  }
}

std::string Watchdog::explain() {
  for (int i = kSilent + 2;; --i) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const Peer& peer : peers_)
        if (peer.has_exited() ? i == 0 : peer.num_silent >= kSilent) return peer.trouble();
    }
    if (i == 0) return {};
    std::this_thread::sleep_for(options_.interval);
  }
}

}  // namespace rematch
