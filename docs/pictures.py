"""The pictures of docs/report.md, from real pages of shipped samples: `python docs/make.py --screenshots`.

Every page is written by the command line, as a reader's would be; the replay is one of the planted runs of benchmarks/.
Needs Chromium, playwright and, for the replay, torch; takes a minute or two.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PLANTED = "from pathlib import Path; from plant import write; from plants import data; write(next(iter(data())), Path({!r}))"
PLANTED_RUN = "garbled-text"
MOST_BYTES, MOST_HEIGHT = 250_000, 1100


def pages(folder: Path) -> dict[str, Path]:
    """The pages, by name, written below the folder."""
    out = {name: folder / f"{name}.html" for name in ("spike", "resume", "replayed", "compared")}
    shutil.copytree(ROOT / "samples", folder / "samples", ignore=shutil.ignore_patterns("expect.toml", "*.py", "making", "*.md"))
    for args in (  # the copies are without what tells the truth
        ("analyze", "samples/bad_batch_jsonl", "--out", out["spike"]),
        ("analyze", "samples/optimizer_lost_jsonl", "--out", out["resume"]),
        ("compare", "samples/seeds_far_apart/seed_1", "samples/seeds_far_apart/seed_4", "--out", out["compared"]),
        ("audit", "samples", "--out", folder / "audit"),
    ):
        forensics(*args, place=folder)
    subprocess.run([sys.executable, "-c", PLANTED.format(str(folder))], cwd=ROOT / "benchmarks" / "replayable", check=True)
    run = folder / "runs" / PLANTED_RUN
    forensics("replay", run, "--adapter", run / "train.py", "--device", "cpu", "--out", out["replayed"])
    return out | {"audit": folder / "audit" / "index.html"}


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
    ("compare", "compared", 1180, 860, "light", ""),
    ("audit", "audit", 1180, 860, "light", ""),
)


def shots(browser: Any, made: dict[str, Path]) -> Iterator[tuple[str, bytes]]:
    for name, page_name, width, height, look, part in SHOTS:
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
            clip = {"x": 0, "y": box["y"] + 16, "width": width, "height": min(box["height"], MOST_HEIGHT)}
        yield name, page.screenshot(clip=clip) if part.startswith("#") else page.screenshot()
        page.close()


def write() -> None:
    from playwright.sync_api import sync_playwright

    images = DOCS / "images"
    images.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        made = pages(Path(folder))
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, picture in shots(browser, made):
            if len(picture) > MOST_BYTES:
                raise SystemExit(f"{name}.png has {len(picture)} bytes: show less of the page")
            (images / f"{name}.png").write_bytes(picture)
        browser.close()
