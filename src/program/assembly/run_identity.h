#pragma once
#include "base/settings/settings.h"
#include "engine/ranks/group.h"
#include "learn/resume/fingerprint.h"
#include "program/assembly/make_trainer.h"
#include "program/config/config.h"

namespace rematch {

/// The part of a run's identity that depends only on its configuration and its training data.
FingerprintInput fingerprint_input(const Settings& settings, const Data& data, int world_size);
/// The identity of a run, which a resumed checkpoint must share, after a check that all ranks have
/// the same one.
/// @throws as require_equal()
Fingerprint agreed_fingerprint(const Training& training);

/// Refuses ranks with different configurations, before other inputs are read. Paths, names of the
/// run and data workers may differ.
/// @throws as require_equal()
void meet_with_configuration(const ConfigResult& result, Group& group);

}  // namespace rematch
