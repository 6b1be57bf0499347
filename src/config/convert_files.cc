#include "config/convert_files.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/convert.h"

namespace rematch {
namespace {

constexpr double kMostWeight = 1000;
constexpr const char* kFix =
    "write `data/train.jsonl`, `[a.jsonl, b.jsonl]`, or a list of `{path: a.jsonl, weight: 0.5}`";

class FileReader {
 public:
  FileReader(const KeySpec& spec, std::vector<Problem>& problems)
      : spec_(spec), problems_(problems) {}

  Json entry(const Node& node) {
    if (node.is_map()) return weighted(node);
    return is_path(node) ? Json(node.scalar) : Json();
  }

  void problem(const std::string& error, const Node& node, const std::string& what,
               const std::string& fix = kFix) {
    problems_.push_back(
        {fmt::format("`{}`: {}", spec_.path, error), node.origin.text(), what, fix});
  }

 private:
  bool is_path(const Node& node) {
    if (node.is_scalar() && !python_strip(node.scalar).empty()) return true;
    problem("an entry is no path", node, fmt::format("it is {}", brief(node)));
    return false;
  }

  Json weighted(const Node& node) {
    for (const Member& member : node.members) {
      if (member.key != "path" && member.key != "weight")
        problem(fmt::format("unknown key `{}` of a file", member.key), member.value,
                "a file has `path` and `weight`");
    }
    const Node* path = node.find("path");
    if (path == nullptr)
      problem("a file without `path`", node, fmt::format("it is {}", brief(node)));
    const Json weight = weight_of(node.find("weight"));
    if (path == nullptr || !is_path(*path) || weight.is_null()) return nullptr;
    if (weight == 1.0) return path->scalar;
    return {{"path", path->scalar}, {"weight", weight}};
  }

  Json weight_of(const Node* node) {
    if (node == nullptr || node->is_null()) return 1.0;
    const Json value = node->quoted ? Json() : free_json(*node);
    const double weight = value.is_number() ? value.get<double>() : 0;
    if (weight > 0 && weight <= kMostWeight) return weight;
    problem("a weight is out of range", *node,
            fmt::format("{} is no number above 0 and up to {}", brief(*node), kMostWeight),
            "0.5 takes half of the records in each epoch, 2 takes each twice; leave out a file "
            "that is not to be used");
    return nullptr;
  }

  const KeySpec& spec_;
  std::vector<Problem>& problems_;
};

}  // namespace

Json convert_files(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  if (node.is_scalar()) return node.scalar;
  FileReader reader(spec, problems);
  if (node.is_map()) return Json::array({reader.entry(node)});
  Json list = Json::array();
  for (const Node& item : node.items) list.push_back(reader.entry(item));
  if (list.empty()) reader.problem("no file is listed", node, "the list is empty");
  return list.size() == 1 && list.front().is_string() ? list.front() : list;
}

}  // namespace rematch
