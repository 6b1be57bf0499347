#include "tools/report/sections.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace rematch {
namespace {

constexpr const char kPage[] =
#include "report_html.inc"
    ;
constexpr const char kStyle[] =
#include "report_css.inc"
    ;
constexpr const char kScript[] =
#include "charts_js.inc"
#include "page_js.inc"
#include "pictures_js.inc"
#include "report_js.inc"
    ;

/// Replaces `mark` by `text`.
void replace_mark(std::string& page, std::string_view mark, std::string_view text) {
  const size_t at = page.find(mark);
  REMATCH_CHECK(at != std::string::npos, "report.html has this mark");
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string fill_page(const Json& data) {
  // Paths may hold bytes that are not UTF-8.
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;  // contains neither "</script>" nor "<!--"
  for (const char c : json) c == '<' ? safe += "\\u003c" : safe += c;
  std::string page = kPage;
  replace_mark(page, "@STYLE@", kStyle);
  replace_mark(page, "@SCRIPT@", kScript);
  replace_mark(page, "@DATA@", safe);
  return page;
}

}  // namespace rematch
