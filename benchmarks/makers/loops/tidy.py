"""Put truth.json and runs/ in step with each other and count: python tidy.py OUT"""

import collections
import json
import pathlib
import shutil
import sys

out = pathlib.Path(sys.argv[1])
rows = [r for r in json.loads((out / "truth.json").read_text()) if (out / "runs" / r["id"]).is_dir()]
ids = {r["id"] for r in rows}
for r in rows:
    r["twin"] = r["twin"] if r["twin"] in ids else None
for d in (out / "runs").iterdir():
    if d.name not in ids:
        shutil.rmtree(d)
    elif not any(f.is_file() and f.stat().st_size for f in d.rglob("*")):
        print("empty run", d.name)
rows.sort(key=lambda r: r["id"])
(out / "truth.json").write_text(json.dumps(rows, indent=1))
table = collections.defaultdict(collections.Counter)
for r in rows:
    table[r["family"]][r["kind"]] += 1
for f, c in sorted(table.items()):
    print(f"{f:36} healthy {c['healthy']:3} faulty {c['faulty']:3}")
print("total", len(rows), collections.Counter(r["kind"] for r in rows))
print(collections.Counter(r["cause"] for r in rows if r["cause"]))
print(collections.Counter(r["identifiable"] for r in rows))
