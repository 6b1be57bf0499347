#include "model/checkpoint/image_area.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace rematch {
namespace {

// Files with settings of the image processor (videos have another file).
constexpr const char* kFiles[] = {"processor_config.json", "preprocessor_config.json"};

/// One of the two limits: older files have it at the top level, newer ones in `size`. The top level
/// takes precedence.
struct Limit {
  const char* top;
  const char* in_size;
  int64_t pixels;
};

bool has_value(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

bool has_limit(const Json& processor, const Limit& limit) {
  if (has_value(processor, limit.top)) return processor[limit.top] == limit.pixels;
  const auto size = processor.find("size");
  return size != processor.end() && size->is_object() && has_value(*size, limit.in_size) &&
         (*size)[limit.in_size] == limit.pixels;
}

void set_limit(Json& processor, const Limit& limit) {
  if (has_value(processor, limit.top)) processor[limit.top] = limit.pixels;
  Json& size = processor["size"];
  if (!size.is_object()) size = Json::object();
  if (has_value(size, limit.top)) size[limit.top] = limit.pixels;
  size[limit.in_size] = limit.pixels;
}

/// The image settings in a file; null if it has none.
Json* image_processor(Json& root, const std::string& name) {
  if (!root.is_object()) return nullptr;
  if (name != kFiles[0]) return &root;
  const auto found = root.find("image_processor");
  return found != root.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

std::string processor_with_area(const std::string& text, const ImageArea& area,
                                const std::string& where) {
  Json root = parse_json(text, where);
  Json* processor = image_processor(root, std::filesystem::path(where).filename().string());
  const Limit limits[] = {{"min_pixels", "shortest_edge", area.min_pixels},
                          {"max_pixels", "longest_edge", area.max_pixels}};
  if (processor == nullptr ||
      (has_limit(*processor, limits[0]) && has_limit(*processor, limits[1])))
    return text;
  for (const Limit& limit : limits) set_limit(*processor, limit);
  return python_json(root, 2) + "\n";
}

void write_image_area(const std::string& model_dir, const std::string& directory,
                      const ImageArea& area) {
  for (const char* name : kFiles) {
    const std::string path = join_path(model_dir, name);
    if (!is_file(path)) continue;
    write_file_atomic(join_path(directory, name), processor_with_area(read_file(path), area, path));
  }
}

void copy_image_area(const std::string& adapter_dir, const std::string& directory) {
  for (const char* name : kFiles) {
    const std::string path = join_path(adapter_dir, name);
    if (is_file(path)) write_file_atomic(join_path(directory, name), read_file(path));
  }
}

bool has_image_processor(const std::string& directory) {
  return is_file(join_path(directory, kFiles[0])) || is_file(join_path(directory, kFiles[1]));
}

}  // namespace rematch
