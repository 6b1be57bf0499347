#include "learn/estep/answer/coord_token_text.h"

#include <fmt/core.h>

#include "base/json.h"

namespace rematch {
namespace {

std::string coord_string(int bin) { return fmt::format("\"<|coord_{}|>\"", bin); }

void write_geometry(const Geometry& geometry, std::string& out) {
  const bool nested = geometry.kind == GeometryKind::kPoly;
  out += '[';
  for (size_t i = 0; i < geometry.bins.size(); ++i) {
    if (i > 0) out += ", ";
    if (nested && i % 2 == 0) out += '[';
    out += coord_string(geometry.bins[i]);
    if (nested && i % 2 == 1) out += ']';
  }
  out += ']';
}

void write_object(const SceneObject& object, int64_t index, AnswerText& answer) {
  answer.text += fmt::format("\"object_{}\": {{\"desc\": ", index);
  const std::string desc = python_json_string(object.desc);
  const size_t begin = answer.text.size() + 1;
  answer.text += desc;
  answer.marks.push_back({begin, answer.text.size() - 1});
  answer.text += fmt::format(", \"{}\": ", geometry_key(object.geometry.kind));
  write_geometry(object.geometry, answer.text);
  answer.text += '}';
}

void write_objects(const Objects& objects, int64_t first_index, AnswerText& answer) {
  for (size_t i = 0; i < objects.size(); ++i) {
    if (i > 0) answer.text += ", ";
    write_object(objects[i], first_index + i, answer);
  }
}

}  // namespace

AnswerText answer_text(const Objects& objects) {
  AnswerText answer{"{", {}};
  write_objects(objects, 1, answer);
  answer.text += '}';
  return answer;
}

AnswerText append_text(const Objects& missing, int64_t first_index, bool after_entry) {
  AnswerText answer{!missing.empty() && after_entry ? ", " : "", {}};
  write_objects(missing, first_index, answer);
  answer.text += '}';
  return answer;
}

}  // namespace rematch
