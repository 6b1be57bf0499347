// Text by FreeType in DejaVu Sans, which is part of the program: no font file is needed at run
// time.
#include <ft2build.h>
// After <ft2build.h>, which defines the name of this header.
#include FT_FREETYPE_H

#include "base/error.h"
#include "base/text.h"
#include "tools/draw/canvas.h"

// The bytes of REMATCH_FONT (cmake/Dependencies.cmake) as an array.
asm(".pushsection .rodata\n"
    ".hidden kRematchFontBegin, kRematchFontEnd\n"
    ".global kRematchFontBegin, kRematchFontEnd\n"
    "kRematchFontBegin: .incbin \"" REMATCH_FONT
    "\"\n"
    "kRematchFontEnd: .byte 0\n"
    ".popsection\n");
extern "C" const FT_Byte kRematchFontBegin[], kRematchFontEnd[];

namespace rematch {
namespace {

/// FreeType with the font opened. One for each thread: a face keeps the glyph that it loaded last.
class Font {
 public:
  Font() {
    const bool is_open = FT_Init_FreeType(&library_) == 0 &&
                         FT_New_Memory_Face(library_, kRematchFontBegin,
                                            kRematchFontEnd - kRematchFontBegin, 0, &face_) == 0;
    REMATCH_CHECK(is_open, "FreeType could not open the built-in font");
  }
  ~Font() { FT_Done_FreeType(library_); }
  Font(const Font&) = delete;
  Font& operator=(const Font&) = delete;

  static FT_Face with_size(int size_px) {
    static thread_local Font font;
    FT_Set_Pixel_Sizes(font.face_, 0, static_cast<FT_UInt>(size_px));
    return font.face_;
  }

 private:
  FT_Library library_ = nullptr;
  FT_Face face_ = nullptr;
};

/// Calls `use(glyph, x)` for each character at its distance from the left end; returns the width.
template <typename Use>
int for_each_glyph(FT_Face face, std::string_view utf8, FT_Int32 flags, const Use& use) {
  int x = 0;
  for (size_t offset = 0; offset < utf8.size();) {
    const char32_t code_point = next_code_point(utf8, offset);
    if (FT_Load_Char(face, code_point, flags) != 0) continue;
    use(*face->glyph, x);
    x += static_cast<int>(face->glyph->advance.x >> 6);
  }
  return x;
}

}  // namespace

void Canvas::text(int left, int top, std::string_view utf8, Rgb color, int size_px) {
  const FT_Face face = Font::with_size(size_px);
  const int baseline = top + static_cast<int>(face->size->metrics.ascender >> 6);
  for_each_glyph(face, utf8, FT_LOAD_RENDER, [&](const FT_GlyphSlotRec& glyph, int x) {
    const FT_Bitmap& bitmap = glyph.bitmap;
    for (int row = 0; row < static_cast<int>(bitmap.rows); ++row) {
      const uint8_t* const coverage = bitmap.buffer + row * bitmap.pitch;
      for (int column = 0; column < static_cast<int>(bitmap.width); ++column)
        blend(left + x + glyph.bitmap_left + column, baseline - glyph.bitmap_top + row, color,
              coverage[column]);
    }
  });
}

int text_width(std::string_view utf8, int size_px) {
  return for_each_glyph(Font::with_size(size_px), utf8, FT_LOAD_DEFAULT,
                        [](const FT_GlyphSlotRec&, int) {});
}

bool has_glyphs(std::string_view utf8) {
  const FT_Face face = Font::with_size(1);
  for (size_t offset = 0; offset < utf8.size();) {
    if (FT_Get_Char_Index(face, next_code_point(utf8, offset)) == 0) return false;
  }
  return true;
}

int text_height(int size_px) {
  const FT_Size_Metrics& metrics = Font::with_size(size_px)->size->metrics;
  return static_cast<int>((metrics.ascender - metrics.descender) >> 6);
}

}  // namespace rematch
