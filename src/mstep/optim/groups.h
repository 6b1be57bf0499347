#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/families/description.h"
#include "mstep/optim/adamw.h"

namespace rematch {

/// Learning rates, decay and frozen parts (BEHAVIOUR 12.1, 12.2).
struct GroupOptions {
  double learning_rate = 0;
  std::optional<double> vit_lr;      ///< none = learning_rate
  std::optional<double> aligner_lr;  ///< none = learning_rate
  double weight_decay = 0;
  bool freeze_llm = false;
  bool freeze_vit = false;
  bool freeze_aligner = false;
};

/// True for weights of norms and for biases, which are not decayed.
bool is_undecayed(const std::string& name);

/// Sets requires_grad of every parameter by the freeze options and groups the trainable ones: vit, aligner, llm, each with decay then without
/// (".no_decay"), empty groups left out; inside a group the order given.
/// @param parameters  leaves under their checkpoint names
/// @param part_of     of the model's description
/// @throws UserError (config) when nothing is trainable
std::vector<ParameterGroup> make_groups(const std::vector<std::pair<std::string, at::Tensor>>& parameters, const ParameterParts& part_of,
                                        const GroupOptions& options);

}  // namespace rematch
