#pragma once
#include <string>

// Reasons to leave out an object or a record; what helps stands after the "|". A text that is used
// in one reader only stands there.
namespace rematch::reason {

constexpr char kSwapped[] =
    "a box with swapped corners or a negative width or height|correct the boxes";
constexpr char kOutside[] = "a box outside its image";
constexpr char kNoArea[] =
    "a box without area|correct it; if [0, 0, 0, 0] means that nothing is there, write an empty "
    "list";
constexpr char kThin[] = "a box thinner than a thousandth of its image";
constexpr char kNoName[] = "a box without a name|name the objects with --label NAME";
constexpr char kNoNameInAnswer[] =
    "a box without a name|name the objects with --label NAME, or say where their question has the "
    "name: --label-from-prompt \"Locate {} in\"";
constexpr char kBadName[] = "an object without a usable name";
constexpr char kAddedToken[] = "a name or a prompt with the text of an added token";
constexpr char kRotated[] = "a rotated box|write its four corners as an outline, without the box";
constexpr char kNoBox[] =
    "an object without a box that can be read|write its box as numbers; that of a mask (RLE) is "
    "pycocotools.mask.toBbox, and a point has none";
constexpr char kBeyondScale[] =
    "a box beyond the unit of its numbers|say the unit: --scale relative (0..1000), --scale "
    "pixels (of the resized image), --scale file-pixels or --scale normalized (0..1); \"points\" "
    "are x, y in the same unit";
constexpr char kOtherOutline[] =
    "a box that its outline contradicts|correct or remove one of them, or say what the numbers "
    "are: --boxes xyxy for corners, or --boxes xywh";
constexpr char kCrowdsOnly[] = "an image with crowds or regions to ignore only";
constexpr char kTooMany[] = "more than 16384 objects";
constexpr char kMaybeNotEmpty[] =
    "an image without annotations, in a file whose annotations name images that are not listed";
constexpr char kTwoEntries[] = "an image with several entries, each with other objects";
constexpr char kShares[] = "a box in shares (0 to 1) among boxes of another unit";
constexpr char kUnknownClass[] =
    "an object of a class without a name|name the classes with --names cat,dog, or a file with "
    "one name a line; add its name to those of --names";
constexpr char kNotListed[] = "an object whose category is not listed, or has two names";
constexpr char kTwoNames[] =
    "an object to which two columns give different names|keep the column with the class, and "
    "remove the other";
constexpr char kDamagedRecord[] = "a record that cannot be read";
constexpr char kTwoRoots[] =
    "a file with the annotations of several images|write each <annotation> into its own file";
constexpr char kNotUtf8[] =
    "a text that is not UTF-8|convert the file, from GBK, ISO-8859-1 or …: iconv -f GBK -t UTF-8 "
    "FILE > NEW";
constexpr char kSeveralImages[] = "a record with several images, or none";
constexpr char kNoAnswer[] =
    "a record without an answer|write the answer as the assistant's last message, not in "
    "\"solution\" or \"chosen\"";
constexpr char kOtherUse[] = "an answer that is not to be learned, or a record of another use";
constexpr char kInnerBox[] =
    "an entry with boxes inside it|write one flat list with an entry for each box";
constexpr char kLateName[] = "a name after its box, or without one";
constexpr char kNotAList[] =
    "an answer that is not a list of boxes|write [{\"bbox_2d\": [x1, y1, x2, y2], \"label\": "
    "\"cat\"}]; for a text that means \"nothing is there\" add --empty-answer TEXT";
constexpr char kSeveralLists[] =
    "an answer with boxes in several places|write all boxes of an answer in one list; where it "
    "has <answer>, once, around this list";
constexpr char kNotPaired[] = "names and boxes that do not pair";
constexpr char kBoxInPrompt[] = "a question with a box in it";
constexpr char kSharedId[] = "an image whose id another image has";
constexpr char kSharedLabels[] = "a label file that several images share";
constexpr char kNoLabelFile[] =
    "an image without a label file|add the label files, or say with --missing-labels-are-empty "
    "that these images show no object";
constexpr char kOddLine[] =
    "a label line with neither a box nor an outline|a line is CLASS X Y WIDTH HEIGHT, or CLASS "
    "and the points of an outline: the class a number from 0, the others shares of the image; "
    "leave out a confidence or a track";
constexpr char kOtherImage[] =
    "an annotation whose name and content name two photos that both exist|correct the name inside "
    "the file, or remove the photo that is not meant";
constexpr char kImageInside[] =
    "an image that is inside its record (base64)|write the images into files, and their paths "
    "into the records";
constexpr char kImageMissing[] =
    "an image that was not found|pass the directory of the images with --images";
constexpr char kImageAmbiguous[] = "an image file that several names may mean";
constexpr char kSeveralFiles[] =
    "a name that several image files may have|write the name with its folder and ending, or "
    "remove the other files";
constexpr char kImageUnreadable[] = "an image that cannot be read";
constexpr char kImageSize[] = "an image whose size differs from the annotation";
constexpr char kSizeUnreadable[] =
    "an image whose annotated size is not a number|write its width and height as numbers of "
    "pixels, or leave them out";
constexpr char kDrawnRotated[] =
    "a photo annotated in stored, not in EXIF orientation|remove its tag: exiftool -Orientation= "
    "-n FILE";

/// The reason without what helps, and what helps; "" for a reason that says enough.
std::string text_of(const std::string& reason);
std::string fix_for(const std::string& reason);

}  // namespace rematch::reason
