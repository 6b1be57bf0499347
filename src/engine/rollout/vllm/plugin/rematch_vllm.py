"""The Python part of the vLLM backend, compiled into librematch_vllm.so.

It only forwards calls to vLLM and unpacks the results; the program checks them and words the
errors.
"""

import contextlib
import json
import os
import sys
import threading
import traceback

# Set before vllm is imported: the model stays in this process, nothing is sent or downloaded, and
# threads are not pinned.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_LOGGING_COLOR": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
# Set by torchrun for the training processes; a single-rank engine must not join their group.
_TORCHRUN = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
)


class _Log:
    """Replaces sys.stdout and sys.stderr, because the terminal belongs to the program. Keeps the
    last lines until a file is open.
    """

    encoding = "utf-8"
    errors = "replace"

    def __init__(self):
        self._file = None
        self._kept = []
        self._lock = threading.Lock()

    def open(self, path):
        with self._lock:
            if self._file:
                self._file.close()
            self._file = (
                open(path, "a", buffering=1, encoding="utf-8", errors="replace") if path else None
            )
            if self._file:
                self._file.write("".join(self._kept))
                self._kept = []

    def write(self, text):
        with self._lock:
            if self._file:
                self._file.write(text)
            else:
                self._kept = (self._kept + [text])[-1000:]
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False

    def fileno(self):
        if self._file:
            return self._file.fileno()
        raise OSError("no file")


_log = _Log()


def take_over_output():
    sys.stdout = sys.stderr = _log


def import_engine():
    os.environ.update(_ENVIRONMENT)
    import torch
    import vllm

    return {
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "torch_lib": os.path.join(os.path.dirname(torch.__file__), "lib"),
    }


def cuda_memory_bytes(device):
    import torch

    return torch.cuda.mem_get_info(device)[1]


@contextlib.contextmanager
def _distributed_environment(group):
    """Sets the environment for a single-rank engine (no group) or for a rank of a group; restores
    it afterwards.
    """
    names = (*_TORCHRUN, "GLOO_SOCKET_IFNAME") if group else _TORCHRUN
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    if group:
        os.environ.update(
            RANK=str(group["rank"]),
            WORLD_SIZE=str(group["size"]),
            LOCAL_RANK=str(group["device"]),
            GLOO_SOCKET_IFNAME="lo",
        )
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(kept)


_num_joined = 0


def _join(group, on_cpu):
    """Initialises torch.distributed with the engine's ranks; vLLM then uses that group."""
    import datetime

    import torch
    import torch._dynamo
    import torch.distributed as dist

    global _num_joined
    _num_joined += 1
    timeout = datetime.timedelta(seconds=group["timeout_s"])
    store = (
        dist.TCPStore(
            group["host"], group["port"], is_master=False, wait_for_workers=False, timeout=timeout
        )
        if group["host"]
        else dist.HashStore()
    )
    backend = (
        {"backend": "gloo"}
        if on_cpu
        else {"backend": "cpu:gloo,cuda:nccl", "device_id": torch.device("cuda", group["device"])}
    )
    dist.init_process_group(
        store=dist.PrefixStore(f"{group['prefix']}/{_num_joined}", store),
        rank=group["rank"],
        world_size=group["size"],
        timeout=timeout,
        **backend,
    )
    if on_cpu:
        # For several ranks vLLM compiles code, which takes minutes on a CPU.
        torch._dynamo.config.disable = True
        _use_gloo()


def _use_gloo():
    """Disables vLLM's shared-memory communication, which hangs if a rank fails and whose names
    collide between two engines on a host.
    vLLM does not use it if the ranks have different group names."""
    from vllm.distributed.device_communicators import cpu_communicator

    shared_memory = getattr(cpu_communicator, "_CPUSHMDistributed", None)
    if shared_memory is not None:
        shared_memory.make_group_name = staticmethod(lambda communicator: f"rematch-{os.getpid()}")


def _keep_unpacked_weights():
    """On a CPU vLLM packs every matrix after loading and drops the original, so later weights would
    have no effect. Keeps the originals.

    Returns a function that packs all matrices again, to be called after each sync; it does nothing
    if this release does not pack.
    """
    from vllm.model_executor.layers import utils

    pack = getattr(utils, "rematch_pack", None) or getattr(
        utils, "dispatch_cpu_unquantized_gemm", None
    )
    if pack is None:
        return lambda: None
    layers = []

    def pack_and_keep(layer, remove_weight):
        pack(layer, remove_weight=False)
        layers.append(layer)

    utils.rematch_pack = pack
    utils.dispatch_cpu_unquantized_gemm = pack_and_keep

    def pack_again():
        for layer in layers:
            pack(layer, remove_weight=False)

    return pack_again


def _first(root, paths):
    """Returns the first existing attribute path; releases differ."""
    for path in paths:
        value = root
        for name in path.split("."):
            value = getattr(value, name, None)
            if value is None:
                break
        if value is not None:
            return value
    raise AttributeError(
        "this release of vLLM keeps its model in an unknown place; tried "
        + ", ".join("llm_engine." + path for path in paths)
    )


class Engine:
    def __init__(self, description):
        import torch
        from vllm import EngineArgs, LLMEngine

        _log.open(description["log_path"])
        threads, set_num_threads, random_state = (
            torch.get_num_threads(),
            torch.set_num_threads,
            torch.get_rng_state(),
        )
        self._pack_again = _keep_unpacked_weights() if description["on_cpu"] else lambda: None
        # Older releases do not let the caller choose the logits for log-probabilities.
        self._gives_logprobs = "logprobs_mode" in EngineArgs.__dataclass_fields__
        raw = {"logprobs_mode": "raw_logprobs"} if self._gives_logprobs else {}
        arguments = EngineArgs(**{**description["engine_args"], **raw})
        group = description.get("group")
        try:
            with _distributed_environment(group):
                if group:
                    _join(group, description["on_cpu"])
                self._engine = LLMEngine.from_engine_args(arguments)
        finally:
            # On a CPU vLLM replaces the function by one that raises, and calls it at every step.
            torch.set_num_threads = set_num_threads
            torch.set_num_threads(threads)
            torch.set_rng_state(random_state)
            if description["on_cpu"]:
                torch.set_num_threads = lambda number: None
        runners = [
            core + "model_executor.driver_worker." + worker + "model_runner"
            for core in ("", "engine_core.engine_core.")
            for worker in ("worker.", "")
        ]
        self._runner = _first(self._engine, runners)
        self._model = (
            self._runner.get_model() if hasattr(self._runner, "get_model") else self._runner.model
        )
        self._version = -1
        self._loaded = set()
        self._asleep = False
        self._generate_one_token()

    def _generate_one_token(self):
        """Makes unsupported kernels (a head size, a dtype) fail at the start and not in the first
        window.
        """
        from vllm import SamplingParams

        self._engine.add_request(
            "rematch-start",
            {"prompt_token_ids": [0]},
            SamplingParams(max_tokens=1, temperature=0, detokenize=False),
        )
        while self._engine.has_unfinished_requests():
            self._engine.step()

    # Weights
    # ----------------------------------------------------------------------------------------------

    def _wake(self):
        if self._asleep:
            self._engine.wake_up()
            self._asleep = False

    def begin_sync(self):
        self._wake()
        self._version = -1
        self._loaded = set()
        empty = [name for name, value in self._model.named_parameters() if value.numel() == 0]
        if empty:
            raise RuntimeError(
                f"this release of vLLM keeps {empty[0]} in a format that accepts no new weights"
            )

    def load(self, names, tensors):
        loaded = self._model.load_weights(zip(names, tensors))
        if loaded is not None:
            self._loaded |= set(loaded)

    def end_sync(self, version):
        self._pack_again()
        parameters = dict(self._model.named_parameters())
        shared = {id(parameters[name]) for name in self._loaded if name in parameters}
        missing = [
            name
            for name, value in parameters.items()
            if name not in self._loaded and id(value) not in shared
        ]
        self._engine.reset_prefix_cache()
        for cache in ("reset_mm_cache", "reset_encoder_cache"):
            if hasattr(self._engine, cache):
                getattr(self._engine, cache)()
        if not missing:
            self._version = version
        return missing

    def weights_version(self):
        return self._version

    # Requests
    # ----------------------------------------------------------------------------------------------

    def add(self, request_id, token_ids, images, sampling):
        from PIL import Image
        from vllm import SamplingParams

        self._wake()
        prompt = {"prompt_token_ids": token_ids}
        if images:
            pictures = [
                Image.frombytes("RGB", (width, height), rgb) for width, height, rgb in images
            ]
            prompt["multi_modal_data"] = {"image": pictures if len(pictures) > 1 else pictures[0]}
            prompt["mm_processor_kwargs"] = {"do_resize": False}
        chosen = {"logprobs": 0} if self._gives_logprobs else {}  # only for the chosen tokens
        self._engine.add_request(
            request_id, prompt, SamplingParams(**json.loads(sampling), **chosen)
        )

    def has_unfinished(self):
        return bool(self._engine.has_unfinished_requests())

    def step(self):
        answers = []
        for output in self._engine.step():
            if isinstance(output, BaseException):
                raise output
            if output.finished:
                if len(output.outputs) != 1:
                    raise ValueError(
                        f"request {output.request_id} has {len(output.outputs)} answers, not 1"
                    )
                answer = output.outputs[0]
                answers.append(
                    (
                        output.request_id,
                        list(output.prompt_token_ids or ()),
                        list(answer.token_ids),
                        str(answer.finish_reason),
                        _logprobs(answer),
                    )
                )
        return answers

    def abort(self):
        processor = self._engine.output_processor
        # Since 0.11 requests also have an internal name; the processor's table has the one that
        # abort_request accepts.
        names = list(processor.request_states)
        if names:
            try:
                self._engine.abort_request(names, internal=True)
            except TypeError:
                self._engine.abort_request(names)
        for _ in range(1000):
            if not self._engine.has_unfinished_requests():
                return
            self._engine.step()

    def sleep(self, level):
        self._engine.reset_prefix_cache()
        self._engine.sleep(level)
        self._asleep = True
        if level > 1:
            self._version = -1  # the weights are gone

    def close(self):
        engine, self._engine, self._runner, self._model, self._pack_again = (
            self._engine,
            None,
            None,
            None,
            None,
        )
        with contextlib.suppress(Exception):
            engine.engine_core.shutdown()
        del engine
        _close_connections()


def _close_connections():
    """Closes vLLM's connections; ranks that wait for this one get an exception."""
    import gc

    gc.collect()
    from vllm.distributed import cleanup_dist_env_and_memory

    cleanup_dist_env_and_memory()


def _logprobs(answer):
    """Log-probability of each token; an empty list if the release provides none."""
    return [
        float(entry[token].logprob) for token, entry in zip(answer.token_ids, answer.logprobs or ())
    ]


_engine = None


def start(description):
    global _engine
    stop()
    description = json.loads(description)
    try:
        _engine = Engine(description)
    except BaseException:
        if "group" in description:
            _close_connections()
        raise
    return _engine


def stop():
    global _engine
    if _engine is not None:
        engine, _engine = _engine, None
        engine.close()


def describe(error):
    """One line for the user, the traceback for the log."""
    _log.write("".join(traceback.format_exception(error)))
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:600]}"
