#include "model/vision/pixel_store.h"

#include <fmt/core.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/error.h"

namespace rematch {
namespace {

enum class State { kQueued, kLoading, kReady, kFailed };

// One image. All fields are guarded by Impl::mutex_.
struct Entry {
  ImageRef image;
  std::string key;  // in Impl::entries_
  State state = State::kQueued;
  // kReady. The processed picture stays longer than its patches, which take eight times its memory:
  // cutting it again is quicker than reading the file again.
  std::shared_ptr<const Image> picture;
  std::shared_ptr<const Patches> patches;  // null once dropped
  std::exception_ptr error;                // kFailed
  // number of the prefetch() call that requested it, until get() fetches it; 0 = none
  uint64_t wanted_by = 0;
  uint64_t used_in = 0;                     // number of prefetch() calls when it was last requested
  std::list<std::string>::iterator recent;  // place in Impl::recent_, kReady only
};

// The path of an image and its augmentation.
std::string cache_key(const ImageRef& image) {
  if (!image.change.is_any()) return image.path;
  const auto& [crop, orientation, color] = image.change;
  return fmt::format("{}\n{} {} {} {} {} {} {} {}", image.path, crop[0], crop[1], crop[2], crop[3],
                     orientation, color[0], color[1], color[2]);
}

size_t patch_bytes(const Entry& entry) {
  if (entry.patches == nullptr) return 0;
  return entry.patches->pixel_values.size() * sizeof(float) + entry.patches->levels.size();
}
size_t size_bytes(const Entry& entry) { return patch_bytes(entry) + entry.picture->rgb.size(); }

}  // namespace

struct PixelStore::Impl {
  explicit Impl(const Options& options) : options_(options) {
    try {
      for (int i = 0; i < options_.loader.num_workers; ++i)
        workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();  // memory may suffice for some threads only
      throw;
    }
  }

  ~Impl() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void prefetch(const std::vector<ImageRef>& images) {
    const std::lock_guard lock(mutex_);
    ++num_prefetches_;
    for (const ImageRef& image : images) {
      if (const auto known = entries_.find(cache_key(image)); known != entries_.end())
        known->second->used_in = num_prefetches_;
    }
    drop_old_images();
    if (workers_.empty()) return;
    for (const ImageRef& image : images) {
      std::shared_ptr<Entry>& entry = entries_[cache_key(image)];
      if (entry == nullptr) {
        entry = new_entry(image);
        entry->used_in = num_prefetches_;
        queue_.push_back(entry);
      }
      entry->wanted_by = num_prefetches_;
    }
    changed_.notify_all();
  }

  std::shared_ptr<const Patches> get(const ImageRef& image) {
    const std::string key = cache_key(image);
    std::unique_lock lock(mutex_);
    std::shared_ptr<Entry>& slot = entries_[key];
    if (slot == nullptr) slot = new_entry(image);
    const std::shared_ptr<Entry> entry = slot;  // survives an eviction
    entry->used_in = num_prefetches_;
    // Not started yet: loading it here is faster than waiting for a worker (which then skips the
    // queued entry).
    if (entry->state == State::kQueued) load(*entry, lock);
    changed_.wait(lock,
                  [&] { return entry->state == State::kReady || entry->state == State::kFailed; });
    entry->wanted_by = 0;
    if (entry->state == State::kFailed) {
      // Dropped, so that a later call can read a repaired file.
      if (const auto found = entries_.find(key); found != entries_.end() && found->second == entry)
        entries_.erase(found);
      std::rethrow_exception(entry->error);
    }
    if (const auto found = entries_.find(key); found != entries_.end() && found->second == entry) {
      recent_.splice(recent_.end(), recent_, entry->recent);
    }
    std::shared_ptr<const Patches> patches = entry->patches;
    const std::shared_ptr<const Image> picture = entry->picture;
    evict();
    changed_.notify_all();
    if (patches != nullptr) return patches;
    lock.unlock();
    return cut(*picture);
  }

  const PatchOptions& patch_options() const { return options_.patches; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || (!queue_.empty() && has_room()); });
      if (stopping_) return;
      const std::shared_ptr<Entry> entry = queue_.front().lock();
      queue_.pop_front();
      if (entry == nullptr || entry->state != State::kQueued) continue;
      ++num_loading_ahead_;
      load(*entry, lock);
      --num_loading_ahead_;
    }
  }

  static std::shared_ptr<Entry> new_entry(const ImageRef& image) {
    auto entry = std::make_shared<Entry>();
    entry->image = image;
    entry->key = cache_key(image);
    return entry;
  }

  std::shared_ptr<const Patches> cut(const Image& picture) const {
    return std::make_shared<const Patches>(options_.as_levels
                                               ? cut_into_levels(picture, options_.patches)
                                               : cut_into_patches(picture, options_.patches));
  }

  void change(Image& picture, const ImageChange& change) const {
    REMATCH_CHECK(options_.change != nullptr, "Options::change is empty");
    options_.change(picture, change);
  }

  // Decodes with the lock released; publishes the result with it held.
  void load(Entry& entry, std::unique_lock<std::mutex>& lock) {
    entry.state = State::kLoading;
    lock.unlock();
    std::shared_ptr<const Image> picture;
    std::shared_ptr<const Patches> patches;
    std::exception_ptr error;
    try {
      Image loaded = load_image(entry.image.path);
      if (entry.image.change.is_any()) change(loaded, entry.image.change);
      picture = std::make_shared<const Image>(
          process_image(std::move(loaded), options_.patches, entry.image.path));
      patches = cut(*picture);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error != nullptr) {
      entry.error = error;
      entry.state = State::kFailed;
    } else {
      entry.picture = std::move(picture);
      entry.patches = std::move(patches);
      entry.state = State::kReady;
      entry.recent = recent_.insert(recent_.end(), entry.key);
      cached_bytes_ += size_bytes(entry);
      evict();
    }
    changed_.notify_all();
  }

  bool is_wanted(const Entry& entry) const {
    return entry.wanted_by != 0 && entry.wanted_by == num_prefetches_;
  }

  // Workers pause when they are as far ahead as LoaderSettings allow, and when images that get()
  // has not fetched yet fill the cache: loading more would evict images that are needed next. Cost:
  // linear in the cached images, a few dozen.
  bool has_room() const {
    size_t waiting_bytes = 0;
    int64_t num_ahead = num_loading_ahead_;
    for (const std::string& key : recent_) {
      const Entry& entry = *entries_.at(key);
      if (!is_wanted(entry)) continue;
      waiting_bytes += size_bytes(entry);
      ++num_ahead;
    }
    const LoaderSettings& loader = options_.loader;
    return num_ahead <
               int64_t{loader.num_workers} * loader.prefetch_factor * options_.batch_images &&
           (waiting_bytes == 0 || waiting_bytes < options_.cache_bytes / 2);
  }

  // Drops ready images that neither this prefetch() nor the previous one requested: the images of a
  // window may be reused in the next one. Keeping them longer would make memory grow.
  void drop_old_images() {
    for (auto path = recent_.begin(); path != recent_.end();) {
      const auto found = entries_.find(*path);
      path = found->second->used_in + 1 < num_prefetches_ ? drop(path) : std::next(path);
    }
  }

  std::list<std::string>::iterator drop(std::list<std::string>::iterator path) {
    const auto found = entries_.find(*path);
    cached_bytes_ -= size_bytes(*found->second);
    entries_.erase(found);
    return recent_.erase(path);
  }

  // Drops the least recently used images until the rest fits, first their patches; wanted ones
  // last.
  void evict() {
    drop_patches();
    for (const bool even_wanted : {false, true}) {
      for (auto path = recent_.begin();
           path != recent_.end() && cached_bytes_ > options_.cache_bytes;) {
        const auto found = entries_.find(*path);
        // One image is kept whatever its size: a caller may be waiting for it.
        if ((!even_wanted && is_wanted(*found->second)) || recent_.size() == 1) {
          ++path;
          continue;
        }
        path = drop(path);
      }
    }
  }

  void drop_patches() {
    for (const std::string& key : recent_) {
      Entry& entry = *entries_.at(key);
      if (cached_bytes_ <= options_.cache_bytes) return;
      if (is_wanted(entry) || &key == &recent_.back()) continue;
      cached_bytes_ -= patch_bytes(entry);
      entry.patches = nullptr;
    }
  }

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;  // any state, the queue or stopping_
  bool stopping_ = false;
  uint64_t num_prefetches_ = 0;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::deque<std::weak_ptr<Entry>> queue_;  // may hold entries that were loaded or dropped since
  std::list<std::string> recent_;           // ready images, least recently used first
  size_t cached_bytes_ = 0;
  int64_t num_loading_ahead_ = 0;  // images that workers are decoding
  std::vector<std::thread> workers_;
};

PixelStore::PixelStore(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
PixelStore::~PixelStore() = default;

void PixelStore::prefetch(const std::vector<ImageRef>& images) { impl_->prefetch(images); }

std::shared_ptr<const Patches> PixelStore::get(const ImageRef& image) {
  std::shared_ptr<const Patches> patches = impl_->get(image);
  if (patches->grid_thw != image.grid_thw) {
    const int patch = impl_->patch_options().patch_size;
    throw data_error(
        {.error = "the size of an image differs from its record",
         .where = image.path,
         .what = fmt::format(
             "as the model sees it the file is {} x {} px (width x height), by its record {} x {}",
             patches->grid_thw[2] * patch, patches->grid_thw[1] * patch, image.grid_thw[2] * patch,
             image.grid_thw[1] * patch),
         .fix = "correct the record's \"width\" and \"height\", or replace the file"});
  }
  return patches;
}

}  // namespace rematch
