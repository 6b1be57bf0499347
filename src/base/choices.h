#pragma once
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Refuses a name that is not in a table of choices.
/// @throws UserError (config) with the existing names and the nearest one
[[noreturn]] void refuse_choice(std::string_view name, const std::string& kind,
                                const std::string& key, const std::string& way_out,
                                const Strings& names);

/// The table of the values of a setting. The configuration takes the legal values from it, the code
/// the implementation of a value, the documentation its meaning. A row is a struct with the texts
/// `name` and `meaning`, and further members that the owner of the table needs.
template <typename Row>
class Choices {
 public:
  /// @param kind     what a row is, for errors, e.g. "packing selector".
  /// @param key  last part of the YAML key that chooses
  /// @param way_out  a remedy other than these names, e.g.
  /// "`training.packing: false`"; may be empty
  Choices(std::string kind, std::string key, std::string way_out, std::initializer_list<Row> rows)
      : kind_(std::move(kind)), key_(std::move(key)), way_out_(std::move(way_out)), rows_(rows) {}

  /// Adds a row at the end. Call it before the first configuration is read.
  /// @return true, so that a static constant can call it
  bool add(Row row) {
    rows_.push_back(std::move(row));
    return true;
  }

  /// The row of that name.
  /// @throws UserError (config) when there is none
  const Row& find(std::string_view name) const {
    for (const Row& row : rows_) {
      if (row.name == name) return row;
    }
    refuse_choice(name, kind_, key_, way_out_, names());
  }

  /// The row of that name, to complete it before it is used.
  /// @throws as find()
  Row& edit(std::string_view name) {
    for (Row& row : rows_) {
      if (row.name == name) return row;
    }
    refuse_choice(name, kind_, key_, way_out_, names());
  }

  /// Rows in the order of the documentation; they never move.
  const std::deque<Row>& rows() const { return rows_; }

  Strings names() const {
    Strings names;
    for (const Row& row : rows_) names.emplace_back(row.name);
    return names;
  }

  /// "`a` (what it means), `b` (…)", for the documentation of the key.
  std::string meanings() const {
    std::string text;
    for (const Row& row : rows_)
      text += std::string(text.empty() ? "`" : ", `") + std::string(row.name) + "` (" +
              std::string(row.meaning) + ")";
    return text;
  }

  const std::string& way_out() const { return way_out_; }

 private:
  std::string kind_, key_, way_out_;
  std::deque<Row> rows_;
};

}  // namespace rematch
