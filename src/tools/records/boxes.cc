#include "tools/records/boxes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

bool is_polygon(const SceneObject& object) { return object.geometry.kind == GeometryKind::kPoly; }

std::array<int, 4> bounding_box(const std::vector<int>& bins) {
  std::array<int, 4> box{bins[0], bins[1], bins[0], bins[1]};
  for (size_t i = 0; i + 1 < bins.size(); i += 2) {
    box[0] = std::min(box[0], bins[i]);
    box[1] = std::min(box[1], bins[i + 1]);
    box[2] = std::max(box[2], bins[i]);
    box[3] = std::max(box[3], bins[i + 1]);
  }
  return box;
}

}  // namespace

BoxesWritten write_boxes(const std::string& path, const std::string& out) {
  const RecordFile file(path);
  const InputFiles inputs = file.inputs();
  inputs.refuse(out);
  BoxesWritten written;
  std::string lines;
  for (const Sample& sample : file.samples()) {
    ++written.num_records;
    if (std::none_of(sample.objects.begin(), sample.objects.end(), is_polygon)) {
      lines += file.line_for(sample, out) + "\n";
      continue;
    }
    Json record = file.record_for(sample, out);
    for (size_t i = 0; i < sample.objects.size(); ++i) {
      if (!is_polygon(sample.objects[i])) continue;
      const std::array<int, 4> box = bounding_box(sample.objects[i].geometry.bins);
      record["objects"][i].erase("poly");
      record["objects"][i]["bbox_2d"] = box;
      ++written.num_polygons;
      written.num_flat += box[0] == box[2] || box[1] == box[3];
    }
    lines += json_line(record);
  }
  if (const std::string parent = std::filesystem::path(out).parent_path().string(); !parent.empty())
    make_directories(parent);
  write_output(out, inputs, lines);
  return written;
}

}  // namespace rematch
