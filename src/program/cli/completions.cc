#include "program/cli/completions.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/text.h"

namespace rematch {
namespace {

/// "data check" → its options and subcommands, for every command.
std::map<std::string, std::vector<std::string>> words_of(const CLI::App& app,
                                                         const std::string& path = "") {
  std::map<std::string, std::vector<std::string>> all;
  std::vector<std::string>& words = all[path];
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
    all.merge(
        words_of(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) all[path].push_back("--" + name);
  }
  return all;
}

/// Keys as `explain` takes them: whole, and their last parts alone.
std::vector<std::string> explained(const std::vector<std::string>& keys) {
  std::vector<std::string> names = keys;
  for (const std::string& key : keys) names.push_back(key.substr(key.rfind('.') + 1));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string bash_script(const CLI::App& app, const std::vector<std::string>& keys) {
  std::string cases;
  for (const auto& [path, words] : words_of(app))
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, join(words, " "));
  return fmt::format(
      "_rematch() {{\n  local current=${{COMP_WORDS[COMP_CWORD]}} path=\"\" words=\"\" i word\n"
      "  for ((i = 1; i < COMP_CWORD && i <= 2; ++i)); do\n    word=${{COMP_WORDS[i]}}\n"
      "    [[ $word == -* ]] && break\n    [[ $i == 2 && $path != data ]] && break\n    "
      "path=\"${{path:+$path }}$word\"\n  done\n"
      "  case $path in\n{}  esac\n"
      "  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == --set ]]; then\n"
      "    COMPREPLY=($(compgen -S = -W \"{}\" -- \"$current\"))\n"
      "    compopt -o nospace 2>/dev/null || true\n    return\n  fi\n"
      "  if [[ $path == explain ]]; then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))\n    return\n  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ $current == -* || -z $path || $path == data ]] && return\n"
      "  local IFS=$'\\n'\n"  // a name with a space is one name
      "  COMPREPLY+=($(compgen -f -- \"$current\"))\n}}\n"
      "complete -o filenames -F _rematch rematch\n",
      cases, join(keys, " "), join(explained(keys), " "));
}

std::string fish_script(const CLI::App& app, const std::vector<std::string>& keys) {
  std::string text = fmt::format(
      "function __rematch_settings\n  printf '%s=\\n' {}\nend\n"
      "function __rematch_names\n  printf '%s\\n' {}\nend\n"
      // True after these words; `data check` is not `check`, nor is a command of `data` `data`.
      "function __rematch_at\n  set -l words (commandline -opc)\n"
      "  test \"$words[2]\" = \"$argv[1]\"; or return 1\n"
      "  test \"$words[2]\" = data; or return 0\n"
      "  test \"$words[3]\" = \"$argv[2]\"\nend\n"
      "complete -c rematch -n '__rematch_at explain' -f -a '(__rematch_names)'\n",
      join(keys, " "), join(explained(keys), " "));
  for (const auto& [path, words] : words_of(app)) {
    // The program's own options are left out; `data ""` is a command of `data`.
    const std::string here = path.empty()     ? "__fish_use_subcommand"
                             : path == "data" ? "'__rematch_at data \"\"'"
                                              : "'__rematch_at " + path + "'";
    for (const std::string& word : words) {
      if (!word.starts_with("--"))
        text += fmt::format("complete -c rematch -n {} -f -a {}\n", here, word);
      else if (!path.empty())
        text += fmt::format("complete -c rematch -n {} -l {}{}\n", here, word.substr(2),
                            word == "--set" ? " -x -a '(__rematch_settings)'" : "");
    }
  }
  return text;
}

}  // namespace

std::string completions_for(const std::string& shell, const CLI::App& app,
                            const std::vector<std::string>& keys) {
  if (shell == "fish") return fish_script(app, keys);
  if (shell == "zsh")
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_script(app, keys);
  return bash_script(app, keys);
}

}  // namespace rematch
