#include "learn/mstep/optim/groups.h"

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

struct PartRow {
  ParameterPart part;
  const char* name;
  bool is_frozen;
  double learning_rate;
};

}  // namespace

bool is_undecayed(const std::string& name) {
  const Strings components = split(name, '.');
  if (components.back() != "weight") return true;  // a bias, or a vector of a recurrence
  if (components.size() < 2) return false;
  const std::string& module = components[components.size() - 2];
  return module.find("norm") != std::string::npos || module.starts_with("ln_");
}

std::vector<ParameterGroup> make_groups(const NamedTensors& parameters,
                                        const ParameterParts& part_of, const OptimSettings& optim,
                                        const FreezeSettings& freeze) {
  const PartRow rows[] = {
      {ParameterPart::kVit, "vit", freeze.vit, optim.vit_lr.value_or(optim.learning_rate)},
      {ParameterPart::kAligner, "aligner", freeze.aligner,
       optim.aligner_lr.value_or(optim.learning_rate)},
      {ParameterPart::kLlm, "llm", freeze.llm, optim.learning_rate},
  };
  std::vector<ParameterGroup> groups;
  for (const PartRow& row : rows) {
    ParameterGroup decayed{row.name, row.learning_rate, optim.weight_decay, {}, {}};
    ParameterGroup undecayed{std::string(row.name) + ".no_decay", row.learning_rate, 0.0, {}, {}};
    for (const auto& [name, tensor] : parameters) {
      if (part_of(name) != row.part) continue;
      tensor.set_requires_grad(!row.is_frozen);
      if (row.is_frozen) continue;
      ParameterGroup& group = is_undecayed(name) ? undecayed : decayed;
      group.names.push_back(name);
      group.parameters.push_back(tensor);
    }
    for (ParameterGroup* group : {&decayed, &undecayed}) {
      if (!group->names.empty()) groups.push_back(std::move(*group));
    }
  }
  REMATCH_CHECK(!groups.empty(), "the configuration refuses a run without trainable parts");
  return groups;
}

}  // namespace rematch
