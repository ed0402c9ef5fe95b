package vllmsim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// KVEvents is where a worker publishes what its caches hold, as --kv-events-config does.
type KVEvents struct {
	// Endpoint of rank 0. As in vLLM the worker listens at an address with *, :: or ipc://, and dials any other. Beyond
	// vLLM it listens at one with port 0, which gets a free port. Rank r has the port r above it, or _dp<r> behind the
	// path. Default none, which is no events.
	Endpoint string
	// Replay is the address, likewise of rank 0, at which missed messages can be asked for. Default none.
	Replay string
	// Topic of the messages. {id} stands for Config.ID and {model} for the first of Config.Models. Default empty.
	Topic string
	// Form is events.Map, the default, or events.Array.
	Form events.Form
	// Buffer is how many batches a replay reaches back. Default 10,000.
	Buffer int

	bound bool // ports were found for port 0, so the worker listens there for its life
}

// listens reports whether the worker listens at the endpoint.
func (k *KVEvents) listens() bool {
	return k.bound || strings.HasPrefix(k.Endpoint, "ipc://") || strings.Contains(k.Endpoint, "*") ||
		strings.Contains(k.Endpoint, "::") || strings.HasSuffix(k.Endpoint, ":0")
}

// moveTo moves the addresses of the first worker to those of worker i, each having so many ranks. Workers that dial
// share an address.
func (k *KVEvents) moveTo(i, ranks int) (err error) {
	move := func(at *string) {
		switch {
		case *at == "" || strings.HasSuffix(*at, ":0") || err != nil:
		case strings.HasPrefix(*at, "ipc://"):
			*at += "." + strconv.Itoa(i)
		default:
			*at, err = offsetEndpoint(*at, i*ranks)
		}
	}
	if i > 0 && k.listens() {
		move(&k.Endpoint)
	}
	if i > 0 {
		move(&k.Replay)
	}
	return err
}

// openPublishers opens a publisher for each rank, or none without an endpoint. Where a port was to be found, it notes
// in the configuration which one it is, so that a revived worker is where it was.
func (c *Config) openPublishers() ([]*events.Publisher, error) {
	k := &c.KVEvents
	if k.Endpoint == "" {
		return nil, nil
	}
	for i := 0; ; i++ { // until as many neighbouring ports as there are ranks are free
		list, err := c.tryPublishers(anyPort(k.Endpoint), anyPort(k.Replay))
		if err == nil {
			at := list[0].Source()
			k.bound = k.listens()
			k.Endpoint = at.Endpoint
			if at.Replay != nil {
				k.Replay = *at.Replay
			}
			return list, nil
		}
		if k.bound || i == portTries || !strings.HasSuffix(k.Endpoint, ":0") && !strings.HasSuffix(k.Replay, ":0") {
			return nil, err
		}
	}
}

// portTries is how many ports are tried for port 0 before the error is final.
const portTries = 20

// anyPort names a port for 0: below those that systems give to outgoing connections. One of these may be a connection's
// when the neighbouring port is wanted for the next rank, or when a worker that comes back binds its port again.
func anyPort(at string) string {
	const least = 1 << 14
	if host, zero := strings.CutSuffix(at, ":0"); zero {
		return host + ":" + strconv.Itoa(least+rand.IntN(least))
	}
	return at
}

func (c *Config) tryPublishers(endpoint, replay string) (list []*events.Publisher, err error) {
	k := &c.KVEvents
	for rank := range c.DataParallel {
		cfg := events.Config{
			Connect:   !k.listens(),
			Topic:     strings.NewReplacer("{id}", c.ID, "{model}", c.Models[0]).Replace(k.Topic),
			Form:      k.Form,
			Buffer:    k.Buffer,
			Rank:      rank,
			BlockSize: c.BlockTokens,
		}
		cfg.Endpoint, err = offsetEndpoint(endpoint, rank)
		if err == nil && replay != "" {
			cfg.Replay, err = offsetEndpoint(replay, rank)
		}
		var p *events.Publisher
		if err == nil {
			p, err = events.New(cfg)
		}
		if err != nil {
			for _, p := range list {
				p.Close()
			}
			return nil, fmt.Errorf("vllmsim: worker %q, rank %d: %w", c.ID, rank, err)
		}
		list = append(list, p)
		if rank == 0 { // the others follow the ports that the first one got
			at := p.Source()
			endpoint = at.Endpoint
			if at.Replay != nil {
				replay = *at.Replay
			}
		}
	}
	return list, nil
}

// offsetEndpoint returns the address that stands by places behind another.
func offsetEndpoint(at string, by int) (string, error) {
	if by == 0 {
		return at, nil
	}
	if path, ok := strings.CutPrefix(at, "ipc://"); ok {
		return "ipc://" + path + "_dp" + strconv.Itoa(by), nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(at, "tcp://"))
	n, wrong := strconv.Atoi(port)
	if err != nil || wrong != nil || n+by > 65535 {
		return "", fmt.Errorf("no address %d behind %q; want tcp://HOST:PORT with a lower port, or ipc://PATH", by, at)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(n+by)), nil
}
