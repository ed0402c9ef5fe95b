package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// backend is a daemon that keeps nothing in memory of its own, over an L2. Each put waits until the L2 has the value,
// and each get asks for it.
type backend struct {
	name  string
	front *server
	all   []*server // whose CPU counts: the daemon, and what is behind it
}

// backends are the L2s to compare, redis the first.
type backends struct {
	list []*backend
	all  []*server
}

func (b *backends) stop() {
	for _, s := range b.all {
		s.End(patience)
	}
}

// keep remembers a process that was started.
func (b *backends) keep(s *server, err error) (*server, error) {
	if err == nil {
		b.all = append(b.all, s)
	}
	return s, err
}

// daemon starts one over an L2.
func (b *backends) daemon(bin, dir, addr, l2 string) (*server, error) {
	return b.keep(startWarmpath(bin, dir, addr, fmt.Sprintf("l1 = false\nresp = '%s'\n[kv_cache.l2]\nenabled = true\n"+
		"write = 'through'\ntimeout = '10s'\nself = '%s'\nqueue_bytes = %d\n%s", addr, addr, memory/2, l2)))
}

// start starts a Redis and a daemon over it, three members of a pool, and one that is no member: every value that it
// gets goes to another process, as with Redis.
func (b *backends) start(bin, dir string) error {
	redis, err := b.keep(startRedis(dir))
	if err != nil {
		return err
	}
	addrs := make([]string, 5)
	for i := range addrs {
		addrs[i] = rig.FreeAddr()
	}
	over, err := b.daemon(bin, dir, addrs[3], fmt.Sprintf("backend = 'redis'\nurl = 'redis://%s'\n", redis.Addr))
	if err != nil {
		return err
	}
	pool := fmt.Sprintf("backend = 'tieredstorage'\nmembers = ['%s']\n", strings.Join(addrs[:3], "', '"))
	var members []*server
	for _, addr := range addrs[:3] {
		m, err := b.daemon(bin, dir, addr, pool)
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	apart, err := b.daemon(bin, dir, addrs[4], pool)
	if err != nil {
		return err
	}
	b.list = []*backend{
		{name: "redis", front: over, all: []*server{over, redis}},
		{name: "tieredstorage", front: members[0], all: members},
		{name: "tieredstorage, none of the values its own", front: apart, all: append(slices.Clone(members), apart)},
	}
	return nil
}

// run is turn.run with the CPU time of all processes of the backend.
func (b *backend) run(t turn) (put, get rate, err error) {
	list := make([]*client, t.clients)
	for i := range list {
		list[i], err = newClient(b.front.Addr, i, t.size)
		if err != nil {
			return put, get, err
		}
		defer list[i].conn.Close()
	}
	put, err = b.measure(t, list, (*client).put)
	if err != nil {
		return put, get, err
	}
	get, err = b.measure(t, list, (*client).get)
	return put, get, err
}

func (b *backend) measure(t turn, list []*client, do func(*client, int) error) (rate, error) {
	cpu := b.cpu()
	r, err := t.measure(b.front, list, do)
	r.cpu = float64((b.cpu() - cpu).Microseconds()) / float64(t.each()*t.clients)
	return r, err
}

func (b *backend) cpu() (all time.Duration) {
	for _, s := range b.all {
		all += s.CPU()
	}
	return all
}

// runL2 compares tieredstorage with redis as the L2, each in its turn.
func runL2(o options, dir string) error {
	b := &backends{}
	defer b.stop()
	if err := b.start(o.bin, dir); err != nil {
		return err
	}
	for _, one := range b.list { // the daemons have taken their memory by then, and much of it is used
		if err := one.front.fill(); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	for _, clients := range o.clients {
		for _, size := range o.sizes {
			if size < 1<<20 || size > 16<<20 {
				continue
			}
			figures, err := b.compare(turn{clients: clients, size: size, budget: o.budget}, o.rounds)
			if err != nil {
				return err
			}
			for _, f := range figures {
				if err := out.Encode(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare gives the backends their turns, each round beginning with another one. The first round warms them up.
func (b *backends) compare(t turn, rounds int) (figures []figure, err error) {
	puts, gets := make([][]rate, len(b.list)), make([][]rate, len(b.list))
	for round := range rounds + 1 {
		for k := range b.list {
			i := (k + round) % len(b.list)
			put, get, err := b.list[i].run(t)
			if err != nil {
				return nil, fmt.Errorf("L2 %s: %w", b.list[i].name, err)
			}
			if round > 0 {
				puts[i] = append(puts[i], put)
				gets[i] = append(gets[i], get)
			}
		}
	}
	for i, one := range b.list[1:] {
		figures = append(figures, one.figure("SET", t, puts[i+1], puts[0]), one.figure("GET", t, gets[i+1], gets[0]))
	}
	return figures, nil
}

func (b *backend) figure(verb string, t turn, rates, redis []rate) figure {
	f := newFigure(verb, t, [3][]rate{rates, redis, redis}, 1)
	f.Name += ", L2 " + b.name
	f.Limit, f.Share = 0, 0
	return f
}
