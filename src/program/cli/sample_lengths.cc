#include "program/cli/sample_lengths.h"

#include <algorithm>

#include "learn/estep/answer/checkpoint_format.h"
#include "learn/estep/sample_lengths.h"
#include "model/text/prompt.h"
#include "model/text/stored_prompt.h"
#include "model/vision/patches.h"

namespace rematch {

const AnswerFormatRow& format_of(const std::string& model_dir) {
  return answer_formats().find(
      checkpoint_format(std::nullopt, model_dir, *Tokenizer::load(model_dir)));
}

SampleLengths measure_lengths(const Dataset& dataset, const std::string& model_dir,
                              const std::optional<std::string>& user_prompt,
                              const ImageSettings& images) {
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(model_dir);
  const AnswerFormatRow& row = format_of(model_dir);
  const std::unique_ptr<const AnswerFormat> format = row.make(tokenizer, model_dir);
  const std::optional<StoredPrompt> stored = read_stored_prompt(model_dir);
  const PatchOptions patches = PatchOptions::from_model_dir(model_dir, images);
  PromptSettings texts = stored ? stored->texts : PromptSettings{};
  if (user_prompt) texts.user_prompt = user_prompt;
  const PromptEncoder prompts(tokenizer,
                              std::make_shared<const ChatTemplate>(ChatTemplate::load(model_dir)),
                              {.texts = texts,
                               .built_in = row.built_in_prompt(ObjectOrdering::kSorted),
                               .merge_size = patches.merge_size});
  SampleLengths lengths;
  std::vector<int64_t> answers;
  for (const SampleLength& each :
       measure_samples(dataset, prompts, *format, {.patches = patches}, [](int64_t) {})) {
    answers.push_back(each.answer_len);
    lengths.longest_prompt = std::max<int64_t>(lengths.longest_prompt, each.prompt_len);
  }
  std::sort(answers.begin(), answers.end());
  lengths.median_answer = answers[answers.size() / 2];
  lengths.longest_answer = answers.back();
  return lengths;
}

}  // namespace rematch
