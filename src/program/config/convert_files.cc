#include "program/config/convert_files.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "program/config/convert.h"

namespace rematch {
namespace {

constexpr double kMostWeight = 1000;
constexpr const char* kFix =
    "write `data/train.jsonl`, `[a.jsonl, b.jsonl]`, or a list of `{path: a.jsonl, weight: 0.5}`";

class FileReader {
 public:
  FileReader(const KeySpec& spec, std::vector<Problem>& problems)
      : spec_(spec), problems_(problems) {}

  Json read_entry(const Node& node) {
    if (node.is_map()) return read_weighted(node);
    return is_path(node) ? Json(node.scalar) : Json();
  }

  void report(const std::string& error, const Node& node, const std::string& what,
              const std::string& fix = kFix) {
    problems_.push_back(
        {fmt::format("`{}`: {}", spec_.path, error), node.origin.text(), what, fix});
  }

 private:
  bool is_path(const Node& node) {
    if (node.is_scalar() && !python_strip(node.scalar).empty()) return true;
    report("an entry is not a path", node, fmt::format("it is {}", shorten(node)));
    return false;
  }

  Json read_weighted(const Node& node) {
    for (const Member& member : node.members) {
      if (member.key != "path" && member.key != "weight")
        report(fmt::format("unknown key `{}` in an entry", member.key), member.value,
               "a file has `path` and `weight`");
    }
    const Node* path = node.find("path");
    if (path == nullptr)
      report("an entry has no `path`", node, fmt::format("it is {}", shorten(node)));
    const Json weight = read_weight(node.find("weight"));
    if (path == nullptr || !is_path(*path) || weight.is_null()) return nullptr;
    if (weight == 1.0) return path->scalar;
    return {{"path", path->scalar}, {"weight", weight}};
  }

  Json read_weight(const Node* node) {
    if (node == nullptr || node->is_null()) return 1.0;
    const Json value = node->quoted ? Json() : untyped_json(*node);
    const double weight = value.is_number() ? value.get<double>() : 0;
    if (weight > 0 && weight <= kMostWeight) return weight;
    report("a weight is out of range", *node,
           fmt::format("{} is not a number above 0 and at most {}", shorten(*node), kMostWeight),
           "0.5 uses half of the records in each epoch, 2 uses each twice; to use none, remove "
           "the file");
    return nullptr;
  }

  const KeySpec& spec_;
  std::vector<Problem>& problems_;
};

}  // namespace

Json convert_files(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  if (node.is_scalar()) return node.scalar;
  FileReader reader(spec, problems);
  if (node.is_map()) return Json::array({reader.read_entry(node)});
  Json list = Json::array();
  for (const Node& item : node.items) list.push_back(reader.read_entry(item));
  if (list.empty()) reader.report("no file is listed", node, "the list is empty");
  return list.size() == 1 && list.front().is_string() ? list.front() : list;
}

}  // namespace rematch
