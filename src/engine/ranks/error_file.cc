#include "engine/ranks/error_file.h"

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {

// The format of torch.distributed.elastic's error files. Without `extraInfo` torchrun shows only
// the headline.
void write_error_file(const std::string& text) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  const Json extra = {{"py_callstack", text}, {"timestamp", std::to_string(std::time(nullptr))}};
  const Json content = {{"message", {{"message", first_line(text)}, {"extraInfo", extra}}}};
  try {
    write_file_atomic(path, content.dump(-1, ' ', false, Json::error_handler_t::replace));
  } catch (const UserError&) {
  }
}

}  // namespace rematch
