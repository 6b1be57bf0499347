#pragma once
#include "tools/import/foreign.h"

// The reader of objects that all importers share.
namespace rematch {

/// The note for an object that shows many, or that is marked as one.
inline constexpr char kCrowd[] = "crowds, which are no objects";

/// Reads the marks of an object, which may also be in its `attributes` (CVAT) or `flags` (labelMe):
/// those that make it none ("iscrowd", "ignore"), and the angle of its box. Counts objects marked
/// difficult, and those with a score below 1, which a model has answered.
void read_marks(const Json& value, ForeignEntry& entry, Ledger& ledger);

/// Takes points as what their number says: two are the corners of a box, four or more an outline.
void set_points(ForeignEntry& entry, const Outline& points);

/// Box, outline and marks of a JSON object, by the names that COCO, Hugging Face and answers have
/// for them.
/// @param form  of four numbers; two points are corners
ForeignEntry read_entry(const Json& value, std::string place, BoxForm form, Ledger& ledger);

/// The name of an object: the first of several members that is there, null without one. Counts
/// those that say another name.
const Json& name_member(const Json& entry, std::initializer_list<const char*> keys, Ledger& ledger);

/// Reads a record of one image: its name, under one of the usual keys, and `objects`, a list of
/// objects or an object of lists, with boxes, outlines and names under the usual keys.
/// @param form  of four numbers
/// @throws LeftOut for a record without an image or objects
ForeignImage read_object_record(const Json& record, const std::string& path,
                                const std::string& where, BoxForm form, ForeignSet& set);

}  // namespace rematch
