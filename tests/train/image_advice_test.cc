#include "program/assembly/image_advice.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(ImageAdvice, NamesTheAreaWhereImagesAreHalfOfTheTokens) {
  EXPECT_EQ(image_advice_text({.num_image = 500, .num_all = 1000, .most = 100}, 32),
            "images are 50 % of the tokens, up to 100 each: template.max_pixels: 51200 halves the "
            "largest");
  EXPECT_EQ(image_advice_text({.num_image = 499, .num_all = 1000, .most = 100}, 32), "");
  EXPECT_EQ(image_advice_text({}, 32), "");
}

}  // namespace rematch
