#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/import/chat_steps.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {
    .command = "from-qwen",
    .ending = ".jsonl",
    .fix =
        "write \"messages\" with user and assistant, an answer [{\"bbox_2d\": [x1, y1, x2, y2], "
        "\"label\": \"cat\"}], and \"images\": [path]"};

/// The members of a record that training ignores and a round trip keeps.
std::string read_extra(const Json& record) {
  Json extra;
  for (const char* key : {"summary", "metadata"}) {
    if (const auto value = record.find(key); value != record.end()) extra[key] = *value;
  }
  return extra.is_null() ? "" : extra.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// @throws LeftOut
ForeignImages read_record(const Json& record, const std::string& path, const std::string& where,
                          ForeignSet& set) {
  const ChatRecord chat = read_chat(record);
  if (chat.has_own_size && set.options.scale.unit == StockScale::Unit::kResizedPixels)
    throw LeftOut{"an image resized by its message, in answers of --scale pixels",
                  "\"resized_height\", \"max_pixels\" and the like"};
  ForeignImage image = image_of_record(record, chat.images.front(), path, where);
  image.extra = read_extra(record);
  return read_conversation(chat.turns, std::move(image), Placeholders(record), set);
}

}  // namespace

ForeignSet read_chat_files(const Strings& sources, const ImportOptions& options) {
  return read_sources(
      sources, kForm,
      {.repeats_images = true, .assumed_form = BoxForm::kCorners, .options = options},
      [](const std::string& path, ForeignSet& set, auto& images) {
        const auto read = [&](const Json& record, const std::string& where) {
          for (ForeignImage& image : read_record(record, path, where, set))
            images.push_back(std::move(image));
        };
        read_json_records(path, read_file(path), read, set.ledger);
      });
}

}  // namespace rematch
