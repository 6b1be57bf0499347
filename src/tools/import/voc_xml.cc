#include "tools/import/voc_xml.h"

#include <fmt/core.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

/// True for `&c;`, which only the file's own DTD could explain.
bool has_own_entity(const std::string& text) {
  static const std::regex unknown(
      R"(&(?!(amp|lt|gt|quot|apos|#\d+|#x[\da-fA-F]+);)[^&;<\s]{1,99};)");
  return text.find('&') != text.npos && std::regex_search(text, unknown);
}

}  // namespace

void refuse_xml(const std::string& what, const char* reason) { throw LeftOut{reason, what}; }

pugi::xml_node read_annotation_root(const std::string& text, pugi::xml_document& document) {
  if (has_own_entity(text))
    refuse_xml(
        "it has an entity other than &amp; and the like: write its text, or &amp; for a lone &");
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_comments | pugi::parse_pi);
  if (!parsed)
    refuse_xml(fmt::format("{} (byte {})", parsed.description(), int64_t{parsed.offset}));
  int num_roots = 0;
  for (const pugi::xml_node node : document.children())
    num_roots += node.type() == pugi::node_element;
  const pugi::xml_node root = document.child("annotation");
  if (!root) refuse_xml("it has no <annotation>");
  if (num_roots > 1) refuse_xml("it has two root elements", reason::kTwoRoots);
  if (!root.first_child()) refuse_xml("<annotation> is empty");
  return root;
}

pugi::xml_node only_child(const pugi::xml_node& node, const char* name, const char* reason) {
  const pugi::xml_node child = node.child(name);
  if (child.next_sibling(name)) refuse_xml(fmt::format("two <{}>", name), reason);
  return child;
}

std::string child_text(const pugi::xml_node& node, const char* name, const char* reason) {
  const pugi::xml_node child = only_child(node, name, reason);
  if (child.first_child() != child.last_child() || child.first_child().type() == pugi::node_element)
    refuse_xml(fmt::format("the text of <{}> is in pieces", name), reason);
  const std::string text = child.child_value();
  if (!is_valid_utf8(text)) refuse_xml(fmt::format("the text of <{}>", name), reason::kNotUtf8);
  return python_strip(text);
}

double child_number(const pugi::xml_node& node, const char* name) {
  const std::string text = child_text(node, name);
  const std::optional<double> number = parse_number(text);
  if (text.empty()) refuse_xml(fmt::format("it has no <{}>", name));
  if (!number) refuse_xml(fmt::format("<{}> is {}, not a number", name, show_json(text)));
  return *number;
}

Outline polygon_points(const pugi::xml_node& polygon) {
  Outline points;
  for (int i = 1; polygon.child(fmt::format("x{}", i).c_str()); ++i)
    points.push_back({child_number(polygon, fmt::format("x{}", i).c_str()),
                      child_number(polygon, fmt::format("y{}", i).c_str())});
  if (!points.empty() && std::distance(polygon.begin(), polygon.end()) != 2 * std::ssize(points))
    refuse_xml("<polygon> has more than x1, y1, …");
  return points;
}

bool is_stray_geometry(pugi::xml_node node) {
  constexpr const char* kGeometries[] = {"bndbox", "robndbox", "polygon", "points",
                                         "object", "objects",  "box"};
  const pugi::xml_node owner = node.parent();
  const bool is_outermost = owner.parent() == node.root();
  if (node.type() == pugi::node_pcdata) return is_outermost;  // such as the entity of an object
  if (node.name() == std::string_view("annotation")) return true;
  if (node.name() == std::string_view("object")) return !is_outermost;
  if (!is_among(node.name(), kGeometries)) return false;
  while (std::string_view(node.parent().name()) != "annotation") node = node.parent();
  return std::string_view(node.name()) != "object";
}

}  // namespace rematch
