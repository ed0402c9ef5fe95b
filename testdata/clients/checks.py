"""Runs the checks of one Python client and prints one line for each, "ok NAME" or "FAIL NAME: why"."""

import asyncio
import inspect
import json
import os
import sys
import time
import traceback
import urllib.request

BASE = os.environ["WARMPATH_URL"]
MODEL = os.environ["WARMPATH_MODEL"]
WORKERS = os.environ["WARMPATH_WORKERS"].split(",")

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def running():
    """How many requests the workers have in hand."""
    total = 0
    for url in WORKERS:
        with urllib.request.urlopen(url + "/sim/stats", timeout=5) as answer:
            stats = json.load(answer)
        total += stats["running"] + stats["waiting"]
    return total


def wait_running(wanted, what):
    """Waits up to 10 s; the router closes the worker's request within milliseconds, a loaded machine takes longer."""
    end = time.monotonic() + 10
    while (now := running()) != wanted:
        assert time.monotonic() < end, f"{what}: {now} requests run at the workers, want {wanted}"
        time.sleep(0.01)


def run(client, checks):
    """Runs the checks in order, each a function or a coroutine function, and exits 1 if one failed."""
    failed = 0
    for check in checks:
        name = client + " " + check.__name__.replace("_", " ").strip()
        try:
            if inspect.iscoroutinefunction(check):
                asyncio.run(asyncio.wait_for(check(), 60))
            else:
                check()
            print("ok", name, flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL {name}: {type(e).__name__}: {e}".replace("\n", " ")[:600], flush=True)
            if os.environ.get("TRACE"):
                traceback.print_exc()
    sys.exit(1 if failed else 0)
