// The table of docs/reliability.md: what every command reads, writes and could replace.
#include "cli/command_effects.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <set>

#include "base/file.h"
#include "cli/command_set.h"
#include "support/paths.h"

namespace rematch {

TEST(CommandEffects, EveryCommandHasARow) {
  CLI::App app("", "rematch");
  std::set<std::string> commands, rows;
  for (const Command& command : add_commands(app)) {
    const std::string parent = command.app->get_parent()->get_name();
    commands.insert((parent == "rematch" ? "" : parent + " ") + command.app->get_name());
  }
  for (const CommandEffects& row : command_effects()) rows.insert(row.command);
  EXPECT_EQ(rows, commands);
}

TEST(CommandEffects, ACommandWritesAFileExactlyIfItHasAnOptionForIt) {
  CLI::App app("", "rematch");
  const std::vector<Command> commands = add_commands(app);
  const std::set<std::string> fixed_places{"train", "eval", "add-coord-tokens"};
  for (const CommandEffects& row : command_effects()) {
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& command) {
      return std::string(row.command).ends_with(command.app->get_name()) &&
             (std::string(row.command).starts_with("data ") ==
              (command.app->get_parent()->get_name() == "data"));
    });
    ASSERT_NE(found, commands.end()) << row.command;
    bool has_place = fixed_places.contains(row.command);
    for (const char* option : {"--out", "--fix", "--draw", "--sheet"}) {
      const CLI::Option* place = found->app->get_option_no_throw(option);
      has_place = has_place || (place != nullptr && !place->get_group().empty());
    }
    EXPECT_EQ(has_place, *row.writes != '\0') << row.command;
    EXPECT_EQ(*row.replaces != '\0', *row.writes != '\0') << row.command;
  }
}

TEST(CommandEffects, TheCommittedTableIsThisOne) {
  const std::string path = test::source_path("docs/reliability.md");
  const std::string begin = "<!-- command_effects -->\n", end = "<!-- end -->\n";
  std::string page = read_file(path);
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const size_t inside = from + begin.size();
  if (std::getenv("REMATCH_UPDATE_DOCS")) {
    page.replace(inside, to - inside, command_effects_markdown());
    write_file_atomic(path, page);
  }
  EXPECT_EQ(page.substr(inside, page.find(end) - inside), command_effects_markdown())
      << "regenerate with: REMATCH_UPDATE_DOCS=1 program_models_test "
         "--gtest_filter='CommandEffects.*'";
}

}  // namespace rematch
