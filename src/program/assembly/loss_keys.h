#pragma once
#include "base/settings/settings.h"
#include "learn/mstep/loss/loss_term.h"

namespace rematch {

/// Adds the configuration keys `custom.loss.NAME` of all loss terms, except those on coord slots,
/// which config/ defines. Call it once, before a configuration is read.
void add_loss_keys();

/// The loss options of a configuration.
/// @param coord_token_ids  vocabulary id of each bin
LossOptions loss_options(const Settings& settings,
                         const std::array<TokenId, 1000>& coord_token_ids);

}  // namespace rematch
