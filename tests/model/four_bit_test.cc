#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>

#include "model/adapter.h"
#include "model/adapter_base.h"
#include "model/adapter_targets.h"
#include "model/checkpoint/quantisation.h"
#include "model/four_bit_reader.h"
#include "model/lora_oracle_cases.h"
#include "model/merge_adapter.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/four_bit/" + name);
}

const std::string kQkv = "model.visual.blocks.1.attn.qkv.weight";
const std::string kDown = "model.language_model.layers.2.mlp.down_proj.weight";
const std::string kDownState = kDown + ".quant_state.bitsandbytes__nf4";

at::Tensor to_bytes(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  return bytes;
}

std::string to_text(const at::Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()};
}

Problem problem_of(const std::string& model_dir, const ModelOptions& options = {}) {
  return test::catch_user_error([&] { Model::load(model_dir, options); }).problems()[0];
}

/// The model with every weight in full precision: what the packed one stands for.
std::shared_ptr<Model> dequantised_model(const std::string& base, const Model& packed,
                                         const ModelOptions& options) {
  auto plain = Model::load(base, options);
  for (const NamedParameter& parameter : packed.parameters())
    plain->parameter(parameter.name).copy_(parameter.values());
  return plain;
}

void expect_equal(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

AdapterSelection all_linear(const Model& model) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return select_targets(model.description(), names, {});
}

TEST(FourBitModel, CheckpointsOfTransformersGiveItsLogitsAndPeftsGradients) {
  for (const char* name : {"lora", "dora"}) {
    SCOPED_TRACE(name);
    test::expect_equals_peft(golden("nf4_double"), golden(name), /*with_dropout=*/false);
  }
}

TEST(FourBitModel, OnlyThePackedLinearsOfACheckpointArePacked) {
  const auto all = Model::load(golden("nf4_double"), {});
  EXPECT_EQ(all->num_packed(), static_cast<int64_t>(all->linears().size()));
  EXPECT_TRUE(all->unused_tensors().empty());
  EXPECT_FALSE(all->find_parameter(test::kEmbedding)->packed);
  const auto some = Model::load(golden("fp4_skip"), {});
  EXPECT_FALSE(some->find_parameter(kQkv)->packed);
  EXPECT_EQ(some->find_parameter(kDown)->packed->kind, FourBitKind::kFp4);
  const auto shapes = Model::load(golden("nf4_double"), {.device = at::kMeta});
  EXPECT_EQ(shapes->num_packed(), all->num_packed());
}

TEST(FourBitModel, QuantisingWhileLoadingGivesTransformersCodes) {
  const auto stored = Model::load(golden("nf4_double"), {});
  const auto own = Model::load(test::tiny_tied(), {.four_bit = {{.use_double_quant = true}}});
  ASSERT_EQ(own->num_packed(), stored->num_packed());
  for (const NamedParameter& parameter : stored->parameters()) {
    SCOPED_TRACE(parameter.name);
    expect_equal(own->find_parameter(parameter.name)->stored(), parameter.stored());
    EXPECT_TRUE(at::equal(own->find_parameter(parameter.name)->values(), parameter.values()));
  }
}

TEST(FourBitModel, SkippedModulesAndTheHeadStayInFull) {
  const auto model =
      Model::load(test::tiny_untied(), {.four_bit = {{.skip_modules = {"visual", "q_proj"}}}});
  for (const NamedParameter& parameter : model->parameters()) {
    const bool stays = parameter.name.find("visual") != std::string::npos ||
                       parameter.name.find("q_proj.") != std::string::npos ||
                       parameter.name == test::kHead || parameter.name == test::kEmbedding ||
                       parameter.tensor.dim() < 2;
    EXPECT_EQ(parameter.packed == nullptr, stays) << parameter.name;
  }
}

// Every family: loss and gradients of an adapter equal those on the dequantised weights.
TEST(FourBitModel, AnAdapterHasTheNumbersOfTheDequantisedWeights) {
  for (const std::string& base : {test::tiny_untied(), test::windows_tied(), test::delta_tied()}) {
    for (const bool use_dora : {false, true}) {
      for (const Checkpointing checkpointing :
           {Checkpointing::kOff, Checkpointing::kOn, Checkpointing::kSelective}) {
        SCOPED_TRACE(base);
        const auto packed = Model::load(
            base, {.gradient_checkpointing = checkpointing,
                   .four_bit = {{.quant_type = FourBitKind::kFp4, .use_double_quant = true}}});
        EXPECT_GT(packed->num_packed(), 0);
        const auto plain =
            dequantised_model(base, *packed, {.gradient_checkpointing = checkpointing});
        const LoraSettings lora{.rank = 3, .dropout = 0.3, .use_dora = use_dora};
        const auto run = [&](Model& model) {
          const auto adapter = Adapter::create(model, all_linear(model), {.lora = lora});
          const at::NoGradGuard no_grad;
          at::manual_seed(7);
          for (const NamedParameter& parameter : adapter->parameters())
            at::Tensor(parameter.tensor).add_(at::randn(parameter.tensor.sizes()) * 0.05);
          return adapter;
        };
        const auto own = run(*packed), expected = run(*plain);
        const RowInput row{
            .token_ids = {5, 9, 2, 7, 3, 11, 4, 8}, .segment_lens = {8}, .grids = {}};
        const auto loss = [&](const Model& model, Adapter& adapter) {
          const RowScope training = adapter.training_row(1, 2);
          const at::Tensor sum = model.head_KV(model.forward_TH(row, {})).square().mean();
          torch::autograd::backward({sum}, {});
          return sum.item<double>();
        };
        const double scale = loss(*plain, *expected);
        EXPECT_NEAR(loss(*packed, *own), scale, 1e-5 * scale);
        for (size_t i = 0; i < own->parameters().size(); ++i) {
          const at::Tensor &a = own->parameters()[i].tensor.grad(),
                           &b = expected->parameters()[i].tensor.grad();
          ASSERT_EQ(a.defined(), b.defined());
          if (!a.defined()) continue;
          EXPECT_LE((a - b).abs().max().item<double>(), 1e-5 * (1 + b.abs().max().item<double>()))
              << own->parameters()[i].name;
        }
        const at::NoGradGuard
            no_grad;  // as in rollouts: packed weights and the adapter, merged weights
        const at::Tensor apart = packed->head_KV(packed->forward_TH(row, {})),
                         merged = plain->head_KV(plain->forward_TH(row, {}));
        EXPECT_LT((apart - merged).abs().max().item<double>(),
                  1e-5 * (1 + merged.abs().max().item<double>()));
      }
    }
  }
}

TEST(FourBitModel, AGraphKeepsNoDequantisedWeight) {
  const auto model = Model::load(test::tiny_tied(), {.four_bit = FourBitSettings{}});
  const LinearWeights layer = model->linears().front().second;
  ASSERT_TRUE(layer.packed);
  const at::Tensor x = at::randn({4, layer.weight.size(1)}).requires_grad_(true);
  const at::Tensor y = base_linear(x, layer);
  EXPECT_NE(y.grad_fn()->name().find("FourBitFunction"), std::string::npos);
  EXPECT_EQ(layer.weight.device().type(), at::kMeta);  // only a shape
}

TEST(FourBitModel, AMergedCheckpointIsTheDequantisedOneWithTheAdapter) {
  const auto model = Model::load(golden("nf4_double"), {});
  const auto adapter = Adapter::load(*model, read_peft_adapter(golden("dora")), "dora");
  const test::TempDir dir;
  const MergedAdapter done = merge_adapter({.adapter_dir = golden("dora"),
                                            .base_dir = golden("nf4_double"),
                                            .output_dir = dir.path() + "/out"});
  EXPECT_EQ(done.num_dequantised, model->num_packed());
  EXPECT_FALSE(stored_quantisation(dir.path() + "/out"));
  const auto merged = Model::load(dir.path() + "/out", {});
  EXPECT_EQ(merged->num_packed(), 0);
  EXPECT_TRUE(merged->unused_tensors().empty());
  for (const NamedParameter& parameter : model->parameters())
    EXPECT_TRUE(
        at::allclose(merged->parameter(parameter.name), adapter->merge(parameter), 1e-5, 1e-6))
        << parameter.name;
}

// Weights packed by `model.load_in_4bit` are not in the files of the base: the adapter's record
// tells.
TEST(FourBitModel, AnAdapterOfABasePackedWhileLoadingMergesWithThePackedValues) {
  const FourBitSettings packing{
      .quant_type = FourBitKind::kFp4, .use_double_quant = true, .skip_modules = {"visual"}};
  const auto model = Model::load(test::tiny_tied(), {.four_bit = packing});
  const AdapterBase base = describe_base(test::tiny_tied());
  const auto adapter =
      Adapter::create(*model, all_linear(*model),
                      {.lora = {.rank = 2},
                       .base_model = base.path,
                       .base = {.weights_hash = base.weights_hash, .packed = packing}});
  const test::TempDir dir;
  std::filesystem::create_directory(dir.file("adapter"));
  write_peft_adapter(dir.file("adapter"), adapter->files());
  EXPECT_EQ(read_peft_adapter(dir.file("adapter")).config.base.packed, packing);
  const MergedAdapter done = merge_adapter(
      {.adapter_dir = dir.file("adapter"), .output_dir = dir.file("out"), .dtype = at::kFloat});
  EXPECT_TRUE(done.packed_at_load);
  EXPECT_EQ(done.num_dequantised, model->num_packed());
  const auto merged = Model::load(dir.file("out"), {});
  for (const NamedParameter& parameter : model->parameters()) {
    EXPECT_TRUE(
        at::allclose(merged->parameter(parameter.name), adapter->merge(parameter), 1e-5, 1e-6))
        << parameter.name;
  }
}

TEST(FourBitModel, ASkippedModuleThatDoesNotExistIsRefused) {
  for (const char* entry : {"visuals", "q_proj.weight", "model.visual.blocks.99", ""}) {
    SCOPED_TRACE(entry);
    const Problem problem =
        problem_of(test::tiny_tied(), {.four_bit = {{.skip_modules = {"visual", entry}}}});
    EXPECT_EQ(problem.where, "model.llm_int8_skip_modules");
    EXPECT_NE(problem.error.find('`' + std::string(entry) + '`'), std::string::npos);
  }
  const Problem weight =
      problem_of(test::tiny_tied(), {.four_bit = {{.skip_modules = {"up_proj.weight"}}}});
  EXPECT_EQ(weight.fix, "leave out `.weight`: up_proj");
}

TEST(FourBitModel, APackedWeightIsNotTrainedInFull) {
  const auto model = Model::load(test::tiny_tied(), {.four_bit = FourBitSettings{}});
  AdapterSelection selection = all_linear(*model);
  selection.saved_parameters = {kDown};
  const UserError error = test::catch_user_error([&] { Adapter::create(*model, selection, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].error.find(kDown), std::string::npos);
}

TEST(FourBitModel, AQuantisedCheckpointIsNotQuantisedAgain) {
  EXPECT_EQ(problem_of(golden("nf4_double"), {.four_bit = FourBitSettings{}}).where,
            "model.load_in_4bit");
}

TEST(FourBitModel, OtherQuantisationsAreRefusedByName) {
  for (const auto& [config, name] : std::vector<std::pair<std::string, std::string>>{
           {R"({"quant_method": "awq", "bits": 4})", "awq"},
           {R"({"quant_method": "gptq", "bits": 4})", "gptq"},
           {R"({"quant_method": "fp8"})", "fp8"},
           {R"({"quant_method": "compressed-tensors"})", "compressed-tensors"},
           {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "8 bits"},
           {R"({"bits": 4})", "unknown"}}) {
    test::CheckpointCopy copy(test::tiny_tied());
    copy.edit_config([&](Json& json) { json["quantization_config"] = Json::parse(config); });
    const Problem problem = problem_of(copy.path());
    EXPECT_NE(problem.error.find(name), std::string::npos) << problem.error;
    EXPECT_NE(problem.fix.find("load_in_4bit"), std::string::npos);
  }
  test::CheckpointCopy copy(test::tiny_tied());
  copy.edit_config([&](Json& json) {
    json["quantization_config"] = {{"load_in_4bit", true}, {"bnb_4bit_quant_type", "int4"}};
  });
  EXPECT_NE(problem_of(copy.path()).what.find("int4"), std::string::npos);
}

TEST(FourBitModel, DamagedStatesAreRefusedWithTheirNumbers) {
  using Change = std::function<void(test::CheckpointCopy&)>;
  const auto edit = [](const std::string& key, const Json& value) -> Change {
    return [=](test::CheckpointCopy& copy) {
      Json state = Json::parse(to_text(copy.tensor(kDownState)));
      state[key] = value;
      copy.tensor(kDownState) = to_bytes(state.dump());
    };
  };
  const std::vector<std::pair<std::string, Change>> changes = {
      {"not JSON", [](auto& copy) { copy.tensor(kDownState) = to_bytes("{"); }},
      {"no codes", [](auto& copy) { copy.tensor(kDown) = at::zeros({1023, 1}, at::kByte); }},
      {"no absmax", [](auto& copy) { copy.remove(kDown + ".absmax"); }},
      {"short absmax",
       [](auto& copy) { copy.tensor(kDown + ".absmax") = at::zeros({31}, at::kByte); }},
      {"absmax dtype", [](auto& copy) { copy.tensor(kDown + ".absmax") = at::zeros({32}); }},
      {"nested nan", [](auto& copy) { copy.tensor(kDown + ".nested_absmax").fill_(NAN); }},
      {"no nested map", [](auto& copy) { copy.remove(kDown + ".nested_quant_map"); }},
      {"other table", [](auto& copy) { copy.tensor(kDown + ".quant_map").mul_(0.9); }},
      {"shape", edit("shape", Json::array({64, 32}))},
      {"no shape", edit("shape", nullptr)},
      {"blocksize", edit("blocksize", 0)},
      {"huge blocksize", edit("blocksize", int64_t{1} << 60)},
      {"type", edit("quant_type", "fp4")},
      {"nested blocksize", edit("nested_blocksize", -1)},
      {"offset", edit("nested_offset", "high")},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    test::CheckpointCopy copy(golden("nf4_double"));
    change(copy);
    copy.write_weights();
    const UserError error = test::catch_user_error([&] { Model::load(copy.path(), {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.problems()[0].error.find("4-bit weight " + kDown), std::string::npos)
        << error.problems()[0].error;
  }
}

TEST(FourBitModel, CodesOfAnyStorageDtypeAreTheSame) {
  test::CheckpointCopy copy(golden("nf4_double"));
  for (TensorEntry& entry : copy.tensors) {
    if (entry.name == kDown) entry.tensor = entry.tensor.flatten().view(at::kBFloat16).unsqueeze(1);
  }
  copy.write_weights();
  const auto stored = Model::load(golden("nf4_double"), {}), other = Model::load(copy.path(), {});
  expect_equal(other->find_parameter(kDown)->stored(), stored->find_parameter(kDown)->stored());
}

TEST(FourBitModel, ValuesAreRoundedToTheDtypeOfTheirState) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    test::CheckpointCopy copy(golden("nf4_double"));
    at::Tensor& state = copy.tensor(kDownState);
    Json json = Json::parse(to_text(state));
    json["dtype"] = dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
    state = to_bytes(json.dump());
    copy.write_weights();
    const auto model = Model::load(copy.path(), {});
    FourBitWeight exact = *model->find_parameter(kDown)->packed;
    exact.rounded_to = at::kFloat;
    EXPECT_TRUE(
        at::equal(model->find_parameter(kDown)->values(), exact.dequantised(dtype).to(at::kFloat)))
        << at::toString(dtype);
  }
}

TEST(FourBitModel, APackedEmbeddingIsRefused) {
  test::CheckpointCopy copy(golden("nf4_double"));
  copy.tensor(std::string(test::kEmbedding) + ".quant_state.bitsandbytes__nf4") = to_bytes("{}");
  copy.write_weights();
  EXPECT_NE(problem_of(copy.path()).error.find(test::kEmbedding), std::string::npos);
}

}  // namespace
}  // namespace rematch
