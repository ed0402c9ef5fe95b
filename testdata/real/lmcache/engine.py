"""An unmodified LMCache engine on the CPU, which registers with a controller and does what stdin says.

    PYTHONHASHSEED=0 python engine.py INSTANCE PULL REPLY WORKER_PORT [key=value ...]

Commands, one a line: "store A B" stores a prompt of the tokens A to B-1, "lookup A B" looks it up, "clear" drops all, "close" ends.
After each one a line of JSON says what came of it. Only the copy from and to a GPU is missing: the tensors stay empty.
"""
import inspect, json, os, sys

os.environ.setdefault("LMCACHE_LOG_LEVEL", "WARNING")
os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
import torch
from importlib.metadata import version
from lmcache.v1.cache_engine import LMCacheEngineBuilder
from lmcache.v1.config import LMCacheEngineConfig

try:
    from lmcache.v1.gpu_connector.gpu_connectors import GPUConnectorInterface
except ImportError:
    from lmcache.v1.gpu_connector import GPUConnectorInterface

instance, pull, reply, port = sys.argv[1:5]
options = {k: json.loads(v) for k, v in (a.split("=", 1) for a in sys.argv[5:])}
CHUNK = options.pop("chunk_size", 256)
SHAPE = (2, 2, CHUNK, 1, 8)


class NoGPU(GPUConnectorInterface):
    """Keeps the engine's side of a connector and copies nothing."""

    def get_shape(self, num_tokens):
        return torch.Size([2, SHAPE[0], num_tokens, SHAPE[3] * SHAPE[4]])

    def __getattr__(self, name):
        raise AttributeError(name)


def nothing(*a, **k):
    return None


for name in getattr(NoGPU, "__abstractmethods__", ()):
    setattr(NoGPU, name, nothing)
NoGPU.__abstractmethods__ = frozenset()

try:
    from lmcache.v1.metadata import LMCacheMetadata
    meta = LMCacheMetadata(model_name="org/tiny", world_size=1, local_world_size=1, worker_id=0, local_worker_id=0,
                           kv_dtype=torch.bfloat16, kv_shape=SHAPE, chunk_size=CHUNK)
except ImportError:
    from lmcache.config import LMCacheEngineMetadata
    meta = LMCacheEngineMetadata("org/tiny", 1, 0, "vllm", torch.bfloat16, SHAPE)
cfg = LMCacheEngineConfig.from_defaults(
    chunk_size=CHUNK, local_cpu=True, max_local_cpu_size=0.2, enable_controller=True, lmcache_instance_id=instance,
    controller_pull_url=pull, controller_reply_url=reply, lmcache_worker_ports=[int(port)],
    lmcache_worker_heartbeat_time=1, extra_config={"full_sync_startup_delay_s": 0.5, "full_sync_status_poll_interval_s": 1},
    **options)
if hasattr(cfg, "lmcache_worker_heartbeat_delay_time"):
    cfg.lmcache_worker_heartbeat_delay_time = 1
if version("lmcache").startswith("0.3.9"):  # reads these without peers too
    cfg.p2p_host, cfg.p2p_init_ports, cfg.p2p_lookup_ports = "127.0.0.1", [int(port) + 1], [int(port) + 2]
engine = LMCacheEngineBuilder.get_or_create(instance, cfg, meta, NoGPU(), lambda t, r: t, lambda o, r: o)
if hasattr(engine, "post_init"):
    engine.post_init()


def say(**what):
    print(json.dumps(what), flush=True)


say(lmcache=version("lmcache"), instance=instance)
for line in sys.stdin:
    words = line.split()
    if words[0] in ("store", "lookup"):
        tokens = list(range(int(words[1]), int(words[2])))
        if words[0] == "store":
            engine.store(torch.tensor(tokens), kvcaches=[], slot_mapping=torch.arange(len(tokens)))
            say(stored=len(tokens))
        else:
            say(found=engine.lookup(tokens))
    elif words[0] == "clear":
        engine.clear()
        say(cleared=True)
    elif words[0] == "close":
        engine.close()
        say(closed=True)
        break
