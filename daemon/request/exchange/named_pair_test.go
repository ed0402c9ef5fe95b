package exchange

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// pairsOf is a strategy that chooses the worker of an id, and names another one for the prompt; one of "" is nobody, and
// one of "-" a row that there is not. Asked for the prompt alone it takes the first row.
func pairsOf(decoder, prefiller string) *host.Strategy {
	return host.Native("names", abi.WantPair, func(h *abi.Header, rows []abi.Row, _ []uint32) uint64 {
		at := func(id string) int {
			return slices.IndexFunc(rows, func(r abi.Row) bool { return r.Key == worker.KeyOf(id) })
		}
		if h.Flags&abi.HeaderPrefill != 0 {
			return abi.Pack(0, 8, 0)
		}
		switch prefiller {
		case "":
		case "-":
			h.PairRow = 1000
		default:
			h.PairRow = int32(at(prefiller))
		}
		return abi.Pack(int32(max(0, at(decoder))), 7, 0)
	})
}

// roles gives the workers of a duo their roles, and further labels. None of them starts slowly.
func (d *duo) roles(t *testing.T, labels ...string) {
	t.Helper()
	var specs []worker.Spec
	for _, s := range d.pool.Workers.Stats(time.Now()) {
		spec := worker.Spec{ID: s.ID, URL: s.URL, Labels: map[string]string{}}
		if s.ID[0] == 'p' {
			spec.Role, spec.Labels["role"] = worker.Prefills, "prefill"
		} else if spec.Role = decoders(d.connector); spec.Role == worker.Decodes {
			spec.Labels["role"] = "decode"
		}
		for _, l := range labels {
			if id, label, _ := strings.Cut(l, ":"); id == s.ID {
				spec.Labels["for"] = label
			}
		}
		specs = append(specs, spec)
	}
	d.pool.Workers.Configure(worker.Config{Watcher: d.prober, SlowStart: time.Nanosecond})
	d.pool.Workers.Update(specs, time.Now())
	for _, id := range d.prober.ids {
		d.pool.Workers.Dead(id, "refused", time.Now())
		d.pool.Workers.Healthy(id, time.Now())
	}
}

// sends sends a chat, and returns who got it, in order: "p1 d0".
func (d *duo) sends(t *testing.T, bytes int) (who string, in *message.Inbound, out *message.Outbound) {
	t.Helper()
	in, out = d.ask(bytes, "")
	if out.Status != 200 {
		t.Errorf("%d %s", out.Status, out.Body)
	}
	for _, line := range strings.Split(d.served(), "; ") {
		who += " " + strings.Fields(line + " ?")[0]
	}
	return strings.TrimSpace(who), in, out
}

const longPrompt, shortPrompt = 4000, 40

// A pair that the strategy names is served by these two, a short prompt too. What it cannot name the host decides, and
// says that it did.
func TestNamedPair(t *testing.T) {
	f := func(what, decoder, prefiller string, bytes int, want, pair string, named bool) {
		t.Helper()
		d := newDuo(t, pairConnector)
		d.roles(t)
		d.pool.Strategy.Replace(pairsOf(decoder, prefiller))
		who, in, _ := d.sends(t, bytes)
		if who != want || in.Seen.PairName() != pair {
			t.Errorf("%s: %s, pair %q; want %s, %q", what, who, in.Seen.PairName(), want, pair)
		}
		if s := in.Seen.Split; (s != nil) != strings.Contains(want, " ") || s != nil && (s.Named != named || s.Prefiller != want[:2]) {
			t.Errorf("%s: the record has %+v", what, s)
		}
		if d.stranded() != 0 {
			t.Errorf("%s: %d pinned", what, d.stranded())
		}
	}
	f("a pair", "d1", "p1", longPrompt, "p1 d1", "p1", true)
	f("a pair for a short prompt", "d1", "p1", shortPrompt, "p1 d1", "p1", true)
	f("nobody else", "d1", "d1", longPrompt, "d1", "d1", false)
	f("nobody named", "d1", "", longPrompt, "p0 d1", "", false)
	f("nobody named, a short prompt", "d1", "", shortPrompt, "d1", "", false)
	f("no row", "d1", "-", longPrompt, "p0 d1", "", false)
	f("no row, a short prompt", "d1", "-", shortPrompt, "d1", "", false)
}

const pairConnector = pair.NIXL

// With each connector the named prefiller gets the prompt.
func TestNamedPairOfConnectors(t *testing.T) {
	for _, c := range pair.Connectors() {
		d := newDuo(t, pair.Connector(c))
		d.roles(t)
		d.pool.Strategy.Replace(pairsOf("d1", "p1"))
		who, in, _ := d.sends(t, longPrompt)
		if c == string(pair.Sidecar) && who != "d1" {
			t.Errorf("%s: %s", c, who)
		}
		for end := time.Now().Add(5 * time.Second); c != string(pair.Sidecar) && !strings.Contains(who, "p1"); { // both at once
			if time.Now().After(end) {
				t.Fatalf("%s: %s", c, who)
			}
			time.Sleep(time.Millisecond)
			who += d.took()
		}
		if strings.Contains(who, "p0") || strings.Contains(who, "d0") || in.Seen.PairName() != "p1" || in.Seen.Worker != "d1" {
			t.Errorf("%s: %s, pair %q", c, who, in.Seen.PairName())
		}
		result := journal.PrefillDone
		if pair.Connector(c).AtOnce() {
			result = journal.PrefillBegun
		}
		if s := in.Seen.Split; s == nil || s.Prefiller != "p1" || !s.Named || s.Result != string(result) {
			t.Errorf("%s: %+v", c, s)
		}
	}
}

// A strategy of a pool without roles may name whom it likes: nothing comes of it.
func TestNamedPairWithoutRoles(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.pool.Pairing = nil
	d.pool.Strategy.Replace(pairsOf("d1", "p1"))
	if who, in, _ := d.sends(t, longPrompt); who != "d1" || in.Seen.Split != nil || in.Seen.PairName() != "" {
		t.Errorf("%s, pair %q", who, in.Seen.PairName())
	}
}

// A prefiller that the key may not use has no row. One that the strategy names all the same, by what it remembers, gets
// nothing.
func TestNamedPairOutsideOfTheFence(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.roles(t, "p0:mine", "d0:mine", "d1:mine", "p1:other")
	seen := 0
	d.pool.Strategy.Replace(host.Native("remembers", abi.WantPair, func(h *abi.Header, rows []abi.Row, _ []uint32) uint64 {
		if h.Flags&abi.HeaderPrefill == 0 {
			seen, h.PairRow = len(rows), 3 // where p1 would be
		}
		return abi.Pack(0, 7, 0)
	}))
	key := *inbound("POST", "/", "").Caller
	key.Name, key.Workers = "mine", []string{"for=mine"}
	for i := range 4 {
		in := inbound("POST", "/v1/chat/completions", chatOf(longPrompt*(i+1)))
		in.Epoch, in.ID, in.Caller = d.epoch, "id-1", &key
		life := new(message.Life)
		alone.Begin(life)
		out := d.Serve(life, in)
		life.Leave()
		if got := d.took(); out.Status != 200 || strings.Contains(got, "p1") || !strings.HasPrefix(got, "p0") || seen != 3 {
			t.Errorf("%d, %d rows: %s", out.Status, seen, got)
		}
	}
}

// A named prefiller that fails is replaced by the host, which has the decoder do it at last. A decoder that fails is
// replaced, and the pair goes on with the next one that the strategy has named; with one that it has not, the host
// decides.
func TestNamedPairFails(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.roles(t)
	d.pool.Strategy.Replace(pairsOf("d0", "p1"))
	d.set("p1", nil)
	who, in, _ := d.sends(t, longPrompt)
	if s := in.Seen.Split; who != "p1 p0 d0" || s == nil || s.Prefiller != "p0" || s.Named || in.Seen.PairName() != "p1" {
		t.Errorf("p1 fails: %s, %+v", who, s)
	}
	d.set("p", nil)
	if who, in, _ = d.sends(t, longPrompt+2000); !strings.HasPrefix(who, "p") || !strings.HasSuffix(who, " d0") ||
		in.Seen.Split.Result == string(journal.PrefillDone) {
		t.Errorf("both fail: %s, %+v", who, in.Seen.Split)
	}
	d = newDuo(t, pairConnector)
	d.roles(t)
	d.pool.Strategy.Replace(host.Native("then", abi.WantPair, func(h *abi.Header, rows []abi.Row, order []uint32) uint64 {
		if h.Flags&abi.HeaderPrefill != 0 {
			return abi.Pack(0, 8, 0)
		}
		h.PairRow, order[0], h.OrderLen = int32(len(rows)-1), 1, 1
		return abi.Pack(0, 7, 0)
	}))
	d.set("d0", nil)
	if who, in, _ = d.sends(t, shortPrompt); who != "p1 d0 p1 d1" || !in.Seen.Split.Named || in.Seen.Worker != "d1" {
		t.Errorf("d0 fails: %s, %+v", who, in.Seen.Split)
	}
	if d.stranded() != 0 {
		t.Errorf("%d pinned", d.stranded())
	}
	d = newDuo(t, pairConnector)
	d.roles(t)
	d.pool.Strategy.Replace(pairsOf("d0", "p1"))
	d.set("d0", nil)
	if who, in, _ = d.sends(t, shortPrompt); who != "p1 d0 d1" || in.Seen.Worker != "d1" || in.Seen.Split != nil ||
		d.stranded() != 0 {
		t.Errorf("d0 fails, and the host adds d1: %s, %+v, %d pinned", who, in.Seen.Split, d.stranded())
	}
}

// A prefiller that goes down after the strategy has named it is not waited for.
func TestNamedPrefillerGoes(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.roles(t)
	id := map[string]uint64{}
	for url, n := range d.prober.ids {
		id[url] = n
	}
	named := pairsOf("d0", "p1")
	d.pool.Strategy.Replace(host.Native("goes", abi.WantPair, func(h *abi.Header, rows []abi.Row, order []uint32) uint64 {
		r := named.Pick(&host.Frame{Header: *h, Rows: rows})
		if r.Pair > 0 && h.Flags&abi.HeaderPrefill == 0 {
			h.PairRow = int32(r.Pair - 1)
			for _, s := range d.pool.Workers.Stats(time.Now()) {
				if s.ID == "p1" {
					d.pool.Workers.Dead(id[s.URL], "refused", time.Now())
				}
			}
		}
		return abi.Pack(int32(r.Row), r.Reason, 0)
	}))
	who, in, _ := d.sends(t, longPrompt)
	if s := in.Seen.Split; who != "p0 d0" || s == nil || s.Named || in.Seen.PairName() != "p1" {
		t.Errorf("%s, %+v, pair %q", who, s, in.Seen.PairName())
	}
}

// What a request would get names the pair, and sends nothing.
func TestForeseenPair(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.roles(t)
	in := inbound("POST", "/v1/chat/completions", chatOf(longPrompt))
	in.Epoch = d.epoch
	other := pairsOf("d0", "p1")
	x := Foresee(in, func(*epoch.Pool) []*route.Strategy { return []*route.Strategy{other} })
	if len(x.By) != 2 || x.By[0].PairName() != "" || x.By[1].PairName() != "p1" || x.By[1].Worker != "d0" || d.took() != "" {
		t.Errorf("%+v", x)
	}
}

func chatOf(bytes int) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", bytes/5) +
		`"}],"max_completion_tokens":50}`
}
