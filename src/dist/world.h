#pragma once

namespace rematch {

/// This process among its peers. Today there is one; the type keeps every caller honest about it.
struct World {
  int size = 1;
  int rank = 0;
};

/// Reads WORLD_SIZE and RANK. @throws UserError (environment) when WORLD_SIZE > 1: training on many ranks is not built yet
World world_from_environment();

}  // namespace rematch
