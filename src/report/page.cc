#include "report/page.h"

#include <fmt/core.h>

namespace rematch {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--bg:#fbfbfc;--card:#fff;--ink:#1b1f24;--soft:#5c6670;--line:#d9dde2;--good:#0a7d3c;--bad:#c62828;
--s0:#2563b8;--s1:#c2410c;--s2:#0f766e;--s3:#7c3aed;--s4:#a16207;--s5:#be185d;--truth:#00a843;--before:#d97706;--after:#e11d48}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1d2126;--ink:#e6e8ea;--soft:#9aa4ae;--line:#363c43;--good:#4ade80;--bad:#ff7b72;
--s0:#7ab3ff;--s1:#ffa470;--s2:#5eead4;--s3:#c4a5ff;--s4:#facc52;--s5:#ff8ac0}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1200px;margin:0 auto;padding:24px 20px 60px}h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 10px}
p{margin:6px 0 12px}.soft{color:var(--soft)}.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(300px,1fr))}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:50%}th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line);text-align:right;
white-space:nowrap}th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}td.best{font-weight:700;color:var(--good)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
ul.health{list-style:none;margin:0;padding:0}ul.health li{padding:6px 0 6px 26px;border-bottom:1px solid var(--line);position:relative}
ul.health li:before{position:absolute;left:2px;content:"✓";color:var(--good);font-weight:700}ul.health li.bad:before{content:"!";color:var(--bad)}
ul.health b{font-variant-numeric:tabular-nums}ul.health .advice{display:block;color:var(--bad)}
svg.curve{width:100%;height:auto;display:block}svg.curve text{font:11px system-ui,sans-serif;fill:var(--soft)}svg.curve .axis{stroke:var(--line);fill:none}
svg.curve polyline{fill:none;stroke-width:1.8}.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}.s5{stroke:var(--s5)}
.f0{fill:var(--s0);background:var(--s0)}.f1{fill:var(--s1);background:var(--s1)}.f2{fill:var(--s2);background:var(--s2)}.f3{fill:var(--s3);background:var(--s3)}
.f4{fill:var(--s4);background:var(--s4)}.f5{fill:var(--s5);background:var(--s5)}.rest{background:var(--soft)}.key{white-space:nowrap;margin-right:14px}.key i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px}
.split{display:flex;height:22px;border-radius:5px;overflow:hidden;margin:4px 0}.split span{display:block}
figure{margin:0}figure figcaption{font-size:13px;margin-top:6px}figure.card{align-self:start}.shot{position:relative;line-height:0;overflow:hidden;border-radius:5px}
.shot img,.shot svg{width:100%;height:auto}.shot svg{position:absolute;left:0;top:0}.shot .o{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
.shot polygon.t{stroke:var(--truth);stroke-dasharray:5 3}.shot polygon.b{stroke:var(--before)}.shot polygon.a{stroke:var(--after)}.shot text{font:700 11px system-ui,sans-serif;paint-order:stroke;
stroke:#fff;stroke-width:3px}.shot text.t{fill:#007a30}.shot text.b{fill:#a85a00}.shot text.a{fill:#b3123a}
.shot .edge{position:absolute;top:0;bottom:0;width:2px;background:#fff;box-shadow:0 0 3px #000}
input[type=range]{width:100%;margin:8px 0 0}pre{overflow:auto;font:12px/1.45 ui-monospace,monospace;max-height:520px}details>summary{cursor:pointer}
@media(max-width:600px){main{padding:16px 12px 40px}h1{font-size:21px}dl{grid-template-columns:1fr}dt{margin-top:6px}}
@media print{input[type=range]{display:none}}
)";

// Left of the slider's edge stands what was before, right of it what is after.
constexpr const char* kScript = R"(
document.querySelectorAll('figure[data-both]').forEach(f=>{const r=f.querySelector('input'),b=f.querySelector('.before'),a=f.querySelector('.after'),
e=f.querySelector('.edge');const set=()=>{const v=+r.value;b.style.clipPath=`inset(0 ${100-v}% 0 0)`;a.style.clipPath=`inset(0 0 0 ${v}%)`;
e.style.left=v+'%';e.hidden=v<=0||v>=100};r.addEventListener('input',set);set()});
)";

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.,+-*% ") == std::string::npos;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<title>{}</title><style>{}</style></head>\n<body><main>\n{}\n</main><script>{}</script></"
      "body></html>\n",
      html_text(title), kStyle, body, kScript);
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"scroll\"><table>";
  for (size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : rows[i]) {
      const bool best = i > 0 && is_number(cell) && cell.back() == '*';
      const std::string shown = html_text(best ? cell.substr(0, cell.size() - 1) : cell);
      html += i == 0 ? "<th>" + shown + "</th>"
                     : fmt::format("<td{}>{}</td>", best ? " class=\"best\"" : "", shown);
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string legend_item(const std::string& color, const std::string& name) {
  return fmt::format(" <span class=\"key\"><i {}></i>{}</span>", color, name);
}

std::string series_class(size_t index) { return std::to_string(index % 6); }

}  // namespace rematch
