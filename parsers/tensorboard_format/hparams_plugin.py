"""The hparams plugin's data in a TensorBoard summary: hyperparameters of a session, and what an experiment says it is.

Field numbers are those of TensorBoard's ``plugins/hparams/plugin_data.proto`` and ``api.proto`` and of protobuf's
``struct.proto``. A writer puts a session's hyperparameters in one record, as a map from name to number, text or truth.
"""

from __future__ import annotations

from typing import Any

from parsers.protobuf_wire import BYTES, FIXED64, VARINT, Malformed, Span, fields
from parsers.tensorboard_format.one_event import double, text


def hparams(data: memoryview, content: list[Span]) -> tuple[dict[str, Any], str | None]:
    """The hparams plugin's data -> config, and how the session ended where it says so."""
    config: dict[str, Any] = {}
    status = None
    for number, wire, at, stop in fields(data, *content):
        if wire != BYTES:
            continue
        if number == 2:
            config |= _experiment(data, at, stop)
        elif number == 3:
            config |= _session_start(data, at, stop)
        elif number == 4:
            codes = [v for n, w, v, _ in fields(data, (at, stop)) if n == 1 and w == VARINT]
            status = {1: "success", 2: "failure", 3: "running"}.get(codes[-1] if codes else 0, "unknown")
    return config, status


def _session_start(data: memoryview, start: int, end: int) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for number, wire, at, stop in fields(data, (start, end)):
        if number == 1 and wire == BYTES:
            key, value = "", None
            for n, w, inner, inner_stop in fields(data, (at, stop)):
                if n == 1 and w == BYTES:
                    key = text(data[inner:inner_stop])
                elif n == 2 and w == BYTES:
                    value = _json(data, inner, inner_stop)
            config[key] = value
        elif number in (2, 3, 4) and wire == BYTES and stop > at:
            config["hparams." + {2: "model_uri", 3: "monitor_url", 4: "group_name"}[number]] = text(data[at:stop])
        elif number == 5 and wire == FIXED64:
            config["hparams.start_time"] = double(at)
    return config


def _experiment(data: memoryview, start: int, end: int) -> dict[str, Any]:
    """What an experiment says of itself: name, description, user, which hyperparameters and metrics it has."""
    names = {1: "description", 2: "user", 6: "name"}
    config: dict[str, Any] = {}
    for number, wire, at, stop in fields(data, (start, end)):
        if number in names and wire == BYTES and stop > at:
            config[f"hparams.experiment.{names[number]}"] = text(data[at:stop])
        elif number == 4 and wire == BYTES:
            key, domain = "", None
            for n, w, inner, inner_stop in fields(data, (at, stop)):
                if n == 1 and w == BYTES:
                    key = text(data[inner:inner_stop])
                elif n == 5 and w == BYTES:
                    domain = _json_list(data, inner, inner_stop)
                elif n == 6 and w == BYTES:
                    domain = _interval(data, inner, inner_stop)
            if domain is not None:  # what a sweep may choose from: no setting of this run, and not called as one
                config[f"hparams.domain_of_{key}"] = domain
        elif number == 5 and wire == BYTES:
            for n, w, inner, inner_stop in fields(data, (at, stop)):
                if n == 1 and w == BYTES:
                    parts = {m: text(data[x:y]) for m, v, x, y in fields(data, (inner, inner_stop)) if v == BYTES}
                    name = "/".join(filter(None, (parts.get(1), parts.get(2))))
                    config.setdefault("hparams.metrics", []).append(name)
    return config


def _interval(data: memoryview, start: int, end: int) -> list[float]:
    ends = {n: double(v) for n, w, v, _ in fields(data, (start, end)) if w == FIXED64}
    return [ends.get(1, 0.0), ends.get(2, 0.0)]


def _json(data: memoryview, start: int, end: int, depth: int = 0) -> Any:
    """A ``google.protobuf.Value``."""
    out: Any = None
    for number, wire, at, stop in fields(data, (start, end)):
        if number == 2 and wire == FIXED64:
            out = double(at)
        elif number == 3 and wire == BYTES:
            out = text(data[at:stop])
        elif number == 4 and wire == VARINT:
            out = bool(at)
        elif number == 6 and wire == BYTES:
            out = _json_list(data, at, stop, depth + 1)
    return out


def _json_list(data: memoryview, start: int, end: int, depth: int = 0) -> list[Any]:
    if depth > 50:
        raise Malformed("nested too deep")
    spans = fields(data, (start, end))
    return [_json(data, at, stop, depth) for number, wire, at, stop in spans if number == 1 and wire == BYTES]
