#include "e2e/file_journal.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

namespace rematch::test {
namespace {

namespace fs = std::filesystem;

/// Something done to the bytes of a file.
struct ByteChange {
  bool is_truncation = false;
  int64_t number = 0;
  std::string_view bytes;
};

/// A file or directory, whatever its names are.
struct Inode {
  bool is_directory = false;
  std::vector<ByteChange> changes;
  size_t num_synced = 0;  ///< changes that are on the disk
};

/// A name in a directory (an index of the inodes).
struct Place {
  size_t directory = 0;
  std::string name;
};

/// Something done to names: made, removed, moved, exchanged.
struct NameChange {
  std::string kind;
  Place at;
  Place to;          ///< rename, exchange
  size_t inode = 0;  ///< create, mkdir
  std::vector<size_t> directories() const {
    return kind == "rename" || kind == "exchange" ? std::vector{at.directory, to.directory}
                                                  : std::vector{at.directory};
  }
};

using Names = std::map<size_t, std::map<std::string, size_t>>;  ///< of each directory

void perform(const NameChange& change, Names& names) {
  auto& entries = names[change.at.directory];
  if (change.kind == "create" || change.kind == "mkdir") {
    entries[change.at.name] = change.inode;
  } else if (change.kind == "exchange") {
    std::swap(entries[change.at.name], names[change.to.directory][change.to.name]);
  } else if (change.kind == "rename") {
    const size_t inode = entries.at(change.at.name);
    entries.erase(change.at.name);
    names[change.to.directory][change.to.name] = inode;
  } else {
    entries.erase(change.at.name);
  }
}

void perform(const ByteChange& change, std::string& content, bool zeros, size_t length) {
  if (change.is_truncation) {
    content.resize(static_cast<size_t>(change.number), '\0');
    return;
  }
  const size_t begin = static_cast<size_t>(change.number);
  if (content.size() < begin + length) content.resize(begin + length, '\0');
  for (size_t i = 0; i < length; ++i) content[begin + i] = zeros ? '\0' : change.bytes[i];
}

/// Effects of operations, and how much of them is on the disk.
class Disk {
 public:
  explicit Disk(std::string root) : root_(std::move(root)) {
    inodes_.push_back({.is_directory = true, .changes = {}});
  }

  void run(const FileOperation& operation) {
    const std::string& name = operation.name;
    if (name == "sync") {
      sync(find(operation.path));
    } else if (name == "write" || name == "truncate") {
      inodes_[find_or_make(operation.path)].changes.push_back({.is_truncation = name == "truncate",
                                                               .number = operation.number,
                                                               .bytes = operation.bytes});
    } else if (name == "create" || name == "mkdir") {
      make(operation.path, name);
    } else {
      change({.kind = name,
              .at = place(operation.path),
              .to = operation.second.empty() ? Place{} : place(operation.second)});
    }
  }

  Tree after_loss(LostNames lost_names, LostBytes lost_bytes,
                  const std::function<double()>& draw) const {
    Names names;
    const std::vector<bool> kept = kept_changes(lost_names, draw);
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (kept[i]) perform(changes_[i], names);
    }
    Tree tree;
    collect(0, "", names, lost_bytes, draw, tree);
    return tree;
  }

 private:
  Place place(const std::string& path) const {
    const fs::path parent = fs::path(path).parent_path();
    return {find(parent.string()), fs::path(path).filename().string()};
  }

  size_t find(const std::string& path) const {
    size_t inode = 0;
    for (const fs::path& part : fs::path(path).lexically_relative(root_)) {
      if (part != ".") inode = names_.at(inode).at(part.string());
    }
    return inode;
  }

  size_t make(const std::string& path, const std::string& kind) {
    inodes_.push_back({.is_directory = kind == "mkdir", .changes = {}});
    change({.kind = kind, .at = place(path), .to = {}, .inode = inodes_.size() - 1});
    return inodes_.size() - 1;
  }

  // Opened by a function that the shim does not see.
  size_t find_or_make(const std::string& path) {
    const Place where = place(path);
    const auto& entries = names_[where.directory];
    const auto found = entries.find(where.name);
    return found == entries.end() ? make(path, "create") : found->second;
  }

  void change(NameChange change) {
    perform(change, names_);
    changes_.push_back(std::move(change));
  }

  void sync(size_t inode) {
    inodes_[inode].num_synced = inodes_[inode].changes.size();
    num_synced_ = changes_.size();
    if (inodes_[inode].is_directory) synced_until_[inode] = changes_.size();
  }

  std::vector<bool> kept_changes(LostNames lost, const std::function<double()>& draw) const {
    std::vector<bool> kept(changes_.size(), lost == LostNames::kNone);
    if (lost == LostNames::kNone) return kept;
    if (lost == LostNames::kAllUnsynced) {
      std::fill_n(kept.begin(), num_synced_, true);
      return kept;
    }
    // A change on the disk needs the changes before it in the same directories.
    std::map<size_t, size_t> until = synced_until_;
    std::vector<bool> needed(changes_.size(), false);
    for (size_t i = changes_.size(); i-- > 0;) {
      const std::vector<size_t> directories = changes_[i].directories();
      needed[i] = std::any_of(directories.begin(), directories.end(),
                              [&](size_t one) { return until[one] > i; });
      for (const size_t one : directories) until[one] = std::max(until[one], needed[i] ? i + 1 : 0);
    }
    std::set<size_t> ended;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const std::vector<size_t> directories = changes_[i].directories();
      const bool goes_on = std::none_of(directories.begin(), directories.end(),
                                        [&](size_t one) { return ended.count(one) != 0; });
      kept[i] = goes_on && (needed[i] || draw() < 0.5);
      if (!kept[i]) ended.insert(directories.begin(), directories.end());
    }
    return kept;
  }

  std::string content_of(const Inode& file, LostBytes lost,
                         const std::function<double()>& draw) const {
    std::string content;
    const auto& changes = file.changes;
    for (size_t i = 0; i < file.num_synced; ++i)
      perform(changes[i], content, false, changes[i].bytes.size());
    const size_t num_unsynced = changes.size() - file.num_synced;
    if (lost == LostBytes::kAll || num_unsynced == 0) return content;
    const size_t torn =
        lost == LostBytes::kTorn
            ? file.num_synced + static_cast<size_t>(draw() * static_cast<double>(num_unsynced))
            : changes.size();
    const bool ends = lost == LostBytes::kTorn && draw() < 0.5;
    for (size_t i = file.num_synced; i < changes.size(); ++i) {
      const size_t size = changes[i].bytes.size();
      if (i == torn)
        perform(changes[i], content, false,
                static_cast<size_t>(draw() * static_cast<double>(size)));
      if (i >= torn && ends) break;
      if (i != torn) perform(changes[i], content, lost == LostBytes::kZeros || i > torn, size);
    }
    return content;
  }

  void collect(size_t directory, const std::string& prefix, const Names& names, LostBytes lost,
               const std::function<double()>& draw, Tree& tree) const {
    const auto found = names.find(directory);
    if (found == names.end()) return;
    for (const auto& [name, inode] : found->second) {
      if (!inodes_[inode].is_directory) {
        tree[prefix + name] = content_of(inodes_[inode], lost, draw);
        continue;
      }
      tree[prefix + name + "/"] = "";
      collect(inode, prefix + name + "/", names, lost, draw, tree);
    }
  }

  std::string root_;
  std::vector<Inode> inodes_;  ///< the first is the root
  Names names_;                ///< as the program sees them
  std::vector<NameChange> changes_;
  /// changes that were made before the last sync of anything
  size_t num_synced_ = 0;
  /// directory → changes that were made before its own last sync
  std::map<size_t, size_t> synced_until_;
};

std::string normal(std::string_view path) {
  return path.empty() ? "" : fs::path(path).lexically_normal().string();
}

}  // namespace

FileJournal::FileJournal(std::string_view journal, const std::string& root) : root_(root) {
  while (!journal.empty()) {
    const size_t line_end = journal.find('\n');
    std::vector<std::string_view> fields;
    std::string_view line = journal.substr(0, line_end);
    for (size_t tab = 0; tab != std::string_view::npos; line.remove_prefix(tab + 1)) {
      tab = line.find('\t');
      fields.push_back(line.substr(0, tab));
      if (tab == std::string_view::npos) break;
    }
    if (line_end == std::string_view::npos || fields.size() != 5)
      throw std::runtime_error("not a journal of file operations");
    const size_t size = std::stoul(std::string(fields[2]));
    operations_.push_back({.name = std::string(fields[0]),
                           .number = std::stoll(std::string(fields[1])),
                           .bytes = std::string(journal.substr(line_end + 1, size)),
                           .path = normal(fields[3]),
                           .second = normal(fields[4])});
    journal.remove_prefix(line_end + 1 + size);
  }
}

Tree FileJournal::after(size_t count, LostNames names, LostBytes bytes,
                        const std::function<double()>& draw) const {
  Disk disk(root_);
  for (size_t i = 0; i < std::min(count, operations_.size()); ++i) disk.run(operations_[i]);
  return disk.after_loss(names, bytes, draw);
}

void write_tree(const Tree& tree, const std::string& directory) {
  for (const auto& [path, content] : tree) {
    const fs::path target = fs::path(directory) / path;
    if (path.back() == '/') {
      fs::create_directories(target);
    } else {
      std::ofstream(target, std::ios::binary) << content;
    }
  }
}

}  // namespace rematch::test
