#pragma once
#include "assembly/session.h"
#include "config/config.h"
#include "ranks/group.h"
#include "resume/fingerprint.h"
#include "settings/settings.h"

namespace rematch {

/// The part of a run's identity that depends only on its configuration.
FingerprintInput fingerprint_input(const Settings& settings, int world_size);
/// The identity of a run, which a resumed checkpoint must share.
Fingerprint run_fingerprint(const ConfigResult& config, const Session& session, const Group& group);

/// run_fingerprint() after a check that all ranks have the same one and the same inputs.
/// @throws as require_equal()
Fingerprint agreed_fingerprint(const ConfigResult& config, const Session& session, Group& group);

/// Refuses ranks with different configurations, before other inputs are read. Paths, names of the
/// run and data workers may differ. @throws as require_equal()
void meet_with_configuration(const ConfigResult& result, Group& group);

}  // namespace rematch
