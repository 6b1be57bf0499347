// The table of docs/reliability.md, kept by hand: what every command reads, writes and replaces.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "program/cli/command_set.h"
#include "support/paths.h"

namespace rematch {
namespace {

// The cells of each row, by the commands of its first cell.
std::map<std::string, std::vector<std::string>> committed_rows() {
  const std::string page = read_file(test::source_path("docs/reliability.md"));
  const std::string section = "\n## What commands read and write\n";
  const size_t from = page.find(section);
  EXPECT_NE(from, std::string::npos);
  std::map<std::string, std::vector<std::string>> rows;
  const std::string rest = page.substr(from + section.size());
  for (const std::string& line : split(rest.substr(0, rest.find("\n## ")), '\n')) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, '|')) cells.push_back(python_strip(cell));
    EXPECT_EQ(cells.size(), 7) << line;  // five, and what stands before and after them
    cells.resize(7);
    for (const std::string& quoted : split(cells[1], ',')) {
      const std::string name = python_strip(quoted), command = name.substr(1, name.size() - 2);
      EXPECT_TRUE(rows.emplace(command, cells).second) << "two rows of " << command;
    }
  }
  return rows;
}

std::map<std::string, Command> commands_by_name(CLI::App& app) {
  std::map<std::string, Command> commands;
  for (const Command& command : add_commands(app)) {
    const std::string parent = command.app->get_parent()->get_name();
    commands.emplace((parent == "rematch" ? "" : parent + " ") + command.app->get_name(), command);
  }
  return commands;
}

TEST(CommandEffects, EveryCommandHasARowAndEveryRowACommand) {
  CLI::App app("", "rematch");
  std::set<std::string> commands, rows;
  for (const auto& [name, command] : commands_by_name(app)) commands.insert(name);
  for (const auto& [name, cells] : committed_rows()) rows.insert(name);
  EXPECT_EQ(rows, commands);
}

TEST(CommandEffects, ACommandWritesAFileExactlyIfItHasAnOptionForIt) {
  CLI::App app("", "rematch");
  const std::map<std::string, Command> commands = commands_by_name(app);
  const std::set<std::string> fixed_places{"train", "eval", "add-coord-tokens"};
  const std::string nothing = "–";
  for (const auto& [name, cells] : committed_rows()) {
    ASSERT_TRUE(commands.contains(name)) << name;
    bool has_place = fixed_places.contains(name);
    for (const char* option : {"--out", "--fix", "--draw", "--sheet"}) {
      const CLI::Option* place = commands.at(name).app->get_option_no_throw(option);
      has_place = has_place || (place != nullptr && !place->get_group().empty());
    }
    EXPECT_EQ(has_place, cells[3] != nothing) << name;
    EXPECT_EQ(cells[4] != nothing, cells[3] != nothing) << name;
    for (size_t column = 2; column <= 5; ++column) EXPECT_NE(cells[column], "") << name;
  }
}

}  // namespace
}  // namespace rematch
