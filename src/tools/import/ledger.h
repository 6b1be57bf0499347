#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/strings.h"
#include "tools/import/reasons.h"

namespace rematch {

/// Number of things left out for one reason, and the first place.
struct Loss {
  int64_t count = 0;
  std::string first;  ///< "FILE:7: entry 2: …"
};
/// By reason, e.g. "a box with swapped corners".
using Losses = std::map<std::string, Loss>;

/// Thrown for a file or a record that is left out.
struct LeftOut {
  explicit LeftOut(std::string why, std::string more = "")
      : reason(std::move(why)), what(std::move(more)) {}

  std::string reason, what;
};

/// Counts losses and changes of an import by reason.
class Ledger {
 public:
  /// @param has_others  the record has objects that can be read, which `drop_unreadable` keeps
  void lose_record(const std::string& reason, const std::string& place, bool has_others = false) {
    add(records_, reason, place);
    ++num_records_lost_;
    num_keepable_ += has_others;
  }
  void lose_object(const std::string& reason, const std::string& place) {
    add(objects_, reason, place);
    ++num_objects_lost_;
  }
  /// Counts the record that `read` leaves out, if it does.
  /// @param where  place of the record
  void attempt(const std::string& where, const std::function<void()>& read);
  /// Counts a change that loses nothing, e.g. "boxes clipped to the image".
  void note(const std::string& what, int64_t count = 1) {
    if (count > 0) notes_[what] += count;
  }

  const Losses& records() const { return records_; }
  const Losses& objects() const { return objects_; }
  const std::map<std::string, int64_t>& notes() const { return notes_; }
  int64_t num_records_lost() const { return num_records_lost_; }
  bool has_losses() const { return num_records_lost_ + num_objects_lost_ > 0; }

  /// "2 × a box with swapped corners, 1 × …", most frequent first.
  static std::string list(const Losses& losses);
  /// The fixes of at most two reasons, most frequent first.
  /// @param otherwise  if no reason has one
  static std::string fix_of(const Losses& losses, const std::string& otherwise);
  /// The line that begins a summary: "left out 3 of 10 records: …"; empty without losses.
  /// @param num_kept  records that were written
  std::string summary(int64_t num_kept) const;
  /// The first place of each reason.
  Strings places() const;
  /// The fixes of the two most frequent reasons to leave out records, a general one if they have
  /// none; and the records that `drop_unreadable` keeps.
  std::string fix() const;

 private:
  static void add(Losses& losses, const std::string& reason, const std::string& place);

  Losses records_, objects_;
  std::map<std::string, int64_t> notes_;
  int64_t num_records_lost_ = 0, num_objects_lost_ = 0, num_keepable_ = 0;
};

}  // namespace rematch
