#include "tools/records/boxes.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/flow/bins.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

bool is_polygon(const SceneObject& object) { return object.geometry.kind == GeometryKind::kPoly; }

}  // namespace

BoxesWritten write_boxes(const std::string& path, const std::string& out) {
  const RecordFile file(path);
  const InputFiles inputs = file.inputs();
  inputs.refuse(out);
  BoxesWritten written;
  std::string lines;
  for (const Sample& sample : file.samples()) {
    ++written.num_records;
    if (std::ranges::none_of(sample.objects, is_polygon)) {
      lines += file.line_for(sample, out) + "\n";
      continue;
    }
    Json record = file.record_for(sample, out);
    for (size_t i = 0; i < sample.objects.size(); ++i) {
      if (!is_polygon(sample.objects[i])) continue;
      const Aabb box = bounding_box(sample.objects[i].geometry);
      record["objects"][i].erase("poly");
      record["objects"][i]["bbox_2d"] = {box.min_x, box.min_y, box.max_x, box.max_y};
      ++written.num_polygons;
      written.num_flat += box.min_x == box.max_x || box.min_y == box.max_y;
    }
    lines += json_line(record);
  }
  if (const std::string parent = std::filesystem::path(out).parent_path().string(); !parent.empty())
    make_directories(parent);
  write_output(out, inputs, lines);
  return written;
}

}  // namespace rematch
