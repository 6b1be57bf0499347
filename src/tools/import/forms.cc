#include "tools/import/forms.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {

void refuse_source(const char* command, const std::string& where, const std::string& what,
                   const std::string& fix) {
  std::string name, forms;
  for (const ImportForm& form : kImportForms) {
    if (form.command == std::string(command)) name = form.name;
    forms += fmt::format("{} (`{}`), ", form.name, form.command);
  }
  throw UserError(
      ErrorKind::kData,
      {.error = "this cannot be read as " + name,
       .where = where,
       .what = what,
       .fix = !fix.empty() ? fix
                           : "these are read: " + forms +
                                 "ms-swift's records (`from-swift`); export others as COCO, as "
                                 "Label Studio and CVAT do, or convert them: `datum convert -i DIR "
                                 "-if FORM -f coco -o coco -- --save-media`"});
}

}  // namespace rematch
