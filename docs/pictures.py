"""The pictures of docs/report.md, from real pages of shipped samples: `make pictures`, or
`python docs/make.py --screenshots [NAME ...]` for some of them.

Every page is written by the command line, as a reader's would be; the replay is one of the planted runs of benchmarks/.
Needs Chromium, playwright, Pillow and, for the replay, torch; takes a minute or two.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PLANTED = "from pathlib import Path; from plant import write; from plants import data; write(next(iter(data())), Path({!r}))"
PLANTED_RUN = "garbled-text"
MOST_BYTES, MOST_HEIGHT, COLORS = 150_000, 1100, 128


# page -> arguments of the command that writes it; the runs are copies of samples without what tells the truth
COMMANDS = {
    "spike": ("analyze", "samples/bad_batch_jsonl"),
    "resume": ("analyze", "samples/optimizer_lost_jsonl"),
    "healthy": ("analyze", "samples/healthy_lightning"),
    "hang": ("analyze", "samples/hang_torchrun"),
    "attempts": ("analyze", "samples/rollback_tensorboard"),
    "memory": ("analyze", "samples/out_of_memory_tensorboard"),
    "seeds": ("analyze", "samples/seeds_far_apart"),
    "baseline": ("analyze", "samples/seeds_far_apart/seed_4", "--baseline", "samples/seeds_far_apart/seed_1"),
    "compared": ("compare", "samples/seeds_far_apart/seed_1", "samples/seeds_far_apart/seed_4"),
    "audit": ("audit", "samples"),
    "replayed": (),
}


def pages(folder: Path, wanted: set[str]) -> dict[str, Path]:
    """The wanted pages, by name, written below the folder."""
    shutil.copytree(ROOT / "samples", folder / "samples", ignore=shutil.ignore_patterns("expect.toml", "*.py", "making", "*.md"))
    for name in wanted - {"replayed"}:
        forensics(*COMMANDS[name], "--out", folder / ("audit" if name == "audit" else f"{name}.html"), place=folder)
    if "replayed" in wanted:
        subprocess.run([sys.executable, "-c", PLANTED.format(str(folder))], cwd=ROOT / "benchmarks" / "replayable", check=True)
        run = folder / "runs" / PLANTED_RUN
        forensics("replay", run, "--adapter", run / "train.py", "--device", "cpu", "--out", folder / "replayed.html")
    return {name: folder / ("audit/index.html" if name == "audit" else f"{name}.html") for name in wanted}


def forensics(*args: object, place: Path = ROOT) -> None:
    command = [sys.executable, "-m", "forensics", "--quiet", *map(str, args)]
    subprocess.run(command, cwd=place, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, stdout=subprocess.DEVNULL)


# name of the picture, page, width, height of the window, light or dark, what is shown: the first screen, or a part of the page
SHOTS: tuple[tuple[str, str, int, int, str, str], ...] = (
    ("report", "spike", 1180, 860, "light", ""),
    ("dark", "resume", 1180, 860, "dark", ""),
    ("phone", "spike", 375, 1500, "light", ""),
    ("print", "spike", 794, 1123, "print", ""),
    ("causes", "resume", 1180, 860, "light", "#causes"),
    ("explorer", "resume", 1180, 900, "dark", "zoomed"),
    ("symptoms", "spike", 1180, 860, "light", "#symptoms"),
    ("replay", "replayed", 1180, 860, "light", "#replay"),
    ("checkpoints", "replayed", 1180, 860, "light", "#checkpoints"),
    ("healthy", "healthy", 1180, 860, "light", ""),
    ("hang", "hang", 1180, 860, "light", "#picture-hang"),
    ("attempts", "attempts", 1180, 860, "light", "#picture-on-the-clock"),
    ("memory", "memory", 1180, 860, "light", "#picture-memory"),
    ("seeds", "seeds", 1180, 860, "light", "#picture-seeds"),
    ("baseline", "baseline", 1180, 860, "dark", "#picture-baseline"),
    ("compare", "compared", 1180, 860, "light", ""),
    ("audit", "audit", 1180, 860, "light", ""),
)


def shots(browser: Any, made: dict[str, Path], wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name, page_name, width, height, look, part in SHOTS:
        if name not in wanted:
            continue
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if look == "dark" else "light")
        if look == "print":
            page.emulate_media(media="print")
        page.goto(made[page_name].as_uri())
        if part == "zoomed":
            page.locator("#timeline button.zoom").first.click()
            page.wait_for_timeout(300)
        elif part:  # the bar above would lie over it
            page.evaluate("document.querySelector('.bar').style.display = 'none'")
            box = page.locator(part).bounding_box()
            page.set_viewport_size({"width": width, "height": height + int(box["y"] + box["height"])})
            clip = {
                "x": 0,
                "y": box["y"] + (-6 if part.startswith("#picture-") else 16),
                "width": width,
                "height": min(box["height"] + 12, MOST_HEIGHT),
            }
        yield name, page.screenshot(clip=clip) if part.startswith("#") else page.screenshot()
        page.close()


def small(picture: bytes) -> bytes:
    """The same with few colours: flat areas and text need no more, and a repository keeps every version."""
    from PIL import Image

    out = io.BytesIO()
    # a median cut would mix the few amber dots of a spike with the red ones
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS, method=Image.Quantize.MAXCOVERAGE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def write(names: Sequence[str] = ()) -> None:
    """The pictures of these names, or all."""
    from playwright.sync_api import sync_playwright

    images = DOCS / "images"
    images.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        wanted = list(names) or [shot[0] for shot in SHOTS]
        made = pages(Path(folder), {shot[1] for shot in SHOTS if shot[0] in wanted})
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, picture in ((name, small(shot)) for name, shot in shots(browser, made, wanted)):
            if len(picture) > MOST_BYTES:
                raise SystemExit(f"{name}.png has {len(picture)} bytes: show less of the page")
            (images / f"{name}.png").write_bytes(picture)
        browser.close()
