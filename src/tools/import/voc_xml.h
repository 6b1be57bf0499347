#pragma once
#include <pugixml.hpp>

#include "base/flow/clip_outline.h"
#include "tools/import/ledger.h"

// The XML of Pascal VOC. Each function throws LeftOut for what it cannot read.
namespace rematch {

/// Leaves out a file or an object.
[[noreturn]] void refuse_xml(const std::string& what, const char* reason = reason::kDamagedRecord);

/// The only <annotation> of a document that declares no entity.
pugi::xml_node read_annotation_root(const std::string& text, pugi::xml_document& document);

/// The only child of a name; null without one.
/// @param reason  of several
pugi::xml_node only_child(const pugi::xml_node& node, const char* name,
                          const char* reason = reason::kDamagedRecord);

/// Its text, in one piece; "" without one.
/// @param reason  of a text that cannot be used
std::string child_text(const pugi::xml_node& node, const char* name,
                       const char* reason = reason::kDamagedRecord);

/// The number of a child.
double child_number(const pugi::xml_node& node, const char* name);

/// The corners of a polygon, x1, y1, x2, …
Outline polygon_points(const pugi::xml_node& polygon);

/// True for a box, an outline or an object of another layout, not inside an <object> of
/// <annotation>.
bool is_stray_geometry(pugi::xml_node node);

}  // namespace rematch
