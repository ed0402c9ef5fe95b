"""One libzmq socket for interop_test.go: peer.py KIND bind|connect ADDRESS COUNT. It prints the address that it bound,
then works: PUB and PUSH send COUNT messages of four sizes, SUB and PULL receive COUNT and print a digest of them, ROUTER
answers COUNT messages as a replay would, DEALER and REQ ask COUNT times and print what came back."""
import hashlib
import sys
import time

import zmq

kind, how, address, count = sys.argv[1:]
count = int(count)
s = zmq.Context.instance().socket(zmq.XPUB if kind == "PUB" else getattr(zmq, kind))
s.setsockopt(zmq.LINGER, 5000)
s.setsockopt(zmq.RCVTIMEO, 20000)
s.setsockopt(zmq.SNDHWM, 100000)
s.setsockopt(zmq.HEARTBEAT_IVL, 20)
s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5000)
if kind == "SUB":
    s.setsockopt(zmq.SUBSCRIBE, b"kv@")
if how == "bind":
    s.bind(address)
    print(s.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"), flush=True)
else:
    s.connect(address)

SIZES = [0, 200, 300, 100000]


def message(i):
    return [b"kv@w@m", i.to_bytes(8, "big"), bytes([i % 256]) * SIZES[i % 4]]


if kind in ("PUB", "PUSH"):
    if kind == "PUB":
        s.recv()  # the subscription
        s.send_multipart([b"other", b"not wanted"])
    for i in range(count):
        s.send_multipart(message(i))
    time.sleep(0.2)  # heartbeats pass
    s.send_multipart([b"kv@w@m", b"end"])
    time.sleep(0.5)  # a PONG that comes after close would have the kernel reset the connection, unread messages and all
elif kind in ("SUB", "PULL"):
    digest = hashlib.sha256()
    for _ in range(count):
        for frame in s.recv_multipart():
            digest.update(len(frame).to_bytes(8, "big") + frame)
    print(digest.hexdigest(), flush=True)
elif kind == "ROUTER":
    for _ in range(count):
        identity, empty, start = s.recv_multipart()
        s.send_multipart([identity, b"", b"topic", start, b"payload"])
        s.send_multipart([identity, b"", b"", b"\xff" * 8, b""])
elif kind in ("DEALER", "REQ"):
    for i in range(count):
        s.send_multipart(([b""] if kind == "DEALER" else []) + [b"ask", str(i).encode()])
        print(b"|".join(s.recv_multipart()).decode(), flush=True)
s.close()
zmq.Context.instance().term()
