#include "model/text/normalize.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "model/text/unicode_additions.h"

namespace rematch {
namespace {

struct Run {
  uint32_t first;
  uint32_t last;
};

// Characters with combining classes or compositions of Unicode 10 to 15, which the reference (with
// the tables of Unicode 9) does not know. Written by dev/goldens/text_unicode_additions.py.
constexpr Run kYoungerThanReference[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
    {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
    {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

// True for a character that the reference neither moves nor composes.
bool is_inert(char32_t code_point) {
  return code_point >= kYoungerThanReference[0].first &&
         (find_run(kYoungerThanReference, code_point) || find_run(kUnicodeAdditions, code_point));
}

}  // namespace

std::string reference_nfc(std::string_view utf8) {
  if (std::ranges::all_of(utf8, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(utf8);
  std::string out;
  size_t done = 0;
  for (size_t offset = 0; offset < utf8.size();) {
    const size_t begin = offset;
    if (static_cast<unsigned char>(utf8[offset]) < 0x80) {
      ++offset;
      continue;
    }
    if (!is_inert(next_code_point(utf8, offset))) continue;
    out += normalize_nfc(utf8.substr(done, begin - done));
    out += utf8.substr(begin, offset - begin);
    done = offset;
  }
  out += normalize_nfc(utf8.substr(done));
  return out;
}

}  // namespace rematch
