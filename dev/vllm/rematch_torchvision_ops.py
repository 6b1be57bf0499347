"""Registers torchvision's operators just before torchvision is imported: for a CPU torch with a
torchvision built for CUDA.

Such a torchvision cannot load its library, and its import fails over operators that were never
declared ("operator torchvision::nms does not
exist"), taking transformers' Qwen3-VL with it. The resize functions need none of them; here they
are declared and never run.
scripts/setup-vllm puts this file into .venv-vllm with a .pth file that imports it; it costs nothing
until torchvision is asked for.
"""

import importlib.abc
import sys

_OPERATORS = (
    "nms",
    "qnms",
    "roi_align",
    "_roi_align_backward",
    "ps_roi_align",
    "_ps_roi_align_backward",
    "roi_pool",
    "_roi_pool_backward",
    "ps_roi_pool",
    "_ps_roi_pool_backward",
    "qroi_align",
    "deform_conv2d",
    "_deform_conv2d_backward",
)
_kept = []


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision" and not _kept:
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for operator in _OPERATORS:
                library.define(operator + "(Tensor input) -> Tensor")
            _kept.append(library)
        return None


sys.meta_path.insert(0, _Finder())
