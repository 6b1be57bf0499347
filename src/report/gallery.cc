#include "report/gallery.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "draw/encode.h"
#include "draw/panel.h"
#include "report/page.h"
#include "vision/image.h"

namespace rematch {
namespace {

constexpr double kCharacterPx = 7;  // of a label, about

/// An object's outline and label. @param kind  class of the style: t(ruth), b(efore), a(fter)
std::string object_svg(const SceneObject& object, char kind, int width, int height) {
  std::string points;
  double left = width, top = height, bottom = 0;
  for (const Point& point : vertices_px(object.geometry, width, height)) {
    points += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    left = std::min(left, point.x);
    top = std::min(top, point.y);
    bottom = std::max(bottom, point.y);
  }
  // Labels of the truth stand above, those of answers below, so that they can be compared.
  const double y = kind == 't' ? std::max(10.0, top - 3) : std::min(height - 3.0, bottom + 11);
  const bool fits = left + kCharacterPx * static_cast<double>(object.desc.size()) < width;
  return fmt::format(
      "<polygon class=\"o {0}\" points=\"{1}\"/><text class=\"{0}\" x=\"{2:.1f}\" "
      "y=\"{3:.1f}\"{4}>{5}</text>",
      kind, points, fits ? std::max(1.0, left) : width - 2.0, y, fits ? "" : " text-anchor=\"end\"",
      html_text(object.desc));
}

std::string layer_svg(const std::vector<SceneObject>& objects, const char* name, int width,
                      int height) {
  std::string svg = fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\">", name, width, height);
  for (const SceneObject& object : objects) svg += object_svg(object, name[0], width, height);
  return svg + "</svg>";
}

std::string figure_html(const JudgedSample& sample, const JudgedSample* before,
                        const GalleryOptions& options, size_t& bytes) {
  Image image;
  try {
    image = load_image(sample.image_path);
  } catch (const UserError&) {
    return "";
  }
  const Canvas panel = scene_panel(image, {}, options.long_side_px);
  const std::string data = base64(encode_jpeg(panel.image(), 78));
  if (bytes + data.size() > options.max_bytes) return "";
  bytes += data.size();
  const int width = panel.width_px(), height = panel.height_px();
  std::string html = fmt::format(
      "<figure class=\"card\"{}><div class=\"shot\"><img alt=\"sample {}\" width=\"{}\" "
      "height=\"{}\" src=\"data:image/jpeg;base64,{}\">",
      before ? " data-both" : "", sample.sample_id, width, height, data);
  html += layer_svg(sample.truth, "truth", width, height);
  if (before != nullptr) html += layer_svg(before->predictions, "before", width, height);
  html += layer_svg(sample.predictions, "after", width, height);
  if (before != nullptr) html += "<span class=\"edge\"></span>";
  html += "</div>";
  if (before != nullptr)
    html +=
        "<input type=\"range\" min=\"0\" max=\"100\" value=\"0\" aria-label=\"after to the right, "
        "before to the left\">";
  html += fmt::format("<figcaption>line {}: label F1 <b>{:.2f}</b>", sample.sample_id + 1,
                      sample.f1_labels());
  if (before != nullptr) html += fmt::format(", before {:.2f}", before->f1_labels());
  html += fmt::format(" · {} true, {} found", sample.truth.size(), sample.predictions.size());
  if (sample.status != "complete") html += fmt::format(" · answer {}", html_text(sample.status));
  return html + "</figcaption></figure>\n";
}

}  // namespace

std::string gallery_html(const EvaluationFile& now, const EvaluationFile* before,
                         const GalleryOptions& options) {
  const std::vector<JudgedSample> samples = read_judged_samples(now.samples_path);
  std::vector<JudgedSample> earlier;
  if (before != nullptr && !before->samples_path.empty())
    earlier = read_judged_samples(before->samples_path);
  std::map<std::pair<int64_t, std::string>, const JudgedSample*> by_image;
  for (const JudgedSample& sample : earlier)
    by_image[{sample.sample_id, sample.image_path}] = &sample;

  std::vector<size_t> order(samples.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return samples[a].f1_labels() < samples[b].f1_labels();
  });
  size_t bytes = 0;
  std::set<size_t> shown;
  const auto figures = [&](const std::string& title, const std::vector<size_t>& chosen) {
    std::string html;
    for (const size_t i : chosen) {
      if (!shown.insert(i).second) continue;
      const auto found = by_image.find({samples[i].sample_id, samples[i].image_path});
      html += figure_html(samples[i], found == by_image.end() ? nullptr : found->second, options,
                          bytes);
    }
    return html.empty() ? "" : "<h3>" + title + "</h3><div class=\"grid\">" + html + "</div>\n";
  };
  const auto num_worst = std::min(order.size(), static_cast<size_t>(options.num_worst));
  const auto num_even = std::min(order.size(), static_cast<size_t>(options.num_even));
  std::vector<size_t> even;
  for (size_t k = 0; k < num_even; ++k) even.push_back(k * samples.size() / num_even);
  std::string html = "<p class=\"soft\">" +
                     legend_item("style=\"background:var(--truth)\"", "truth (dashed)") +
                     legend_item("style=\"background:var(--after)\"", "answer");
  if (!by_image.empty())
    html += legend_item("style=\"background:var(--before)\"", "answer before: move the slider");
  html += "</p>\n" +
          figures("Worst", {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(num_worst)});
  return html + figures("Evenly spaced, not chosen by score", even);
}

}  // namespace rematch
