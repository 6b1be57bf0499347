#include "model/adapter_targets.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/full_match.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kAllLinear = "all-linear";

// Matches a list entry of PEFT: the whole name or a suffix after a dot.
bool has_suffix(const std::string& module, const std::string& suffix) {
  return module == suffix || module.ends_with("." + suffix);
}

std::string last_component(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// The modules of a model, also those without direct parameters.
struct Modules {
  Strings linears;                   ///< checkpoint order
  Strings others;                    ///< every other module, sorted
  std::set<std::string> not_in_all;  ///< Linears that `all-linear` leaves out

  Modules(const ModelDescription& model, const Strings& parameter_names) {
    std::set<std::string> known, seen, rest;
    for (const LinearDescription& linear : model.linears()) {
      known.insert(linear.module);
      if (!linear.in_all_linear) not_in_all.insert(linear.module);
    }
    for (const std::string& parameter : parameter_names) {
      std::string module = module_of(parameter);
      if (known.count(module) != 0) {
        if (seen.insert(module).second) linears.push_back(module);
      } else {
        rest.insert(module);
      }
      for (size_t dot = module.rfind('.'); dot != std::string::npos; dot = module.rfind('.'))
        rest.insert(module = module.substr(0, dot));
    }
    others.assign(rest.begin(), rest.end());
  }
};

/// Collects problems during selection.
class Chooser {
 public:
  Chooser(const ModelDescription& model, const Strings& parameter_names,
          const AdapterTargets& options)
      : head_(model.text.head.module),
        embedding_(model.text.embedding),
        vocab_size_(model.text.vocab_size),
        parameter_names_(parameter_names),
        modules_(model, parameter_names),
        options_(options) {}

  AdapterSelection choose() {
    choose_saved();
    if (options_.target_regex) {
      choose_by_regex();
    } else {
      choose_by_list();
    }
    choose_tokens();
    if (!problems_.empty()) throw UserError(ErrorKind::kConfig, std::move(problems_));
    for (const std::string& module : modules_.linears) {
      if (chosen_.count(module) != 0) selection_.modules.push_back(module);
    }
    if (selection_.modules.empty()) {
      problem("nothing to adapt", "freeze_llm, freeze_vit, freeze_aligner",
              fmt::format("all {} targets are frozen or trained in full",
                          selection_.num_frozen + num_saved_),
              "unfreeze a part, or choose other targets");
      throw UserError(ErrorKind::kConfig, std::move(problems_));
    }
    describe_for_peft();
    return std::move(selection_);
  }

 private:
  void problem(std::string error, const std::string& key, std::string what, std::string fix) {
    problems_.push_back(
        {std::move(error), options_.where + "." + key, std::move(what), std::move(fix)});
  }

  bool is_frozen(const std::string& module) const {
    return options_.is_frozen && options_.is_frozen(module + ".weight");
  }

  // PEFT never adapts modules inside a module that is trained in full.
  bool is_saved(const std::string& module) const {
    const auto starts_at = [&](size_t begin, const std::string& name) {
      return module.compare(begin, name.size(), name) == 0 &&
             (begin + name.size() == module.size() || module[begin + name.size()] == '.');
    };
    return std::ranges::any_of(options_.modules_to_save, [&](const std::string& name) {
      if (starts_at(0, name)) return true;
      for (size_t dot = module.find('.'); dot != std::string::npos;
           dot = module.find('.', dot + 1)) {
        if (starts_at(dot + 1, name)) return true;
      }
      return false;
    });
  }

  bool is_tied() const { return !contains(parameter_names_, head_ + ".weight"); }

  // Like PEFT's `ensure_weight_tying`: either of two tied names trains their one matrix, which is
  // listed as the embedding.
  void save_tied(const std::string& name, std::set<std::string>& saved) {
    add_saved(embedding_, name, saved);
    Strings& listed = selection_.targets.modules_to_save;
    if (!contains(listed, embedding_)) listed.push_back(embedding_);
    selection_.targets.ensure_weight_tying = true;
  }

  void choose_saved() {
    const bool tied = is_tied();
    std::set<std::string> saved;
    for (const std::string& name : options_.modules_to_save) {
      Strings found;
      for (const auto* list : {&modules_.linears, &modules_.others}) {
        for (const std::string& module : *list) {
          if (!name.empty() && module.ends_with(name)) found.push_back(module);
        }
      }
      if (tied && (name == head_ || contains(found, embedding_))) {
        save_tied(name, saved);
        continue;
      }
      if (found.empty()) {
        throw_no_match(name, "modules_to_save", modules_.others);
        continue;
      }
      selection_.targets.modules_to_save.push_back(name);
      for (const std::string& module : found) add_saved(module, name, saved);
    }
    if (tied && saved.count(embedding_ + ".weight") != 0 &&
        !selection_.targets.ensure_weight_tying) {
      problem(
          "an entry contains the embedding, which is also the head", "modules_to_save",
          "PEFT would train a copy of the embedding and keep the other as the head",
          fmt::format("list `{}` next to the modules that you want", last_component(embedding_)));
    }
    for (const std::string& parameter : parameter_names_) {
      if (saved.count(parameter) != 0) selection_.saved_parameters.push_back(parameter);
    }
  }

  void add_saved(const std::string& module, const std::string& name, std::set<std::string>& saved) {
    for (const std::string& parameter : parameter_names_) {
      if (!parameter.starts_with(module + ".")) continue;
      if (options_.is_frozen && options_.is_frozen(parameter)) {
        problem(fmt::format("`{}` is both frozen and in modules_to_save", name), "modules_to_save",
                parameter + " is in a frozen part",
                "remove it from modules_to_save, or unfreeze its part");
        return;
      }
      saved.insert(parameter);
    }
  }

  void choose_tokens() {
    if (options_.token_ids.empty()) return;
    const std::string key = "trainable_token_indices";
    for (const int64_t id : options_.token_ids) {
      if (id >= 0 && id < vocab_size_) continue;
      problem("a token is outside the model's vocabulary", key,
              fmt::format("{}, the embedding has {} rows", id, vocab_size_),
              "list ids of the model's tokenizer");
      return;
    }
    if (is_frozen(embedding_)) {
      problem("token rows are both frozen and trained", key, embedding_ + " is in a frozen part",
              "unfreeze the language model (`freeze_llm`), or remove the key");
    }
    for (const std::string& module : {embedding_, head_}) {
      if (!is_saved(module) && chosen_.count(module) == 0) continue;
      problem(fmt::format("{} is trained in two ways", module), key,
              "it is in modules_to_save or has an adapter", "remove it there, or remove the key");
    }
    selection_.token_ids = options_.token_ids;
    std::vector<PeftTokens>& tokens = selection_.targets.trainable_tokens;
    if (is_tied()) {
      tokens = {{"", options_.token_ids}};  // PEFT ties the head's rows to the embedding's
    } else {
      tokens = {{last_component(embedding_), options_.token_ids},
                {last_component(head_), options_.token_ids}};
    }
  }

  // Selects a requested Linear; returns false if it is frozen or trained in full.
  bool take(const std::string& module) {
    if (is_saved(module)) {
      ++num_saved_;
      return false;
    }
    if (is_frozen(module)) {
      ++selection_.num_frozen;
      return false;
    }
    chosen_.insert(module);
    return true;
  }

  // Selects the matches of one entry or of the regex, or reports a problem.
  void take_all(const std::string& entry, const std::string& key,
                const std::function<bool(const std::string&)>& matches) {
    Strings wrong;
    for (const std::string& module : modules_.others) {
      if (matches(module) && !is_saved(module)) wrong.push_back(module);
    }
    if (!wrong.empty()) {
      problem(fmt::format("`{}` matches a module that is not a Linear layer", entry), key,
              fmt::format("{}{}", wrong.front(),
                          wrong.size() > 1 ? fmt::format(" and {} more", wrong.size() - 1) : ""),
              advice_for(wrong.front()));
      return;
    }
    int64_t num_matched = 0, num_taken = 0;
    for (const std::string& module : modules_.linears) {
      if (!matches(module)) continue;
      ++num_matched;
      num_taken += take(module) ? 1 : 0;
    }
    if (num_matched == 0) {
      throw_no_match(entry, key, modules_.linears);
    } else if (num_taken == 0) {
      problem(fmt::format("`{}` matches only modules that are frozen or trained in full", entry),
              key, fmt::format("{} modules", num_matched),
              "unfreeze their part (`freeze_llm`, `freeze_vit`, `freeze_aligner`), or remove the "
              "target");
    }
  }

  // Suggests a longer name if a Linear has the same last component.
  std::string advice_for(const std::string& wrong) const {
    for (const std::string& module : modules_.linears) {
      if (last_component(module) != last_component(wrong)) continue;
      const std::string owner =
          last_component(module.substr(0, module.size() - last_component(module).size() - 1));
      return fmt::format("write `{}.{}` for the Linear layers with that name", owner,
                         last_component(module));
    }
    return "list Linear layers only; modules_to_save trains a module in full";
  }

  void choose_by_list() {
    for (const std::string& entry : options_.target_modules) {
      if (entry == kAllLinear) {
        for (const std::string& module : modules_.linears) {
          if (module != head_ && modules_.not_in_all.count(module) == 0) take(module);
        }
      } else {
        take_all(entry, "target_modules",
                 [&](const std::string& module) { return has_suffix(module, entry); });
      }
    }
    if (options_.target_modules.empty()) {
      problem("there are no targets", "target_modules", "the list is empty",
              "write `all-linear`, or names of modules");
    }
  }

  void choose_by_regex() {
    const FullMatch regex(*options_.target_regex, options_.where + ".target_regex");
    take_all(*options_.target_regex, "target_regex",
             [&](const std::string& module) { return regex.matches(module); });
  }

  void throw_no_match(const std::string& entry, const std::string& key, const Strings& candidates) {
    // Suggests similar whole names and similar last components, because users write both.
    std::set<std::string> shorts;
    for (const std::string& module : candidates) shorts.insert(last_component(module));
    Strings near = near_names(entry, candidates);
    for (const std::string& name :
         near_names(last_component(entry), {shorts.begin(), shorts.end()}))
      near.push_back(name);
    if (near.empty()) near.assign(shorts.begin(), shorts.end());
    const bool tied_head = has_suffix(entry, head_);
    problem(fmt::format("`{}` matches no module of the model", entry), key,
            tied_head ? "the head is tied to the embedding and cannot have a separate adapter"
                      : fmt::format("nearest names: {}; a whole name: {}", join(near, ", "),
                                    candidates.empty() ? "none" : candidates.back()),
            "correct the name; an unmatched target adds no adapter");
  }

  // True if PEFT's rule selects exactly these modules; then the user's settings are kept, else all
  // names are listed.
  bool peft_agrees(const std::function<bool(const std::string&)>& matches) const {
    const auto agrees = [&](const std::string& module) {
      return (matches(module) && !is_saved(module)) == (chosen_.count(module) != 0);
    };
    return std::ranges::all_of(modules_.linears, agrees) &&
           std::ranges::all_of(modules_.others, agrees);
  }

  void describe_for_peft() {
    PeftTargets& targets = selection_.targets;
    if (options_.target_regex) {
      const FullMatch regex(*options_.target_regex, options_.where + ".target_regex");
      if (peft_agrees([&](const std::string& module) { return regex.matches(module); })) {
        targets.target_regex = options_.target_regex;
        return;
      }
    } else if (peft_agrees([&](const std::string& module) {
                 return std::ranges::any_of(options_.target_modules, [&](const std::string& entry) {
                   return has_suffix(module, entry);
                 });
               })) {
      targets.target_modules = options_.target_modules;
      return;
    }
    targets.target_modules = selection_.modules;
  }

  const std::string head_, embedding_;
  const int64_t vocab_size_;
  const Strings& parameter_names_;
  Modules modules_;
  const AdapterTargets& options_;
  std::set<std::string> chosen_;
  int64_t num_saved_ = 0;
  AdapterSelection selection_;
  std::vector<Problem> problems_;
};

// A regular expression of the modules in the layers that the targets are restricted to, by PEFT's
// rule `LIST.N.`; "" without a restriction.
std::string layers_regex(const PeftTargets& targets) {
  if (targets.layers_to_transform.empty() || targets.target_regex) return "";
  const std::string list =
      targets.layers_pattern.empty()
          ? ".*\\.[^.]*"
          : fmt::format("(.*\\.)?({})", fmt::join(targets.layers_pattern, "|"));
  return fmt::format("{}\\.({})\\..*", list, fmt::join(targets.layers_to_transform, "|"));
}

}  // namespace

std::string find_untargeted(const PeftTargets& targets, const Strings& modules,
                            const std::string& where) {
  if (targets.target_regex == kAllLinear || contains(targets.target_modules, kAllLinear)) return "";
  std::optional<FullMatch> names, layers;
  if (targets.target_regex) names.emplace(*targets.target_regex, where + ": target_modules");
  if (const std::string regex = layers_regex(targets); !regex.empty())
    layers.emplace(regex, where + ": layers_pattern");
  for (const std::string& module : modules) {
    const bool is_named =
        names ? names->matches(module)
              : std::ranges::any_of(targets.target_modules, [&](const std::string& entry) {
                  return has_suffix(module, entry);
                });
    if (!is_named || (layers && !layers->matches(module))) return module;
  }
  return "";
}

std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

std::function<bool(const std::string& parameter)> frozen_parameters(const ModelDescription& model,
                                                                    const FreezeSettings& freeze) {
  return [part_of = model.part_of, freeze](const std::string& parameter) {
    const ParameterPart part = part_of(parameter);
    return part == ParameterPart::kVit       ? freeze.vit
           : part == ParameterPart::kAligner ? freeze.aligner
                                             : freeze.llm;
  };
}

AdapterSelection select_targets(const ModelDescription& model, const Strings& parameter_names,
                                const AdapterTargets& options) {
  return Chooser(model, parameter_names, options).choose();
}

}  // namespace rematch
