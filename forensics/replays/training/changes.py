"""What an experiment changes while steps run: rate, clipping, epsilon, beta2, moments, precision, guarded formulas, rounding.

Everything is put back at the end. Precision and guards work below autograd (TorchDispatchMode), so they reach the casts that
autocast and the adapter's own code make, forward and backward.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .adapter import Wrong
from .tensors_in import finite, flat
from .wrapped import joined_again, local, scalar, sharded

AT_THE_STEP = {"layers", "clip", "lr", "warmup", "lr_as_logged"}  # changes that are made around optimizer.step
LARGE = 1e4  # what an infinity is replaced with in a guarded formula


def means_infinity(args: Any) -> bool:
    """True where an operation is given an infinite number on purpose, as masks are."""
    if isinstance(args, float):
        return args in (float("inf"), float("-inf")) or args != args
    values = args.values() if isinstance(args, dict) else args if isinstance(args, (list, tuple)) else []
    return any(means_infinity(v) for v in values)


def casting(target: Any, sources: list[Any]) -> Any:
    """A mode in which casts to `sources` give `target` instead."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Casting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("dtype") in sources:
                kwargs["dtype"] = target
            return func(*args, **kwargs)

    return Casting()  # type: ignore[no-untyped-call]


def guarding() -> Any:
    """A mode in which an operation that makes NaN or infinity from finite numbers gives a finite number instead."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Guarding(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            safe = all(finite(t) for t in flat(args)) and not means_infinity(args) and not means_infinity(kwargs)
            out = func(*args, **kwargs)
            if safe and isinstance(out, torch.Tensor) and not finite(out) and not func.__name__.startswith("empty"):
                return torch.nan_to_num(out, nan=0.0, posinf=LARGE, neginf=-LARGE)
            return out

    return Guarding()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def hooked(optimizer: Any, before: Any, after: Any) -> Any:
    """Calls around optimizer.step, inside whatever train_step the user has."""
    handles = [optimizer.register_step_pre_hook(lambda *a: before()), optimizer.register_step_post_hook(lambda *a: after())]
    try:
        yield
    finally:
        for h in handles:
            h.remove()


class Changes:
    """The changes of one run. `rate` may be a number, or {position: factor}; `lr_as_logged` {position: rate}."""

    def __init__(self, adapter: Any, wanted: dict[str, Any]) -> None:
        self.adapter, self.wanted = adapter, wanted
        self.position = 0
        self.saved: list[float] = []
        self.norm: float | None = None
        self.layers: dict[str, float] | None = None

    @contextlib.contextmanager
    def active(self) -> Any:
        import torch

        want, a = self.wanted, self.adapter
        with contextlib.ExitStack() as stack:
            if want.get("precision") in ("fp32", "fp64"):
                stack.enter_context(self._precision(want["precision"]))
            if want.get("guard"):
                stack.enter_context(guarding())
            if want.get("kernels"):
                stack.enter_context(_other_kernels(a.device.type))
            if want.get("clip") == "off":
                stack.enter_context(_unclipped(a.module))
                stack.callback(setattr, a, "clip", a.clip)
                a.clip = None
            for key, name in (("eps", "eps"), ("beta2", "betas")):
                if key in want:
                    stack.enter_context(self._group(name, want[key]))
            if AT_THE_STEP & set(want):
                stack.enter_context(hooked(a.optimizer, self._before, self._after))
            if want.get("nudge"):
                generator = torch.Generator().manual_seed(int(want["nudge"]))
                with torch.no_grad():
                    for p in map(local, a.model.parameters()):
                        if p.is_floating_point():
                            sign = torch.randint(-1, 2, p.shape, generator=generator).to(p.device, p.dtype)
                            p.mul_(1 + sign * torch.finfo(p.dtype).eps)
            yield

    @contextlib.contextmanager
    def _group(self, name: str, value: float) -> Any:
        groups = [g for g in self.adapter.optimizer.param_groups if name in g]
        old = [g[name] for g in groups]
        for g in groups:
            g[name] = (g[name][0], value) if name == "betas" else value
        try:
            yield
        finally:
            for g, v in zip(groups, old):  # noqa: B905  (Python 3.9)
                g[name] = v

    @contextlib.contextmanager
    def _precision(self, name: str) -> Any:
        import torch

        a = self.adapter
        half = a.half
        dtype = torch.float64 if name == "fp64" else torch.float32
        other = any(p.is_floating_point() and p.dtype != dtype for p in a.model.parameters())
        if other and sharded(a.model):
            raise Wrong("another precision is not tried with sharded weights: what gathers them keeps the first one")
        a.half = None
        if name == "fp64":
            a.model.double()
            _cast_state(a.optimizer, torch.float64)
            mode = casting(torch.float64, [torch.float32, torch.float16, torch.bfloat16])
        else:
            a.model.float()
            _cast_state(a.optimizer, torch.float32)
            mode = casting(torch.float32, [torch.float16, torch.bfloat16])
        if other:
            joined_again(a.model)
        default = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.autocast(a.device.type, enabled=False), mode:
                yield
        finally:
            torch.set_default_dtype(default)
            a.half = half

    def _before(self) -> None:
        import torch

        want, optimizer = self.wanted, self.adapter.optimizer
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if want.get("layers"):
            named = self.adapter.model.named_parameters()
            self.layers = {n: scalar(p.grad.norm()) for n, p in named if p.grad is not None}
        clip = want.get("clip")
        if grads and isinstance(clip, (int, float)):
            torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], clip)
        self.saved = [g["lr"] for g in optimizer.param_groups]
        for g in optimizer.param_groups:
            factor = want.get("lr", 1.0)
            if want.get("warmup"):
                factor *= min(1.0, (self.position + 1) / want["warmup"])
            g["lr"] = g["lr"] * factor
        logged = want.get("lr_as_logged", {}).get(str(self.position))
        if logged is not None and self.saved:
            now = float(self.saved[0])
            for g in optimizer.param_groups:
                g["lr"] = g["lr"] * (logged / now) if now else logged

    def _after(self) -> None:
        for g, lr in zip(self.adapter.optimizer.param_groups, self.saved):  # noqa: B905
            g["lr"] = lr


def _cast_state(optimizer: Any, dtype: Any) -> None:
    for state in optimizer.state.values():
        for key, value in state.items():
            if hasattr(value, "is_floating_point") and value.is_floating_point() and value.dim():
                state[key] = value.to(dtype)


@contextlib.contextmanager
def _unclipped(module: Any) -> Any:
    """Inside, torch's clipping measures and does not clip, also where the adapter has imported it by its name."""
    import torch

    original = torch.nn.utils.clip_grad_norm_

    def measure(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
        return original(parameters, float("inf"), *args, **kwargs)

    places = [(torch.nn.utils, "clip_grad_norm_"), *((module, k) for k, v in list(vars(module).items()) if v is original)]
    for place, name in places:
        setattr(place, name, measure)
    try:
        yield
    finally:
        for place, name in places:
            setattr(place, name, original)


@contextlib.contextmanager
def _other_kernels(device: str) -> Any:
    """The same formulas by other kernels, which round otherwise: what hardware or a race makes does not come back alike."""
    import torch

    if device == "cpu":
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if threads > 1 else 2)
        try:
            with torch.backends.mkldnn.flags(enabled=False):
                yield
        finally:
            torch.set_num_threads(threads)
        return
    blas, benchmark = torch.backends.cuda.preferred_blas_library(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.benchmark = True
    try:
        torch.backends.cuda.preferred_blas_library("cublaslt" if "lt" not in str(blas).lower() else "cublas")
        yield
    finally:
        torch.backends.cuda.preferred_blas_library(blas)
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(True, warn_only=True)
