// A font of 5 x 8 dots for the Latin alphabets of Europe. A font library would need a font file on
// the user's machine; labels in pictures need only to be legible.
#include "draw/font.h"

#include <algorithm>
#include <string_view>

namespace rematch {
namespace {

constexpr char32_t kFirst = U' ', kLast = U'~';
constexpr char32_t kFirstLatin = 0xA0, kLastLatin = 0x17F;  // Latin-1 and Latin Extended-A
// A glyph is its eight rows from top to bottom, a row one digit of base 32 (0 … 9, a … v).
constexpr const char* kGlyphs[] = {
    "00000000", "44444040", "aaa00000", "aavavaa0", "4fke5u40", "op248j30", "cik8lid0", "44800000",
    "24888420", "84222480", "04lel400", "044v4400", "0000c480", "000v0000", "00000cc0", "01248g00",
    "ehjlphe0", "4c4444e0", "eh1248v0", "v2421he0", "26aiv220", "vgu11he0", "68guhhe0", "v1248880",
    "ehhehhe0", "ehhf12c0", "0cc0cc00", "0cc0c480", "248g8420", "00v0v000", "84212480", "eh124040",
    "eh1dlle0", "ehhhvhh0", "uhhuhhu0", "ehggghe0", "sihhhis0", "vgguggv0", "vgguggg0", "ehgnhhf0",
    "hhhvhhh0", "e44444e0", "72222ic0", "hikokih0", "ggggggv0", "hrllhhh0", "hhpljhh0", "ehhhhhe0",
    "uhhuggg0", "ehhhlid0", "uhhukih0", "fgge11u0", "v4444440", "hhhhhhe0", "hhhhha40", "hhhllla0",
    "hha4ahh0", "hhha4440", "v1248gv0", "e88888e0", "0g842100", "e22222e0", "4ah00000", "000000v0",
    "84200000", "00e1fhf0", "ggmphhu0", "00egghe0", "11djhhf0", "00ehvge0", "698s8880", "00fhhf1e",
    "ggmphhh0", "40c444e0", "206222ic", "ggikoki0", "c44444e0", "00qllhh0", "00mphhh0", "00ehhhe0",
    "00uhhugg", "00fhhf11", "00mpggg0", "00ege1u0", "88s88960", "00hhhjd0", "00hhha40", "00hhlla0",
    "00ha4ah0", "00hhhf1e", "00v248v0", "24484420", "44444440", "84424480", "008l2000",
};
static_assert(sizeof kGlyphs / sizeof kGlyphs[0] == kLast - kFirst + 1);
constexpr const char* kHollowBox = "vhhhhhv0";

// A letter and its mark, or eight rows.
constexpr const char* kLatin[] = {
    "00000000", "40444440", "4ekkke40", "698s88v0", "0heaeh00", "hav4v440", "44404440", "egehe1e0",
    "a0000000", "enppne00", "c2eie0u0", "05aka500", "000v1100", "000v0000", "etrtre00", "v0000000",
    "4a400000", "44v440v0", "ci48u000", "s2c2s000", "24000000", "00hhhjtg", "fttd5550", "00040000",
    "00000048", "4c44e000", "ciic0u00", "0ka5ak00", "hik9j710", "hikbh270", "pas9j710", "4048ghe0",
    "A`",       "A'",       "A^",       "A~",       "A:",       "Ao",       "fkkukkn0", "C,",
    "E`",       "E'",       "E^",       "E:",       "I`",       "I'",       "I^",       "I:",
    "e99t99e0", "N~",       "O`",       "O'",       "O^",       "O~",       "O:",       "0ha4ah00",
    "fhjlphu0", "U`",       "U'",       "U^",       "U:",       "Y'",       "guhhugg0", "ehhmhhm0",
    "a`",       "a'",       "a^",       "a~",       "a:",       "ao",       "00q5fkf0", "c,",
    "e`",       "e'",       "e^",       "e:",       "i`",       "i'",       "i^",       "i:",
    "a4afhhe0", "n~",       "o`",       "o'",       "o^",       "o~",       "o:",       "040v0400",
    "00fjlpu0", "u`",       "u'",       "u^",       "u:",       "y'",       "gguhhugg", "y:",
    "A-",       "a-",       "Au",       "au",       "A;",       "a;",       "C'",       "c'",
    "C^",       "c^",       "C.",       "c.",       "Cv",       "cv",       "Dv",       "dv",
    "e99t99e0", "17djhhf0", "E-",       "e-",       "Eu",       "eu",       "E.",       "e.",
    "E;",       "e;",       "Ev",       "ev",       "G^",       "g^",       "Gu",       "gu",
    "G.",       "g.",       "G,",       "g'",       "H^",       "h^",       "hvhvhhh0", "gsmphhh0",
    "I~",       "i~",       "I-",       "i-",       "Iu",       "iu",       "I;",       "i;",
    "I.",       "00c444e0", "hhhhhli0", "h0hhhhh6", "J^",       "j^",       "K,",       "k,",
    "00ikoki0", "L'",       "l'",       "L,",       "l,",       "L!",       "l!",       "gggiggv0",
    "c44544e0", "88aco8f0", "c464c4e0", "N'",       "n'",       "N,",       "n,",       "Nv",
    "nv",       "o8mphhh0", "mphhhhh6", "00mphhh2", "O-",       "o-",       "Ou",       "ou",
    "O\"",      "o\"",      "fkknkkf0", "00alnkb0", "R'",       "r'",       "R,",       "r,",
    "Rv",       "rv",       "S'",       "s'",       "S^",       "s^",       "S,",       "s,",
    "Sv",       "sv",       "T,",       "t,",       "Tv",       "t!",       "v44e4440", "88s8s960",
    "U~",       "u~",       "U-",       "u-",       "Uu",       "uu",       "Uo",       "uo",
    "U\"",      "u\"",      "U;",       "u;",       "W^",       "w^",       "Y^",       "y^",
    "Y:",       "Z'",       "z'",       "Z.",       "z.",       "Zv",       "zv",       "698o8880",
};
static_assert(sizeof kLatin / sizeof kLatin[0] == kLastLatin - kFirstLatin + 1);

struct Other {
  char32_t code_point;
  const char* shape;
};
// Romanian letters, and what word processors write for quotes and dashes.
constexpr Other kOthers[] = {{0x218, "S,"},        {0x219, "s,"},        {0x21A, "T,"},
                             {0x21B, "t,"},        {0x2013, "000v0000"}, {0x2014, "000v0000"},
                             {0x2018, "24400000"}, {0x2019, "44800000"}, {0x201C, "5aa00000"},
                             {0x201D, "aak00000"}, {0x201E, "00000aak"}, {0x2026, "000000l0"},
                             {0x20AC, "69s8s960"}};

struct Mark {
  char name;
  const char* rows;  // the lowest lies in the gap to the letter
};
constexpr Mark kMarksAbove[] = {{'`', "840"}, {'\'', "240"}, {'^', "4a0"}, {'~', "dm0"},
                                {':', "0a0"}, {'o', "4a4"},  {'-', "0e0"}, {'u', "he0"},
                                {'.', "040"}, {'v', "a40"},  {'"', "5a0"}};
constexpr std::string_view kLowLetters = "acegijmnopqrsuvwxyz";

unsigned dots_of(char digit) {
  return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/// A row of a letter with its mark: ',' cedilla or comma below, ';' ogonek, '!' the caron beside a
/// high letter, else one of kMarksAbove.
unsigned composed_row(char letter, char mark, int row) {
  unsigned dots = row < 0 ? 0u : dots_of(kGlyphs[static_cast<char32_t>(letter) - kFirst][row]);
  if (mark == ',') return row == 7 ? dots | 4u : dots;
  if (mark == ';') return row == 7 ? dots | 3u : dots;
  if (mark == '!') return row == 0 || row == 1 ? dots | 1u : dots;
  const bool is_low = kLowLetters.find(letter) != std::string_view::npos;
  if (is_low && row < 2) dots = 0;  // the dot of i and j
  const int row_of_mark = row + (is_low ? 1 : kGlyphRise);
  if (row_of_mark < 0 || row_of_mark > 2) return dots;
  const Mark* found = std::find_if(std::begin(kMarksAbove), std::end(kMarksAbove),
                                   [&](const Mark& one) { return one.name == mark; });
  return dots | dots_of(found->rows[row_of_mark]);
}

const char* shape_of(char32_t code_point) {
  if (code_point >= kFirst && code_point <= kLast) return kGlyphs[code_point - kFirst];
  if (code_point >= kFirstLatin && code_point <= kLastLatin)
    return kLatin[code_point - kFirstLatin];
  const Other* found = std::find_if(std::begin(kOthers), std::end(kOthers),
                                    [&](const Other& one) { return one.code_point == code_point; });
  return found == std::end(kOthers) ? kHollowBox : found->shape;
}

}  // namespace

unsigned glyph_row(char32_t code_point, int row) {
  const std::string_view shape = shape_of(code_point);
  if (shape.size() == 2) return composed_row(shape[0], shape[1], row);
  return row < 0 ? 0u : dots_of(shape[static_cast<size_t>(row)]);
}

}  // namespace rematch
