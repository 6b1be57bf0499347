#pragma once

namespace rematch {

/// Dots of a glyph, and from one glyph to the next.
inline constexpr int kGlyphWidth = 5, kGlyphHeight = 8, kGlyphStep = 6;
/// Rows above a glyph's top that an accent may need: É is higher than E.
inline constexpr int kGlyphRise = 3;

/// A row of a glyph: bit 4 is its left dot. @param row  0 (top) … 7, and −kGlyphRise … −1 above.
/// Glyphs: ASCII, Latin-1, Latin Extended-A, common quotes and dashes; anything else has the shape
/// of a hollow box.
unsigned glyph_row(char32_t code_point, int row);

}  // namespace rematch
