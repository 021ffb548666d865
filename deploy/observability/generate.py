#!/usr/bin/env python3
"""Writes the rules and dashboards of the observability chart; with --check only says whether they are up to date."""

import pathlib
import sys

import rules

FILES = pathlib.Path(__file__).parent.parent / "helm" / "coterie-observability" / "files"


def wanted():
    yield FILES / "rules.yaml", rules.render()
    try:
        import dashboards
    except ModuleNotFoundError:
        print("dashboards left as they are: pip install -r deploy/observability/requirements.txt", file=sys.stderr)
        return
    for name, text in dashboards.render().items():
        yield FILES / "dashboards" / name, text


def main(check):
    stale = [path for path, text in wanted() if not path.exists() or path.read_text() != text]
    if check:
        for path in stale:
            print(f"{path} is not what deploy/observability/generate.py makes", file=sys.stderr)
        return 1 if stale else 0
    for path, text in wanted():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
