#pragma once
#include <string>

// Reasons to leave out an object or a record. A text that is used in one reader only stands there.
namespace rematch::reason {

inline constexpr const char* kNotFinite = "a box whose corners are not finite numbers";
inline constexpr const char* kSwapped = "a box with swapped corners or a negative width or height";
inline constexpr const char* kOutside = "a box outside its image";
inline constexpr const char* kNoArea = "a box without area";
inline constexpr const char* kThin = "a box thinner than a thousandth of its image";
inline constexpr const char* kNoName = "a box without a name";
inline constexpr const char* kBadName = "an object without a usable name";
inline constexpr const char* kTokenInName = "a name with the text of an added token";
inline constexpr const char* kTokenInPrompt = "a prompt with the text of an added token";
inline constexpr const char* kMaskOnly = "a mask (RLE) without a box";
inline constexpr const char* kKeypointsOnly = "key points without a box";
inline constexpr const char* kFiveNumbers = "a box of five numbers, which is a rotated one";
inline constexpr const char* kPoint = "a point";
inline constexpr const char* kNoBox = "an object without a box that can be read";
inline constexpr const char* kBeyondScale = "a box beyond the unit of its numbers";
inline constexpr const char* kCrowdsOnly = "an image with crowds or regions to ignore only";
inline constexpr const char* kTooMany = "more than 16384 objects";
inline constexpr const char* kMaybeNotEmpty =
    "an image without annotations, in a file whose annotations name images that are not listed";
inline constexpr const char* kTwoEntries = "an image with several entries, each with other objects";
inline constexpr const char* kShares = "a box in shares (0 to 1) among boxes of another unit";
inline constexpr const char* kUnknownClass = "an object of a class without a name";
inline constexpr const char* kDamagedRecord = "a record that cannot be read";
inline constexpr const char* kSeveralImages = "a record with several images, or none";
inline constexpr const char* kNoAnswer = "a record without an answer";
inline constexpr const char* kMarkedBad = "an answer marked as a bad one (\"label\": false)";
inline constexpr const char* kNotLearned =
    "an answer that is not to be learned (\"loss\": false, \"weight\": 0)";
inline constexpr const char* kTools = "a conversation with tools";
inline constexpr const char* kVideo = "a record with a video";
inline constexpr const char* kInnerBox = "an entry with boxes inside it";
inline constexpr const char* kSeveralBoxes = "several boxes in one \"bbox\"";
inline constexpr const char* kLateName = "a name after its box, or without one";
inline constexpr const char* kNotAList = "an answer that is not a list of boxes";
inline constexpr const char* kNotPaired = "names and boxes that do not pair";
inline constexpr const char* kBoxInPrompt = "a question with a box in it";
inline constexpr const char* kSharedId = "an image whose id another image has";
inline constexpr const char* kSharedLabels = "a label file that several images share";
inline constexpr const char* kNoLabelFile = "an image without a label file";
inline constexpr const char* kOddLine = "a label line with neither a box nor an outline";
inline constexpr const char* kOtherImage =
    "an annotation that names another photo than that of its own name, and both exist";
inline constexpr const char* kImageMissing = "an image that was not found";
inline constexpr const char* kImageAmbiguous = "an image file that several names may mean";
inline constexpr const char* kSeveralFiles = "a name that several image files may have";
inline constexpr const char* kImageUnreadable = "an image that cannot be read";
inline constexpr const char* kImageSize = "an image whose size differs from the annotation";
inline constexpr const char* kDrawnRotated = "a photo annotated in stored, not in EXIF orientation";

/// The fix for a reason; "" for those whose text says enough.
std::string fix_for(const std::string& reason);

}  // namespace rematch::reason
