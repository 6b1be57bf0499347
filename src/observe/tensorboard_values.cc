// @source tensorboard/compat/proto/{summary,tensor,tensor_shape}.proto,
// tensorboard/plugins/hparams/plugin_data.proto, google/protobuf/
//         struct.proto (field numbers)
#include "observe/tensorboard_values.h"

#include <cmath>
#include <cstdlib>

#include "observe/protobuf.h"

namespace rematch {
namespace {

using namespace protobuf;  // NOLINT(google-build-using-namespace): this file is about nothing else

constexpr uint64_t kFloat = 1, kString = 7;  // DataType

/// SummaryMetadata{plugin_data{plugin_name, content}}
std::string plugin_metadata(const std::string& plugin, const std::string& content) {
  std::string data, metadata;
  put_bytes(data, 1, plugin);
  if (!content.empty()) put_bytes(data, 2, content);
  put_bytes(metadata, 1, data);
  return metadata;
}

/// TensorShapeProto with one dimension.
std::string tensor_shape(uint64_t size) {
  std::string dimension, shape;
  if (size > 0) put_number(dimension, 1, size);
  put_bytes(shape, 2, dimension);
  return shape;
}

/// google.protobuf.Value
std::string json_value(const std::string& text) {
  std::string value;
  if (text == "true" || text == "false") {
    put_number(value, 4, text == "true" ? 1 : 0);
    return value;
  }
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(number)) {
    put_tag(value, 2, kFixed64);
    put_fixed(value, number);
  } else {
    put_bytes(value, 3, text);
  }
  return value;
}

}  // namespace

std::string scalar_value(const std::string& tag, float value) {
  std::string bytes;
  put_bytes(bytes, 1, tag);
  put_tag(bytes, 2, kFixed32);  // simple_value
  put_fixed(bytes, value);
  return bytes;
}

std::string image_value(const std::string& tag, const PngPicture& picture) {
  constexpr uint64_t kRgb = 3;
  std::string image, bytes;
  put_number(image, 1, static_cast<uint64_t>(picture.height_px));
  put_number(image, 2, static_cast<uint64_t>(picture.width_px));
  put_number(image, 3, kRgb);
  put_bytes(image, 4, picture.bytes);
  put_bytes(bytes, 1, tag);
  put_bytes(bytes, 4, image);
  return bytes;
}

std::string text_value(const std::string& tag, const std::string& text) {
  std::string tensor, bytes;
  put_number(tensor, 1, kString);
  put_bytes(tensor, 2, tensor_shape(1));
  put_bytes(tensor, 8, text);
  put_bytes(bytes, 1, tag);
  put_bytes(bytes, 8, tensor);
  put_bytes(bytes, 9, plugin_metadata("text", ""));
  return bytes;
}

std::string hparams_value(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string session, content, tensor, bytes;
  for (const auto& [key, text] : settings) {
    std::string entry;
    put_bytes(entry, 1, key);
    put_bytes(entry, 2, json_value(text));
    put_bytes(session, 1, entry);
  }
  put_bytes(content, 3, session);  // HParamsPluginData.session_start_info
  put_number(tensor, 1, kFloat);   // readers need a tensor, even an empty one
  put_bytes(tensor, 2, tensor_shape(0));
  put_bytes(bytes, 1, "_hparams_/session_start_info");
  put_bytes(bytes, 8, tensor);
  put_bytes(bytes, 9, plugin_metadata("hparams", content));
  return bytes;
}

}  // namespace rematch
