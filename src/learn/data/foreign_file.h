#pragma once
#include <string>
#include <string_view>

#include "base/json.h"

namespace rematch {

/// Advice for annotations of another program.
inline constexpr const char* kImportAdvice =
    "annotations become records with `rematch data from-coco COCO.json --images DIR --out DIR`, "
    "from-voc, from-yolo, from-labelme, from-csv, from-hf, from-qwen or from-swift (docs/data.md)";

/// @param file  for the advice
/// @throws UserError (data) for bytes that are not UTF-8
void require_utf8(std::string_view text, const std::string& where,
                  const std::string& file = "FILE");

/// parse_json() for JSON that people and scripts write: names another encoding.
/// @throws UserError (data)
Json parse_written_json(std::string_view text, const std::string& where);

/// Refuses a file that does not begin with a record: annotations of another program, a JSON array,
/// pretty-printed JSON, lines that end with a comma, UTF-16. Returns if its first line has a list
/// of objects, whatever else is wrong with it.
/// @throws UserError (data) with what it begins with and the command that converts it
void refuse_foreign_file(const std::string& path, std::string_view bytes);

}  // namespace rematch
