"""The engine's module with a torch and a vLLM of this check's own: the index of a rank's GPU
arrives wherever a device is named, so that no rank opens a context on GPU 0.
"""

import importlib.util
import os
import sys
import types
from pathlib import Path

MODULE = Path(__file__).resolve().parents[2] / "src/engine/rollout/vllm/plugin/rematch_vllm.py"
GPU = 2
MEMORY = [(1, 80), (2, 81), (3, 82)]  # free and total bytes of three GPUs


class Seen:
    """What the fakes were asked for."""

    def __init__(self):
        self.memory_of, self.devices, self.local_rank = [], [], None


def fake_modules(seen):
    def mem_get_info(device=None):
        seen.memory_of.append(device)
        return MEMORY[device or 0]

    def make_device(kind, index):
        seen.devices.append((kind, index))
        return f"{kind}:{index}"

    def init_process_group(**options):
        seen.devices.append(options["device_id"])
        seen.local_rank = os.environ["LOCAL_RANK"]

    torch = types.ModuleType("torch")
    torch.device = make_device
    torch.cuda = types.SimpleNamespace(mem_get_info=mem_get_info)
    torch._dynamo = types.ModuleType("torch._dynamo")
    torch.distributed = types.ModuleType("torch.distributed")
    torch.distributed.HashStore = lambda: "store"
    torch.distributed.PrefixStore = lambda prefix, store: (prefix, store)
    torch.distributed.init_process_group = init_process_group
    return {module.__name__: module for module in (torch, torch._dynamo, torch.distributed)}


def load_module():
    spec = importlib.util.spec_from_file_location("rematch_vllm", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    seen = Seen()
    sys.modules.update(fake_modules(seen))
    module = load_module()
    assert module.cuda_memory_bytes(GPU) == MEMORY[GPU][1], "the memory of another GPU"
    assert seen.memory_of == [GPU], seen.memory_of

    group = {"rank": 1, "size": 2, "device": GPU, "host": "", "timeout_s": 5, "prefix": "engine"}
    before = os.environ.get("LOCAL_RANK")
    with module._distributed_environment(group):
        module._join(group, on_cpu=False)
    assert seen.devices == [("cuda", GPU), f"cuda:{GPU}"], seen.devices
    assert seen.local_rank == str(GPU), "vLLM's worker chooses its GPU by LOCAL_RANK"
    assert os.environ.get("LOCAL_RANK") == before, "the environment is restored"
    print("the index of the GPU arrives at all three places")


if __name__ == "__main__":
    main()
