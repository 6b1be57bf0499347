#include "base/choices.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

struct Row {
  std::string name;
  std::string meaning;
  int value = 0;
};

Choices<Row> colours() {
  return {"colour", "sky.colour", "close your eyes", {{"red", "warm", 1}, {"blue", "cold", 2}}};
}

}  // namespace

TEST(Choices, FindRowsByName) {
  EXPECT_EQ(colours().find("blue").value, 2);
  EXPECT_EQ(colours().names(), (std::vector<std::string>{"red", "blue"}));
  EXPECT_EQ(colours().meanings(), "`red` (warm), `blue` (cold)");
}

TEST(Choices, TakeMoreRowsAndKeepTheOldOnesWhereTheyAre) {
  Choices<Row> table = colours();
  const Row& red = table.find("red");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(table.add({"grey" + std::to_string(i), "dull", i}));
  EXPECT_EQ(&red, &table.find("red"));
  EXPECT_EQ(table.find("grey99").value, 99);
}

TEST(Choices, RefuseAnUnknownNameWithTheOthersAndTheNearest) {
  const UserError near = test::catch_user_error([] { colours().find("rad"); });
  EXPECT_EQ(near.kind(), ErrorKind::kConfig);
  EXPECT_EQ(near.problems()[0].error, "unknown colour \"rad\"");
  EXPECT_EQ(near.problems()[0].where, "sky.colour");
  EXPECT_EQ(near.problems()[0].fix,
            "did you mean \"red\"? `sky.colour` is one of red, blue, or close your eyes");
  EXPECT_EQ(test::catch_user_error([] { colours().find("chartreuse"); }).problems()[0].fix,
            "set `sky.colour` to one of red, blue, or close your eyes");
}

}  // namespace rematch
