#include "program/cli/data_import_options.h"

#include "base/file.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

void add_conversation_options(CLI::App& app, ImportArguments& arguments) {
  add_stock_options(app, arguments.stock,
                    "a user's text that records do not repeat as their \"prompt\", because "
                    "custom.user_prompt says it",
                    true);
  app.add_option("--label-from-prompt", arguments.options.label_from_prompt,
                 "the name of boxes without a \"label\" is in the question, at the {} of this "
                 "pattern: \"Locate {} in\" (the shortest text that fits)");
  app.add_option("--empty-answer", arguments.options.empty_answers,
                 "an answer with this text means that nothing is there, e.g. None; may be given "
                 "several times. Without it only [] does");
}

}  // namespace

void add_import_options(CLI::App& app, ImportArguments& arguments, const ImportTraits& traits) {
  ImportOptions& options = arguments.options;
  app.add_option("--images", options.images_dir,
                 "directory of the images; default: where the format puts them, near the "
                 "annotations");
  app.add_option("--out", arguments.out_dir, "directory for SPLIT.jsonl")->required();
  app.add_option("--label", options.label, "name of the objects that have none");
  if (traits.has_outlines)
    app.add_flag("--polygons", options.polygons,
                 "outlines of one ring and rotated boxes become \"poly\"; default: boxes only");
  if (traits.has_names)
    app.add_option("--names", options.names,
                   "names of the classes 0, 1, …: cat,dog, or a file with one name a line (or "
                   "lines of id,name)");
  if (traits.has_box_forms)
    app.add_option("--boxes", arguments.box_form,
                   "what four numbers mean: xywh (left, top, width, height), xyxy (corners) or "
                   "cxcywh; default: what the format says")
        ->check(CLI::IsMember({"xywh", "xyxy", "cxcywh"}));
  if (traits.has_label_files)
    app.add_flag("--missing-labels-are-empty", options.missing_labels_are_empty,
                 "an image without a label file shows no object; default: leave it out");
  if (traits.has_conversations) {
    add_conversation_options(app, arguments);
  } else {
    CLI::Option* prompt =
        app.add_flag("--prompt-classes", options.prompt_classes,
                     "give each record a prompt that lists the classes to look for");
    app.add_option("--negatives", options.negatives,
                   "with --prompt-classes: share of the listed classes that the image does not "
                   "show, e.g. 0.2")
        ->needs(prompt)
        ->check(CLI::Range(0.0, 0.95))
        ->capture_default_str();
  }
  app.add_flag("--drop-unreadable", options.drop_unreadable,
               "keep records without the objects that cannot be read; default: leave such records "
               "out");
  app.add_flag("--strict", options.strict,
               "write nothing and end with exit code 3 when something would be left out");
}

ImportOptions finish_import_options(const ImportArguments& arguments, const ImportTraits& traits) {
  ImportOptions options = arguments.options;
  if (!options.images_dir.empty() && !path_exists(options.images_dir))
    throw missing_path("directory of images", "--images " + options.images_dir,
                       "check the path; relative paths start at the current directory");
  check_name_pattern(options.label_from_prompt);
  options.boxes = find_box_form(arguments.box_form);
  if (traits.has_conversations) {
    options.scale = scale_of(arguments.stock);
    options.usual_text = python_strip(arguments.stock.usual_text);
  }
  return options;
}

}  // namespace rematch
