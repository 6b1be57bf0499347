#pragma once
#include <string>

namespace rematch {

/// This process among its peers, as torchrun or SLURM describes it in the environment.
struct World {
  int size = 1;
  int rank = 0;
  int local_size = 1;  ///< ranks on this host
  int local_rank = 0;  ///< 0..local_size-1: the GPU of this host
  int restart = 0;     ///< number of restarts of the group
  /// from the launcher; together with `restart` it separates the store's keys of each attempt
  std::string run_id = "none";
  std::string host;  ///< of the store; empty with one rank
  int port = 0;      ///< its port
  /// true if torchrun hosts the store; else rank 0 does
  bool store_is_hosted = false;

  /// SLURM gave this task one GPU that no other task sees, so all number theirs 0
  bool sees_own_gpu = false;

  bool is_alone() const { return size == 1; }
  bool hosts_store() const { return rank == 0 && !store_is_hosted; }
  bool operator==(const World&) const = default;
};

/// Reads the environment: torchrun's variables (Kubernetes' PyTorchJob sets them too), else those
/// of a SLURM step (`srun`), else one rank.
/// @throws UserError (environment) naming a variable that is missing, out of range or contradicts
/// another
World world_from_environment();

/// The first host of a SLURM node list: "gpu[03-05,7],login" is "gpu03". Empty for an empty list.
std::string first_host(const std::string& node_list);

}  // namespace rematch
