"""All cases: the lists of the modules beside this one."""

from __future__ import annotations

from hostile import (
    checkpoint_files,
    consoles,
    event_files,
    json_files,
    odd_files,
    secret_files,
    setting_files,
    table_files,
    verb_cases,
    wandb_files,
)
from hostile.case import Case, unique

FORMATS = (
    event_files,
    wandb_files,
    json_files,
    table_files,
    consoles,
    setting_files,
    checkpoint_files,
    secret_files,
    odd_files,
    verb_cases,
)


def cases() -> list[Case]:
    return unique([case for module in FORMATS for case in module.cases()])
