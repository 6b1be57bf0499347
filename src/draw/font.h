#pragma once

namespace rematch {

/// Dots of a glyph, and from one glyph to the next.
inline constexpr int kGlyphWidth = 5, kGlyphHeight = 8, kGlyphStep = 6;

/// A row of a glyph: bit 4 is its left dot. @param row  0 (top) … 7. What is not printable ASCII has the shape of a hollow box.
unsigned glyph_row(char32_t code_point, int row);

}  // namespace rematch
