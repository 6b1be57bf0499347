#include "base/text.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(PythonStrip, RemovesWhatStrStripRemoves) {
  EXPECT_EQ(python_strip("\u3000 a b\x1c\u00a0"), "a b");
  EXPECT_EQ(python_strip("\u200b"), "\u200b");  // zero width space is not white space in Python
  EXPECT_EQ(python_strip(" \t\n"), "");
}

TEST(IsValidUtf8, RefusesSurrogatesAndOverlongForms) {
  EXPECT_TRUE(is_valid_utf8("aé漢😀"));
  EXPECT_FALSE(is_valid_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xc0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xf4\x90\x80\x80"));
}

TEST(NearNames, PutsTheLikeliestFirst) {
  const auto names = near_names("learning_rte", {"seed", "learning_rate", "lr", "warmup_ratio"});
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0], "learning_rate");
}

TEST(NormalizeNfc, Composes) { EXPECT_EQ(normalize_nfc("e\u0301"), "\u00e9"); }

}  // namespace rematch
