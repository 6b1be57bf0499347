#include "model/nn/four_bit.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

#include "model/checkpoint/safetensors.h"
#include "model/nn/affine.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Values of bitsandbytes (dev/goldens/four_bit.py).
class Golden {
 public:
  at::Tensor tensor(const std::string& name) const { return file_->tensor(name); }
  int64_t blocksize(const std::string& name) const {
    return tensor(name + ".blocksize").item<int64_t>();
  }

 private:
  std::shared_ptr<SafetensorsFile> file_ =
      SafetensorsFile::open(test::source_path("tests/golden/four_bit/values.safetensors"));
};

std::string prefix(const std::string& name, FourBitKind kind, bool is_double) {
  return name + "." + name_of(kind) + (is_double ? ".double." : ".");
}

// Also tells 0 from −0.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         at::equal(a.contiguous().view(at::kByte), b.contiguous().view(at::kByte));
}

template <typename Check>
void for_each_case(const Check& check) {
  for (const char* name : {"long", "tail", "wide"}) {
    for (const FourBitKind kind : {FourBitKind::kNf4, FourBitKind::kFp4}) {
      for (const bool is_double : {false, true}) {
        SCOPED_TRACE(prefix(name, kind, is_double));
        check(std::string(name), kind, is_double);
      }
    }
  }
}

FourBitWeight stored(const Golden& golden, const std::string& name, FourBitKind kind,
                     bool is_double) {
  const at::Tensor shape = golden.tensor(name + ".weight");
  const std::string at = prefix(name, kind, is_double);
  FourBitWeight weight{.kind = kind,
                       .num_outputs = shape.size(0),
                       .num_inputs = shape.size(1),
                       .blocksize = golden.blocksize(name),
                       .codes = golden.tensor(prefix(name, kind, false) + "codes").flatten(),
                       .absmax = golden.tensor(at + "absmax")};
  if (is_double) {
    weight.nested_absmax = golden.tensor(at + "nested_absmax");
    weight.nested_map = golden.tensor("map");
    weight.offset = golden.tensor(at + "offset").item<float>();
  }
  return weight;
}

at::Tensor shown_rows(const at::Tensor& values) {
  return values.size(0) > 64 ? at::cat({values.narrow(0, 0, 16), values.slice(0, -16)}) : values;
}

TEST(FourBit, DequantisedValuesAreThoseOfBitsandbytesToTheBit) {
  const Golden golden;
  for_each_case([&](const std::string& name, FourBitKind kind, bool is_double) {
    const FourBitWeight weight = stored(golden, name, kind, is_double);
    const std::string at = prefix(name, kind, is_double);
    for (const auto& [dtype, dtype_name] :
         {std::pair{at::kFloat, "float32"}, std::pair{at::kBFloat16, "bfloat16"},
          std::pair{at::kHalf, "float16"}}) {
      EXPECT_TRUE(same_bits(shown_rows(weight.dequantised(dtype)), golden.tensor(at + dtype_name)))
          << dtype_name;
      EXPECT_TRUE(same_bits(dequantise_by_operators(weight, dtype), weight.dequantised(dtype)));
    }
  });
}

TEST(FourBit, CodesAndStatisticsAreThoseOfBitsandbytes) {
  const Golden golden;
  EXPECT_TRUE(same_bits(absmax_map(), golden.tensor("map")));
  for_each_case([&](const std::string& name, FourBitKind kind, bool is_double) {
    const FourBitWeight found =
        quantise(golden.tensor(name + ".weight"),
                 {.quant_type = kind, .use_double_quant = is_double}, golden.blocksize(name));
    const FourBitWeight expected = stored(golden, name, kind, is_double);
    EXPECT_TRUE(same_bits(found.codes, expected.codes));
    EXPECT_TRUE(same_bits(found.absmax, expected.absmax));
    EXPECT_EQ(found.offset, expected.offset);
    if (!is_double) return;
    EXPECT_TRUE(same_bits(found.nested_absmax, expected.nested_absmax));
  });
}

TEST(FourBit, EveryValueTurnsIntoTheNearestOfItsBlock) {
  at::manual_seed(3);
  for (const FourBitKind kind : {FourBitKind::kNf4, FourBitKind::kFp4}) {
    const at::Tensor weight = at::randn({5, 77});
    const FourBitWeight packed = quantise(weight, {.quant_type = kind});
    const auto& table = four_bit_values(kind);
    const at::Tensor values = at::tensor(std::vector<float>(table.begin(), table.end()));
    const at::Tensor scales = packed.absmax.repeat_interleave(64).narrow(0, 0, 5 * 77);
    const at::Tensor choices = scales.unsqueeze(1) * values,
                     nearest = (weight.flatten().unsqueeze(1) - choices).abs().amin(1),
                     error = (weight - packed.dequantised(at::kFloat)).abs().flatten();
    EXPECT_LT((error - nearest).abs().max().item<double>(), 1e-6);
  }
}

TEST(FourBit, QuantisingDequantisedValuesAgainChangesNothing) {
  at::manual_seed(4);
  for (const bool is_double : {false, true}) {
    const FourBitSettings options{.use_double_quant = is_double};
    const at::Tensor once = quantise(at::randn({24, 64}), {}).dequantised(at::kFloat);
    const at::Tensor twice = quantise(once, options).dequantised(at::kFloat);
    EXPECT_LE((once - twice).abs().max().item<double>(), is_double ? 0.02 : 0.0);
  }
}

TEST(FourBit, ZerosAndTinyWeightsStayFinite) {
  for (const FourBitKind kind : {FourBitKind::kNf4, FourBitKind::kFp4}) {
    for (const double value : {0.0, 1e-42, 1e30}) {
      const at::Tensor weight = at::full({3, 30}, value, at::kFloat);
      const FourBitWeight packed = quantise(weight, {.quant_type = kind, .use_double_quant = true});
      EXPECT_TRUE(packed.dequantised(at::kFloat).isfinite().all().item<bool>()) << value;
    }
  }
}

TEST(FourBit, AShapeHasTheBytesOfTheWeight) {
  for (const bool is_double : {false, true}) {
    const FourBitSettings options{.use_double_quant = is_double};
    const at::Tensor weight = at::randn({300, 65});
    const FourBitWeight shape = quantise(weight.to(at::kMeta), options);
    EXPECT_EQ(shape.num_bytes(), quantise(weight, options).num_bytes());
    EXPECT_EQ(shape.dequantised(at::kBFloat16).sizes(), weight.sizes());
  }
}

TEST(FourBit, AnAffineMapHasTheNumbersOfTheDequantisedWeight) {
  at::manual_seed(5);
  const auto weight = std::make_shared<const FourBitWeight>(quantise(at::randn({48, 40}), {}));
  const at::Tensor bias = at::randn({48});
  for (const int64_t rows : {3, 200}) {  // by MKL, by oneDNN
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({rows, 40}).to(dtype), g = at::randn({rows, 48}).to(dtype);
      const auto run = [&](bool packed) {
        const at::Tensor leaf = x.detach().clone().requires_grad_(true);
        const at::Tensor full = weight->dequantised(dtype), b = bias.to(dtype);
        const at::Tensor y = packed ? four_bit_affine(leaf, weight, b) : affine(leaf, full, b);
        torch::autograd::backward({y}, {g});
        return std::pair{y.detach(), leaf.grad()};
      };
      const auto [y, grad] = run(true);
      const auto [expected_y, expected_grad] = run(false);
      EXPECT_TRUE(at::equal(y, expected_y)) << rows;
      EXPECT_TRUE(at::equal(grad, expected_grad)) << rows;
    }
  }
}

}  // namespace
}  // namespace rematch
