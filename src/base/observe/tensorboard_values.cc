// @source tensorboard/compat/proto/{summary,tensor,tensor_shape}.proto (field numbers)
#include "base/observe/tensorboard_values.h"

#include "base/observe/protobuf.h"

namespace rematch {
namespace {

using namespace protobuf;  // NOLINT(google-build-using-namespace): this file is about nothing else

constexpr uint64_t kString = 7;  // DataType

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
  std::string dimension, shape, tensor, plugin, metadata, bytes;
  put_number(dimension, 1, 1);
  put_bytes(shape, 2, dimension);
  put_number(tensor, 1, kString);
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, text);
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);  // SummaryMetadata.plugin_data
  put_bytes(bytes, 1, tag);
  put_bytes(bytes, 8, tensor);
  put_bytes(bytes, 9, metadata);
  return bytes;
}

}  // namespace rematch
