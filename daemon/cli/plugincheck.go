package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk/abi"
)

// pluginWish holds the flags for a module's check.
type pluginWish struct {
	options map[string]string
	allow   []string
	workers []int
	labels  []string
	most    int // decisions to judge its memory by; 0 = maxDecisions
}

func pluginCheckCommand() *cobra.Command {
	var asJSON bool
	var wish pluginWish
	c := &cobra.Command{
		Use:   "check FILE.wasm",
		Short: "Load a module as the daemon would, and tell what a decision costs",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := checkPlugin(c.Context(), args[0], wish)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			return r.print(c.OutOrStdout(), args[0])
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	c.Flags().StringToStringVar(&wish.options, "options", nil, "options of the strategy, as in max=4,tier=batch")
	c.Flags().StringSliceVar(&wish.allow, "allow", nil, "what it may use, as strategies.NAME.allow: kv,headers:x-tier")
	c.Flags().StringSliceVar(&wish.labels, "labels", nil, "labels of the workers beside the usual ones: rack=r1,rack=r2")
	c.Flags().IntSliceVar(&wish.workers, "workers", []int{16, 256}, "sizes of the made-up fleets")
	return c
}

// pluginReport is the result of a check.
type pluginReport struct {
	SHA256      string         `json:"sha256"`
	Exports     []string       `json:"exports"`
	Imports     []string       `json:"imports"`
	Fleets      []pluginCost   `json:"fleets"`
	FuelLimit   int64          `json:"fuel_limit"`
	MemoryBytes uint64         `json:"memory_bytes"` // of an instance, after a decision on each fleet
	MemoryAfter uint64         `json:"memory_bytes_after"`
	Decisions   int            `json:"decisions"`        // between the two
	Reasons     map[string]int `json:"reasons"`          // that the module gave in them
	Paired      int            `json:"paired,omitempty"` // of them those that named another worker for the prompt
	Alone       int            `json:"alone,omitempty"`  // and those that kept the prompt at the worker that answers
	MemoryLimit int            `json:"memory_limit_bytes"`
	Notes       []string       `json:"notes"` // what its author or operator should look at

	leastClass, mostClass int // that wp_classify gave, and 0
	admitted              int // requests for which wp_filter left a worker

	memory []uint64 // of an instance, after each thousand of decisions and at their end
}

// pluginCost is the cost of a decision on a fleet.
type pluginCost struct {
	Workers int   `json:"workers"`
	Rows    int   `json:"rows"` // of them that the module saw: fewer if it wants candidates alone
	Fuel    int64 `json:"fuel"`
	NS      int64 `json:"ns"`    // the median of some hundred decisions, on this machine
	Chose   int   `json:"chose"` // of these, those that chose a worker: the figures are theirs, or of all if none did
}

func (r *pluginReport) print(w io.Writer, file string) error {
	var cost, reasons []string
	var notes strings.Builder
	for _, f := range r.Fleets {
		fleet := fmt.Sprint(f.Workers, " workers")
		if f.Rows < f.Workers {
			fleet += fmt.Sprintf(", rows of %d", f.Rows)
		}
		cost = append(cost, fmt.Sprintf("%d in %.1f us (%s)", f.Fuel, float64(f.NS)/1000, fleet))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Reasons)) {
		reasons = append(reasons, fmt.Sprintf("%s (%d %%)", name, (100*r.Reasons[name]+r.Decisions/2)/max(r.Decisions, 1)))
	}
	if r.Paired+r.Alone > 0 {
		percent := func(n int) int { return (100*n + r.Decisions/2) / max(r.Decisions, 1) }
		fmt.Fprintf(&notes, "  pairs            %d %% with a prefiller, %d %% with none\n", percent(r.Paired),
			percent(r.Alone))
	}
	for _, n := range r.Notes {
		notes.WriteString("  note             " + n + "\n")
	}
	_, err := fmt.Fprintf(w, "%s: ok\n"+
		"  sha256           %s\n"+
		"  exports          %s\n"+
		"  imports          %s\n"+
		"  fuel a decision  %s, of %d\n"+
		"  memory           %d KiB an instance, %d KiB after %d decisions, of %d KiB\n"+
		"  reasons          %s\n%s",
		file, r.SHA256, strings.Join(r.Exports, " "), cmp.Or(strings.Join(r.Imports, " "), "none"),
		strings.Join(cost, ", "), r.FuelLimit, r.MemoryBytes>>10, r.MemoryAfter>>10, r.Decisions, r.MemoryLimit>>10,
		cmp.Or(strings.Join(reasons, ", "), "none"), notes.String())
	return err
}

// maxDecisions is enough to detect a module that does not free its memory. The time is a bound for slow modules.
const (
	maxDecisions = 1_000_000
	maxDeciding  = 3 * time.Second
	checkTime    = time.Second // of one pick: fuel is its bound here, which a busy machine does not change
	timed        = 301         // decisions whose median is shown
	judged       = 2000        // decisions of which each is judged; then one in judgedOf
	judgedOf     = 100
	mostWorkers  = 1 << 16 // of a made-up fleet
	exercises    = 20      // of what the module exports beside wp_pick, before the decisions; then one in a thousand
)

// noSockets is the note about a module that has a package for them.
const noSockets = "it has Go's package net, as net/http brings it: sockets do not work here, each connection fails; " +
	"leave it out, and put what it needs into options, labels, headers or the store"

// checkPlugin loads the module and makes it decide on made-up fleets.
func checkPlugin(ctx context.Context, file string, wish pluginWish) (pluginReport, error) {
	store, err := tier.New(tier.Config{})
	if err != nil {
		return pluginReport{}, err
	}
	h, err := host.New(ctx, host.Config{Slots: 1, PickTime: checkTime,
		KV: store.Local(strategies.StoreKeys, strategies.StoreBytes)})
	if err != nil {
		return pluginReport{}, err
	}
	defer h.Close(ctx)
	return checkIn(ctx, h, file, wish)
}

// checkIn is checkPlugin in a given host.
func checkIn(ctx context.Context, h *host.Host, file string, wish pluginWish) (pluginReport, error) {
	if i := slices.IndexFunc(wish.workers, func(n int) bool { return n < 1 || n > mostWorkers }); i >= 0 {
		return pluginReport{}, fmt.Errorf("plugin: a fleet of %d workers cannot be made up; give 1 to %d", wish.workers[i],
			mostWorkers)
	}
	wasm, err := readModule(file)
	if err != nil {
		return pluginReport{}, err
	}
	limits := conf.DefaultStrategy()
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	s, err := h.Load(ctx, name, wasm, host.Options{Fuel: limits.Fuel, MemoryBytes: limits.MemoryMB << 20,
		Values: wish.options, Allow: wish.allow})
	if err != nil {
		return pluginReport{}, err
	}
	defer s.Close(ctx)
	r := pluginReport{Notes: []string{}, SHA256: s.SHA256(), FuelLimit: limits.Fuel, MemoryLimit: limits.MemoryMB << 20}
	f := s.Surface()
	r.Exports, r.Imports = f.Exports, append([]string{}, f.Imports...)
	if f.Sockets {
		r.Notes = append(r.Notes, noSockets)
	}
	if err := r.decide(s, wish, wish.labelNames()); err != nil {
		return r, fmt.Errorf("%w%s", err, strings.Join(append([]string{""}, r.Notes...), "; "))
	}
	r.note(s, f.MemoryBytes)
	return r, nil
}

// decide has the module decide on all fleets, and hear of what became of its decisions.
func (r *pluginReport) decide(s *host.Strategy, wish pluginWish, labels []string) error {
	for _, workers := range wish.workers {
		cost, err := costOf(s, madeUp(workers, labels))
		if err != nil {
			return err
		}
		r.Fleets = append(r.Fleets, cost)
	}
	r.MemoryBytes = s.Surface().MemoryBytes
	frame := madeUp(16, labels)
	for i := range exercises {
		ask(frame, i)
		if err := s.Exercise(frame); err != nil {
			return fmt.Errorf("the module fails beside its decisions: %w", err)
		}
		if class, _, ok := s.Classify(frame); ok {
			r.leastClass, r.mostClass = min(r.leastClass, class), max(r.mostClass, class)
		}
		if s.Wants(abi.WantFilter) {
			if kept := s.Filter(frame); len(kept.Order) > 0 && kept.Reject == nil {
				r.admitted++
			}
		}
	}
	return r.endure(s, frame, cmp.Or(wish.most, maxDecisions))
}

// Of a fleet of more than few workers a module that wants candidates sees about so many rows.
const (
	few        = 32
	candidates = 50
)

// costOf measures decisions on the frame's fleet. It does not time the first one, which may ask for
// a larger frame, and skips decisions that choose no worker, which may not have looked at any.
func costOf(s *host.Strategy, frame *host.Frame) (pluginCost, error) {
	workers := len(frame.Rows)
	if s.Wants(abi.WantCandidates) && workers > few {
		frame.Rows, frame.WorkerIDs = frame.Rows[:min(workers, candidates)], frame.WorkerIDs[:min(workers, candidates)]
		frame.Header.LeftOut = uint32(workers - len(frame.Rows))
	}
	c := pluginCost{Workers: workers, Rows: len(frame.Rows)}
	if s.Wants(abi.WantPair) {
		setRoles(frame, len(frame.Rows)/2)
	}
	var chose, all []time.Duration
	var fuel int64
	for i := range timed + 1 {
		ask(frame, i)
		start := time.Now()
		res, err := decide(s, frame)
		took := time.Since(start)
		if err != nil {
			return c, fmt.Errorf("the module fails on a fleet of %d: %w", workers, err)
		}
		if i == 0 {
			continue
		}
		all, fuel = append(all, took), max(fuel, res.Fuel)
		if res.Fallback == "" && res.Reject == nil {
			chose, c.Fuel = append(chose, took), max(c.Fuel, res.Fuel)
		}
	}
	c.Chose = len(chose)
	if len(chose) == 0 {
		chose, c.Fuel = all, fuel
	}
	slices.Sort(chose)
	c.NS = chose[len(chose)/2].Nanoseconds()
	return c, nil
}

// endure makes the module decide on fleets of 1 to 16 workers in all states, again and again.
func (r *pluginReport) endure(s *host.Strategy, frame *host.Frame, most int) error {
	r.Reasons = map[string]int{}
	codes := map[uint16]int{}
	rnd := rand.New(rand.NewPCG(1, 2))
	pairs := s.Wants(abi.WantPair)
	all := frame.Rows
	for end := time.Now().Add(maxDeciding); r.Decisions < most; r.Decisions++ {
		if r.Decisions%1000 == 0 {
			r.memory = append(r.memory, s.Surface().MemoryBytes)
			if time.Now().After(end) {
				break
			}
			if err := s.Exercise(frame); err != nil {
				return fmt.Errorf("the module fails beside its decisions, after %d of them: %w", r.Decisions, err)
			}
		}
		shuffle(frame, all[:1+rnd.IntN(len(all))], rnd)
		if pairs {
			setRoles(frame, rnd.IntN(1+len(frame.Rows)))
		}
		ask(frame, r.Decisions)
		res, err := decide(s, frame)
		if err != nil {
			return fmt.Errorf("the module fails after %d decisions: %w", r.Decisions, err)
		}
		if r.Decisions < judged || r.Decisions%judgedOf == 0 {
			if left, ok := s.Leftover(frame); ok {
				if fault := faultOf(frame, res, &left); fault != "" {
					return fmt.Errorf("the module is wrong in decision %d, of %d workers: %s", r.Decisions+1, len(frame.Rows), fault)
				}
			}
		}
		switch {
		case res.Fallback != "":
			r.Reasons["it declines"]++
		case res.Reject != nil:
			r.Reasons["it rejects"]++
		case res.Hold > 0:
			r.Reasons["it holds"]++
		default:
			codes[res.Reason]++
			r.countPair(&res)
		}
	}
	r.MemoryAfter = s.Surface().MemoryBytes
	r.memory = append(r.memory, r.MemoryAfter)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		name := s.ReasonName(code)
		if name == "" && code != 0 && !slices.Contains(plugins.Names(), s.Name()) {
			r.notef("reason %d has no name: return one by wp_reasons, or by Reasons of the SDK", code)
		}
		r.Reasons[cmp.Or(name, plugins.ReasonText(s.Name(), code))] += codes[code]
	}
	return nil
}

// countPair counts which worker a decision names for the prompt.
func (r *pluginReport) countPair(res *host.Result) {
	switch {
	case res.Pair == 0:
	case res.Pair-1 == res.Row:
		r.Alone++
	default:
		r.Paired++
	}
}

// note adds remarks about conditions that are not errors, but make the module useless or its figures too small.
func (r *pluginReport) note(s *host.Strategy, before uint64) {
	stats := s.Stats()
	for _, entry := range slices.Sorted(maps.Keys(stats.Refused)) {
		r.notef("it asked for %q %d times and may not: allow = [%q] in its table, --allow %s here", entry,
			stats.Refused[entry], entry, entry)
	}
	if r.leastClass < -100 || r.mostClass > 0 {
		r.notef("it gives classes from %d to %d, which [[keys]] priority cuts to -100 to 0; set it to [%d, %d] for the keys "+
			"that may have them", r.leastClass, r.mostClass, r.leastClass, r.mostClass)
	}
	if stats.Files > 0 {
		r.notef("it asked for a file %d times: files do not work here; use options or the store", stats.Files)
	}
	if grows := r.grew(); r.MemoryAfter > before && (grows || r.MemoryAfter+1<<20 > uint64(r.MemoryLimit)) {
		r.notef("its memory grows with its decisions: %d KiB at the start, %d KiB after %d, of %d: it fails where that "+
			"ends; have it free what it keeps", before>>10, r.MemoryAfter>>10, r.Decisions, r.MemoryLimit>>10)
	}
	if s.Wants(abi.WantFilter) && r.admitted == 0 {
		r.notef("its filter left no worker to any request: each would get 503")
	}
	if held := r.Reasons["it holds"]; held > 0 && held == r.Decisions {
		r.notef("it holds every request, on idle workers too: each waits until its hold ends, and then the fallback answers")
	}
	if s.Wants(abi.WantPair) && r.Paired+r.Alone == 0 {
		r.notef("it asks for prefillers and has named none: the host decides who computes a prompt")
	}
	for i := range r.Fleets {
		if f := &r.Fleets[i]; f.Chose == 0 {
			r.notef("on %d workers it chose nobody: its cost there is that of turning requests away", f.Workers)
		}
	}
}

func (r *pluginReport) notef(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// grew reports whether the memory of an instance grew in each third of the decisions.
func (r *pluginReport) grew() bool {
	m, n := r.memory, len(r.memory)-1
	return m[0] < m[n/3] && m[n/3] < m[n-n/3] && m[n-n/3] < m[n]
}

// shuffle makes f another request for these workers, with random loads and caches.
func shuffle(f *host.Frame, rows []abi.Row, rnd *rand.Rand) {
	f.Rows = rows
	f.Header.Seq++
	f.Header.Random = rnd.Uint64()
	f.Header.Session = rnd.Uint64() & -(rnd.Uint64() & 1)
	f.Header.QueueDepth, f.Header.Waited = rnd.Uint32N(2)*rnd.Uint32N(50), 0
	if f.Header.QueueDepth > 0 {
		f.Header.FlowsWaiting, f.Header.Waited = 1+rnd.Uint32N(f.Header.QueueDepth), 10*rnd.Float32()
	}
	for i := range rows {
		w := &rows[i]
		w.InFlight = rnd.Uint32N(16)
		w.Wait = rnd.Float64() * float64(rnd.IntN(3))
		w.GPU = rnd.Uint32N(f.Header.PromptBlocks+1) * rnd.Uint32N(2)
		w.Predicted = w.GPU
		w.State = abi.RowSlowStart * uint32(rnd.IntN(20)/19)
	}
}

// decide makes the module decide on f. "busy" is not an error of the module: the host creates or cleans its only
// instance at that moment. decide tries again until maxDeciding.
func decide(s *host.Strategy, f *host.Frame) (host.Result, error) {
	for end := time.Now().Add(maxDeciding); ; time.Sleep(time.Millisecond) {
		var kept host.Result
		if s.Wants(abi.WantFilter) {
			kept = s.Filter(f)
		}
		res := s.Pick(f) // among all, or the frame would be another one
		if kept.Fallback != "" {
			res = kept
		}
		res.Fuel += kept.Fuel
		switch {
		case res.Fallback == "" || res.Fallback == "decline":
			return res, nil
		case res.Fallback != "busy" || time.Now().After(end):
			return res, fmt.Errorf("%s: %s", res.Fallback, s.Stats().LastError)
		}
	}
}
