package conf

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// EventsAuto is the value of kv_events with which the router asks each worker where it publishes.
const EventsAuto = "auto"

// Events returns where a worker of the pool publishes KV events, and where missed ones are asked for; "" = nowhere.
func (p *Pool) Events(w *Worker) (events, replay string) {
	events, replay = w.KVEvents, w.KVEventsReplay
	if events == "" {
		events = p.KVEvents
	}
	if replay == "" {
		replay = p.KVEventsReplay
	}
	return events, replay
}

// Source returns where others copy a worker's KV from; "" = nowhere.
func (p *Pool) Source(w *Worker) string { return cmp.Or(w.KVSource, p.KVSource) }

// checkSource checks where KV is copied from.
func checkSource(r *report, at, source string) {
	at = child(at, "kv_source")
	if source != "" && !strings.HasPrefix(source, "tcp://") {
		r.add(at, fmt.Sprintf("%q is no address of TCP", source), `write as "tcp://*:25000", where * is the worker's host`)
		return
	}
	checkEventAddress(r, at, source)
}

// checkEvents checks the addresses of a worker or a pool.
func checkEvents(r *report, at, events, replay string) {
	if events != EventsAuto {
		checkEventAddress(r, child(at, "kv_events"), events)
	}
	checkEventAddress(r, child(at, "kv_events_replay"), replay)
	if replay != "" && overlap(strings.TrimPrefix(events, "tcp://"), strings.TrimPrefix(replay, "tcp://")) {
		r.add(child(at, "kv_events_replay"), fmt.Sprintf("%q is the address of kv_events too", replay),
			"give vLLM's replay_endpoint, which has a port of its own")
	}
}

// maxIPC is what the kernel takes for the path of a socket, less what a data-parallel rank appends.
const maxIPC = 100

// checkEventAddress checks tcp://HOST:PORT or ipc://PATH; "" is none.
func checkEventAddress(r *report, path, addr string) {
	const remedy = "write tcp://HOST:PORT, where * as HOST is the worker's own, or ipc://PATH"
	rest, isTCP := strings.CutPrefix(addr, "tcp://")
	file, isIPC := strings.CutPrefix(addr, "ipc://")
	switch {
	case addr == "" || isIPC && file != "" && len(file) <= maxIPC:
	case isIPC:
		r.add(path, fmt.Sprintf("%q has a path of %d bytes", addr, len(file)), "write one of 1 to 100")
	case !isTCP:
		r.add(path, fmt.Sprintf("%q is no address of ZeroMQ", addr), remedy)
	default:
		_, port, err := net.SplitHostPort(rest)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
			r.add(path, fmt.Sprintf("%q has no host and port", addr), remedy)
		}
	}
}
