"""Networks: torchvision's by name, two small ones of our own, and a user's function."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gpubench.basics.errors import UsageError
from gpubench.schema import catalog


def lenet(*, num_classes: int, channels: int, width: float = 1.0, **_: Any) -> nn.Module:
    """LeNet-5 with ReLU and max pooling (LeCun et al., 1998), for any input of 12 pixels or more."""
    a, b, c, d = (max(1, round(n * width)) for n in (6, 16, 120, 84))
    return nn.Sequential(
        nn.Conv2d(channels, a, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(a, b, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(5),
        nn.Flatten(),
        nn.Linear(b * 25, c),
        nn.ReLU(),
        nn.Linear(c, d),
        nn.ReLU(),
        nn.Linear(d, num_classes),
    )


def mlp(*, num_classes: int, channels: int, input_size: int, width: float = 1.0) -> nn.Module:
    """Two hidden layers of 512 × width."""
    hidden = max(1, round(512 * width))
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * input_size * input_size, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )


def _make_torchvision_arguments(name: str, input_size: int, width: float) -> dict[str, Any]:
    """Arguments that a torchvision model needs besides its classes."""
    extras: dict[str, Any] = {}
    if name.startswith("vit_"):
        extras["image_size"] = input_size
    if name.startswith("maxvit"):
        extras["input_size"] = (input_size, input_size)
    if name in ("googlenet", "inception_v3"):
        extras.update(aux_logits=False, init_weights=True)
    if width != 1.0:
        if name.startswith("resnet"):
            extras["width_per_group"] = round(64 * width)
        else:
            extras["width_mult"] = width
    return extras


def _build_mobilenet_v3(name: str, num_classes: int, width: float) -> nn.Module:
    """mobilenet_v3 at another width: torchvision's public builders don't pass `width_mult` through."""
    from torchvision.models import mobilenetv3

    settings, last = mobilenetv3._mobilenet_v3_conf(name, width_mult=width)
    model: nn.Module = mobilenetv3.MobileNetV3(settings, last, num_classes=num_classes)
    return model


def load_user_model_function(name: str) -> Callable[..., Any]:
    """The function of `path/to/file.py:function`. Raises UsageError where there is none."""
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"model {name!r}: there is no file {path}")
    module = _import_user_file(path)
    user_function = getattr(module, function, None)
    if not callable(user_function):
        defined = [
            known
            for known, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        hint = f"it defines {', '.join(defined) or 'none'}"
        raise UsageError(f"model {name!r}: {path} has no function {function!r}; {hint}")
    return user_function  # type: ignore[no-any-return]


@functools.cache
def _import_user_file(path: str) -> ModuleType:
    """The user's file as a module, run once a process, as `python path` would find its neighbours."""
    spec = importlib.util.spec_from_file_location(f"gpubench_user_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    sys.path.insert(0, str(Path(path).absolute().parent))
    spec.loader.exec_module(module)
    return module


def build_model(
    model: str, *, num_classes: int, input_size: int, channels: int = 3, width: float = 1.0
) -> nn.Module:
    """A fresh model that maps (N, channels, input_size, input_size) to (N, num_classes).

    A user's function is called with those of `num_classes`, `input_size`, `channels` and `width` that it takes.
    """
    offered = {"num_classes": num_classes, "input_size": input_size, "channels": channels, "width": width}
    if catalog.is_user_model(model):
        function = load_user_model_function(model)
        takes = inspect.signature(function).parameters
        everything = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        built = function(**{k: v for k, v in offered.items() if everything or k in takes})
        if not isinstance(built, nn.Module):
            raise UsageError(f"model {model!r} returned {type(built).__name__}, not a torch.nn.Module")
        return built
    if model in catalog.SMALL_MODELS:
        small: nn.Module = pkgutil.resolve_name(catalog.SMALL_MODELS[model])(**offered)
        return small
    if model.startswith("mobilenet_v3") and width != 1.0:
        return _build_mobilenet_v3(model, num_classes, width)
    extras = _make_torchvision_arguments(model, input_size, width)
    return torchvision.models.get_model(model, weights=None, num_classes=num_classes, **extras)  # type: ignore[no-any-return]


def count_parameters_m(model: nn.Module) -> float:
    """Trainable and frozen parameters, in millions."""
    return sum(p.numel() for p in model.parameters()) / 1e6


def count_gmacs_per_image(model: nn.Module, *, input_size: int, channels: int) -> float:
    """Multiply-adds of one forward pass of one image, in units of 1e9: half of torch's count of operations.

    Counted on the meta device, with stand-ins for the model's tensors: no memory, no kernels; the model stays as
    it is, but for its evaluation mode. Raises whatever a model that can't run there raises.
    """
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    stand_ins = {name: tensor.detach().to("meta") for name, tensor in tensors}
    image = torch.empty(1, channels, input_size, input_size, device="meta")
    model.eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad(), torch.device("meta"):
        torch.func.functional_call(model, stand_ins, (image,))
    return int(counter.get_total_flops()) / 2e9
