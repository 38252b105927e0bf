"""YAML, TOML, INI and argparse dumps: tags that name code, aliases that multiply, nesting without end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hostile.case import SENTINEL, Case, lines, points, writes


def cases() -> Iterator[Case]:
    def case(name: str, file: str, text: bytes | str, **more: Any) -> Case:
        return Case(f"settings/{name}", writes({file: text, "log.jsonl": lines(0, 99)}), {"loss": points(0, 99)}, **more)

    def yaml(name: str, text: bytes | str, **more: Any) -> Case:
        return case(f"yaml_{name}", "config.yaml", text, **more)

    for name, tag in (("apply", "!!python/object/apply:os.system ['touch EXECUTED; touch ../EXECUTED']"),
                      ("new", "!!python/object/new:subprocess.Popen [['touch', '../EXECUTED']]"),
                      ("module", "!!python/module:antigravity x"), ("name", "!!python/name:os.system ''"),
                      ("object", "!!python/object:hostile.Thing {a: 1}"), ("binary", "!!binary AAAA"), ("foreign", "!<!x:y> 1")):  # fmt: skip
        yield yaml(f"tag_{name}", f"lr: 0.1\nbad: {tag}\nnote: {SENTINEL}\n", present=(SENTINEL,))
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    yield yaml("laughs", f"note: {SENTINEL}\n" + laughs, present=(SENTINEL,))
    merges = "m0: &m0 {x: 1}\n" + "".join(f"m{i}: &m{i}\n  <<: [{', '.join([f'*m{i - 1}'] * 100)}]\n  k{i}: 1\n" for i in range(1, 9))
    yield yaml("merges", merges)
    yield yaml("merge_of_itself", "a: &a\n  <<: *a\n  x: 1\nb: &b [*b, *b]\n")
    yield yaml("deep_flow", "a: " + "[" * 100_000)
    yield yaml("deep_flow_closed", "a: " + "[" * 100_000 + "]" * 100_000)
    yield yaml("deep_block", "".join("  " * i + "a:\n" for i in range(3000)))
    yield yaml("deep_dashes", "- " * 50_000 + "x\n")
    yield yaml("question_marks", "? " * 20_000 + "\n")
    yield yaml("anchors", "".join(f"k{i}: &x{i} {i}\n" for i in range(100_000)), seconds=90)
    yield yaml("300k_keys", "".join(f"key_{i}: {i}\n" for i in range(300_000)), seconds=90)
    yield yaml("key_of_a_megabyte", "k" * (1 << 20) + ": 1\nlr: 0.1\n")
    yield yaml("value_of_megabytes", "lr: 0.1\nx: '" + "v" * (3 << 20) + "'\n")
    yield yaml("sexagesimal", "lr: 0.1\nx: 1" + ":1" * 500_000 + "\ny: 1" + ":59" * 200_000 + ".5\n")
    yield yaml("number_of_digits", "lr: 0.1\nx: " + "9" * 1_000_000 + "\n")
    yield yaml("hexadecimal", "lr: 0.1\nx: 0x" + "f" * 1_000_000 + "\n")
    yield yaml("torn", "lr: 0.1\nmodel:\n  dim: 64\n  lay")
    yield yaml("tabs", "lr: 0.1\n\tmodel: 5\nx: 1\n")
    yield yaml("cut_in_a_quote", f'note: {SENTINEL}\nlr: 0.1\nname: "unfinished\nbatch: 3\n', present=(SENTINEL,))
    yield yaml("controls", b"lr: 0.1\nx: \x01\x02\x1b[31m\n")
    yield yaml("not_utf8", b"lr: 0.1\nname: \xff\xfe\n")
    yield yaml("utf16", "lr: 0.1\n".encode("utf-16"))
    yield yaml("empty", "")
    yield yaml("documents", "---\na: 1\n" * 20_000)
    yield yaml("directive", "%YAML 9.9\n%TAG ! tag:x:\n---\nlr: 0.1\n")
    yield yaml("noise", random.Random(1).randbytes(100_000))
    yield yaml("colons", ": " * 300_000 + "\n", seconds=90)
    yield yaml("keys_of_lists", "? [a, b]\n: 1\n? {x: y}\n: 2\n? ? a\n  : b\n: 3\n")
    yield yaml("times", "a: 2024-99-99\nb: 0001-01-01T00:00:00Z\nc: 2001-12-14t21:59:43.10-99:99\nd: .inf\ne: .nan\nf: -.inf\n")

    def toml(name: str, text: str, **more: Any) -> Case:
        return case(f"toml_{name}", "config.toml", text, **more)

    yield toml("deep", "a = " + "[" * 50_000)
    yield toml("deep_closed", "a = " + "[" * 50_000 + "]" * 50_000)
    yield toml("dotted", ".".join(["a"] * 50_000) + " = 1\n")
    yield toml("inline_tables", "a = " + "{b = " * 20_000 + "1" + "}" * 20_000)
    yield toml("twice", f"note = '{SENTINEL}'\na = 1\na = 2\n", present=(SENTINEL,))
    yield toml("many", "".join(f"key_{i} = {i}\n" for i in range(100_000)), seconds=90)
    yield toml("torn", "lr = 0.1\n[model]\ndim = 6\nname = 'x")
    yield toml("quoted_keys", "".join(f'"key\\u{i:04x}" = 1\n' for i in range(0x30, 0x800)), seconds=90)
    yield toml("blank_lines", "\n" * 2_000_000 + "a = 1\n" + '"\\u0041b" = 2\n', seconds=90)
    yield toml("big_integers", "a = " + "9" * 100_000 + "\nb = 0x" + "f" * 100_000 + "\n")

    def text(name: str, content: str, file: str = "args.txt", **more: Any) -> Case:
        return case(f"args_{name}", file, content, **more)

    yield text("code", "Namespace(lr=__import__('os').system('touch ../EXECUTED'), b=open('../EXECUTED', 'w'))\n")
    yield text("deep", "Namespace(a=" + "(" * 50_000 + "\n")
    yield text("deep_closed", "Namespace(a=" + "[" * 9000 + "]" * 9000 + ")\n")
    yield text("unary", "Namespace(a=" + "-" * 9000 + "1, b=2)\n")
    yield text("power", "Namespace(a=9**9**9**9, b='x' * 10**12)\n")
    yield text("braces", "Namespace(" + "{" * 9990 + ")\n")
    yield text("open", "Namespace(" + "a=1, " * 50_000)
    yield text("quotes", "Namespace(a='" + "\\" * 100_001 + "'")
    yield text("many_namespaces", "Namespace(" * 100_000)
    yield text("assignments", "lr = 0.1\n" + "x" * 100_000 + " = 1\n" + "a " * 100_000 + "\n" + "= " * 50_000)
    yield text("ini", "[model]\nlr = 0.1\n[" + "x" * 100_000 + "\n%(lr)s = %(x)s\n", "config.ini")
    yield Case("settings/house_names_deep", writes({"forensics.toml": "a = " + "[" * 50_000, "log.jsonl": lines(0, 99)}))
    yield Case("settings/house_names_of_lies", writes({"forensics.toml": "[metrics]\n'loss.train' = 5\n", "log.jsonl": lines(0, 9)}))
