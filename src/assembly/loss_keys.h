#pragma once
#include "mstep/loss/loss_term.h"
#include "settings/settings.h"

namespace rematch {

/// Adds the keys of all loss terms but those on coord slots, which config/ has itself: NAME becomes
/// `custom.loss.NAME`, in both stages. Call before a configuration is read, and once only.
void add_loss_keys();

/// What a configuration says about the losses.
LossOptions loss_options(const Settings& settings,
                         const std::array<TokenId, 1000>& coord_token_ids);

}  // namespace rematch
