#include "model/finite_weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

TEST(CheckFiniteWeights, NamesTheFirstParameterThatIsNot) {
  std::vector<NamedParameter> parameters{
      {"a", at::ones({3})}, {"b", at::ones({2, 2})}, {"c", at::ones({2}).to(at::kBFloat16)}};
  EXPECT_NO_THROW(check_finite_weights(parameters));
  parameters[1].tensor[0][1] = std::numeric_limits<float>::quiet_NaN();
  parameters[2].tensor.fill_(std::numeric_limits<float>::infinity());
  const UserError error = test::catch_user_error([&] { check_finite_weights(parameters); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "b");
  EXPECT_NE(error.problems()[0].what.find("1 of its values"), std::string::npos);
  EXPECT_NE(error.problems()[0].what.find("2 of 3 parameters"), std::string::npos);
}

}  // namespace rematch
