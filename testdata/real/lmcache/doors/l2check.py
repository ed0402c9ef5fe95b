"""Put, look up and get KV chunks through unmodified LMCache connectors, check every byte, print throughput.

    PYTHONHASHSEED=0 python l2check.py redis://127.0.0.1:6379 --mib 1,4,16 --chunks 16
    PYTHONHASHSEED=0 python l2check.py resp://127.0.0.1:6379 --mib 4
    PYTHONHASHSEED=0 python l2check.py sagemaker-hyperpod://127.0.0.1:9200 --shm shared_memory --mib 4

Exit status 0 means: every chunk came back bit for bit, lookups counted right, and (not resp://) a miss was a miss.
One JSON line per chunk size. Runs on LMCache 0.3.9.post2, 0.4.3 and 0.5.6, no GPU needed.
"""
import argparse, asyncio, json, os, random, sys, threading, time

os.environ.setdefault("LMCACHE_LOG_LEVEL", "WARNING")
os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
import torch
from importlib.metadata import version
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.memory_management import MemoryFormat
from lmcache.v1.storage_backend.connector import CreateConnector
from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend

try:  # 0.4 and later
    from lmcache.v1.metadata import LMCacheMetadata
    from lmcache.v1.protocol import init_remote_metadata_info
except ImportError:  # 0.3.9: keys still start with "vllm@"
    LMCacheMetadata = None
    from lmcache.config import LMCacheEngineMetadata

ap = argparse.ArgumentParser()
ap.add_argument("url")
ap.add_argument("--mib", default="1,4,16")
ap.add_argument("--chunks", type=int, default=16)
ap.add_argument("--rounds", type=int, default=3)
ap.add_argument("--workers", type=int, default=8, help="resp:// connections")
ap.add_argument("--shm", default="shared_memory", help="sagemaker-hyperpod segment name")
ap.add_argument("--bucket", default="lmcache")
ap.add_argument("--model", default="org/tiny-model")
a = ap.parse_args()
CHUNK, HIDDEN_HEADS, HEAD = 256, 8, 128  # one layer = 1 MiB in bfloat16
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
resp = a.url.startswith("resp://")


def wait(coro, seconds=120):
    return asyncio.run_coroutine_threadsafe(coro, loop).result(seconds)


def run(mib):
    shape5 = (mib, 2, CHUNK, HIDDEN_HEADS, HEAD)
    if LMCacheMetadata is None:
        meta = LMCacheEngineMetadata(a.model, 1, 0, "vllm", torch.bfloat16, shape5)
    else:
        init_remote_metadata_info(1)
        meta = LMCacheMetadata(model_name=a.model, world_size=1, local_world_size=1, worker_id=0, local_worker_id=0,
                               kv_dtype=torch.bfloat16, kv_shape=shape5, chunk_size=CHUNK)
    cfg = LMCacheEngineConfig.from_defaults(
        chunk_size=CHUNK, local_cpu=False, max_local_cpu_size=2.5 * a.chunks * mib / 1024 + 0.1, remote_url=a.url,
        remote_serde="naive", save_unfull_chunk=False,
        extra_config={"save_chunk_meta": not resp, "resp_num_threads": a.workers,
                      "sagemaker_hyperpod_shared_memory_name": a.shm, "sagemaker_hyperpod_bucket": a.bucket})
    cpu = LocalCPUBackend(cfg, meta, dst_device="cpu")
    con = CreateConnector(a.url, loop, cpu, cfg, meta)
    shape = torch.Size([2, mib, CHUNK, HIDDEN_HEADS * HEAD])
    seed = random.getrandbits(48)

    def key(i):
        args = (a.model, 1, 0, (seed << 12) + i, torch.bfloat16)
        return CacheEngineKey("vllm", *args) if LMCacheMetadata is None else CacheEngineKey(*args)

    def data(i):
        g = torch.Generator().manual_seed(seed + i)
        return torch.randint(0, 256, (mib << 20,), dtype=torch.uint8, generator=g)

    def raw(o):
        return o.tensor.view(torch.uint8).reshape(-1)

    keys, want = [key(i) for i in range(a.chunks)], [data(i) for i in range(a.chunks)]
    best = {"put": 0.0, "get": 0.0}
    bad = 0
    for r in range(a.rounds):
        objs = []
        for w in want:
            o = cpu.allocate(shape, torch.bfloat16, MemoryFormat.KV_2LTD)
            raw(o).copy_(w)
            objs.append(o)
        t = time.perf_counter()
        wait(con.batched_put(keys, objs))
        best["put"] = max(best["put"], (a.chunks * mib << 20) / (time.perf_counter() - t) / 1e9)
        for o in objs:
            o.ref_count_down()
        t = time.perf_counter()
        got = wait(con.batched_get(keys) if con.support_batched_get() else con.batched_get_non_blocking("check", keys))
        best["get"] = max(best["get"], (a.chunks * mib << 20) / (time.perf_counter() - t) / 1e9)
        bad += a.chunks - sum(o is not None and torch.equal(raw(o), w) for o, w in zip(got, want))
        bad += abs(a.chunks - len(got))
        for o in got:
            o and o.ref_count_down()
    hits = wait(con.batched_async_contains("check", keys + [key(4000)]))
    t = time.perf_counter()
    for k in keys:
        assert wait(con.exists(k))
    exists_us = (time.perf_counter() - t) / a.chunks * 1e6
    # resp:// cannot survive a GET miss (see daemon/kv/resp), so it is only asked whether the key exists.
    miss_ok = not wait(con.exists(key(4001))) and (resp or wait(con.get(key(4002))) is None)
    ok = bad == 0 and hits == a.chunks and miss_ok
    print(json.dumps({"lmcache": version("lmcache"), "url": a.url, "mib": mib, "chunks": a.chunks, "ok": ok, "bad": bad,
                      "lookup_hits": hits, "miss_ok": miss_ok, "put_GBps": round(best["put"], 3),
                      "get_GBps": round(best["get"], 3), "exists_us": round(exists_us)}), flush=True)
    return ok


code = 0 if all([run(int(m)) for m in a.mib.split(",")]) else 1
sys.stdout.flush()
os._exit(code)  # connector.close() does not return reliably on any of the three versions
