"""Print the KV events of vLLM workers as JSON lines, with the time at which they came.

    python events.py NAME=ENDPOINT [NAME=ENDPOINT...]

A second subscriber beside the router's, which shares no code with it: libzmq and msgspec come with vLLM. Both forms of
the wire become the same lines. Hashes are strings, as JSON has no integers of 64 bits.
"""

import json
import sys
import time

import msgspec
import zmq

STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size")  # the first fields of the array form


def plain(event):
    """An event of either form as a dict. Fields that the checks do not use are left out."""
    if isinstance(event, dict):
        kind, fields = event["type"], event
    else:
        kind, fields = event[0], dict(zip(STORED, event[1:]))
    if kind == "AllBlocksCleared":
        return {"kind": "cleared"}
    hashes = [str(h) for h in fields["block_hashes"]]
    if kind == "BlockRemoved":
        return {"kind": "removed", "hashes": hashes}
    parent = fields["parent_block_hash"]
    return {
        "kind": "stored",
        "hashes": hashes,
        "parent": None if parent is None else str(parent),
        "tokens": fields["token_ids"],
        "size": fields["block_size"],
    }


def main():
    context, poller, names, after = zmq.Context(), zmq.Poller(), {}, {}
    for arg in sys.argv[1:]:
        name, endpoint = arg.split("=", 1)
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(endpoint)
        poller.register(socket, zmq.POLLIN)
        names[socket] = name
    while True:
        for socket, _ in poller.poll():
            _, seq, payload = socket.recv_multipart()
            came, name, seq = time.time(), names[socket], int.from_bytes(seq, "big")
            if after.get(name, seq) != seq:
                sys.exit(f"worker {name}: batch {seq} came where {after[name]} was due")
            after[name] = seq + 1
            made, events, *_ = msgspec.msgpack.decode(payload)
            line = {"worker": name, "seq": seq, "made": made, "came": came, "events": [plain(e) for e in events]}
            print(json.dumps(line | {"payload": payload.hex()}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
