#pragma once
#include <string>

namespace rematch {

/// A form of annotations that is read, and the command that reads it.
struct ImportForm {
  const char *command, *name;
};

inline constexpr ImportForm kImportForms[] = {
    {"from-coco", "COCO's instances"},
    {"from-yolo", "Ultralytics YOLO"},
    {"from-voc", "Pascal VOC"},
    {"from-labelme", "labelMe"},
    {"from-csv", "a CSV with boxes"},
    {"from-hf", "Hugging Face's metadata.jsonl with boxes"},
    {"from-qwen", "conversations with boxes"}};

/// Refuses a file or directory as one of the forms.
/// @param fix  empty: names all forms, and how to convert others
/// @throws UserError (data)
[[noreturn]] void refuse_source(const char* command, const std::string& where,
                                const std::string& what, const std::string& fix = "");

}  // namespace rematch
