// The bytes are a chat template, rendered with a conversation. Only UserErrors may come out, and in
// bounded time.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "model/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rematch::Json messages = rematch::Json::parse(
      R"([{"role": "system", "content": "s"}, 
          {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "a\nb"}],
           "n": [1, 2.5, null, true]}])");
  try {
    const auto chat = rematch::ChatTemplate::from_text(
        std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    chat.render(messages, true);
  } catch (const rematch::UserError&) {
  }
  return 0;
}
