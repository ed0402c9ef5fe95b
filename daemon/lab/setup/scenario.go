package setup

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

//go:embed scenarios/*.toml models/*.toml
var files embed.FS

// Scenario is what a run is made of, but for the strategy and the seed.
type Scenario struct {
	Name  string `toml:"-"`
	About string `toml:"about"`
	Model string `toml:"model"` // a file of models, without its ending; default is the default
	Like  string `toml:"like"`  // another scenario, which this one changes

	Workers  int     `toml:"workers"`
	Requests int     `toml:"requests"`
	Seconds  float64 `toml:"seconds"` // for which chats begin
	Clients  int     `toml:"clients"` // over 0: a closed loop
	Routers  int     `toml:"routers"`
	Split    string  `toml:"split"`         // of requests on several routers: random or session
	History  float64 `toml:"history_delay"` // seconds that what one router did takes to the others; 0 = it is not sent

	Engine  Engine          `toml:"engine"`
	Room    Bounds          `toml:"room"`
	Queue   Queue           `toml:"queue"`
	Classes []traffic.Class `toml:"class"`
	Surges  []traffic.Surge `toml:"surge"`
	Fates   []Fate          `toml:"fate"`
	Sync    Sync            `toml:"sync"`
	Kinds   []Kind          `toml:"worker"` // of the first workers, in order; the others are as the engine says
	Trace   Trace           `toml:"trace"`

	Disaggregation Disaggregation `toml:"disaggregation"`
}

// Disaggregation has workers with the role prefill compute prompts that others answer, as [pools.disaggregation].
type Disaggregation struct {
	Rate      float64 `toml:"kv_transfer_rate"` // tokens a second that come from a prefiller; 0 = no roles
	Threshold int     `toml:"threshold"`
}

// Bounds are what bounds the work at one worker, as keys of [[pools]] do. 0 = no bound.
type Bounds struct {
	MaxInFlight int     `toml:"max_in_flight"`
	MaxWait     float64 `toml:"max_wait_seconds"`
	MaxKVUse    float64 `toml:"max_kv_use"`
}

// Queue is where requests wait for room, as [pools.queue] has it.
type Queue struct {
	MaxRequests int           `toml:"max_requests"` // 0 = no queue
	MaxBytes    int64         `toml:"max_bytes"`
	Wait        time.Duration `toml:"wait"`
	Starve      time.Duration `toml:"starve"`
}

// Wait makes requests wait in the router, as by default in a daemon's configuration, and bounds the workers' room if
// the scenario does not.
func (s *Scenario) Wait() {
	if s.Room == (Bounds{}) {
		s.Room = Bounds{MaxWait: 1}
	}
	if s.Queue == (Queue{}) {
		s.Queue = Queue{MaxRequests: 5000, MaxBytes: 256 << 20, Wait: time.Minute, Starve: 5 * time.Second}
	}
}

// Kind is what some workers have of their own.
type Kind struct {
	Count    int               `toml:"count"`    // of such workers; 0 = 1
	Labels   map[string]string `toml:"labels"`   // as [[pools.workers]] has them
	Cost     float64           `toml:"cost"`     // likewise; 0 = 1
	Slowness float64           `toml:"slowness"` // of each step, beside the model's; 0 = 1
	Role     string            `toml:"role"`     // prefill, or as all others: it answers
	Engine   string            `toml:"engine"`   // whose metrics the router reads: sglang, or vllm, the default
}

// EachKind returns the kinds of the first workers, one a worker.
func (s *Scenario) EachKind() (each []Kind) {
	for _, k := range s.Kinds {
		for range max(1, k.Count) {
			each = append(each, k)
		}
	}
	return each
}

// Fate is what befalls a worker.
type Fate struct {
	At       float64 `toml:"at"` // seconds
	Worker   int     `toml:"worker"`
	What     string  `toml:"what"` // dies, comes, leaves or slows
	Slowness float64 `toml:"slowness"`
	Within   float64 `toml:"within"` // of leaves: seconds before its process ends, in which the routers know of it
	Back     float64 `toml:"back"`   // of leaves: seconds after which it comes again; 0 = it does not
}

// Sync is how often a trainer gives all workers new weights, and empties their caches; see [world.Sync].
type Sync struct {
	Every float64 `toml:"every"` // seconds; 0 = never
	Takes float64 `toml:"takes"` // seconds
}

// Trace is a recorded load.
type Trace struct {
	File  string  `toml:"file"`  // beside the scenario's, or where the caller sets it
	Speed float64 `toml:"speed"` // times that it is played faster; 0 = 1
	From  float64 `toml:"from"`  // seconds of the recording
	Until float64 `toml:"until"` // 0 = its end
}

// Names lists the scenarios that come with the lab.
func Names() []string {
	var names []string
	all, _ := fs.Glob(files, "scenarios/*.toml")
	for _, f := range all {
		names = append(names, strings.TrimSuffix(path.Base(f), ".toml"))
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}

// Read reads a scenario: one that comes with the lab by its name, a file that ends in .toml, or any other file as a
// trace that is played against the default model.
func Read(name string) (*Scenario, error) {
	if text, err := files.ReadFile("scenarios/" + name + ".toml"); err == nil {
		return parse(name, "", string(text))
	}
	if strings.HasSuffix(name, ".wasm") {
		return nil, fmt.Errorf("setup: %s is a module and no scenario; name it by --strategy", name)
	}
	if !strings.HasSuffix(name, ".toml") {
		if _, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("setup: no scenario %q and no such file; give one of %s, a file in .toml, or a trace",
				name, strings.Join(Names(), ", "))
		}
		base := filepath.Base(name)
		return parse(base, filepath.Dir(name), fmt.Sprintf("model = \"default\"\n[trace]\nfile = %q\n", base))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("setup: the scenario cannot be read: %w", err)
	}
	return parse(strings.TrimSuffix(filepath.Base(name), ".toml"), filepath.Dir(name), string(text))
}

// maxDepth bounds scenarios that are like another.
const maxDepth = 4

// parse reads a scenario of a folder over the one that it is like, and that over its model.
func parse(name, dir, text string) (*Scenario, error) {
	s := &Scenario{}
	if err := s.fill(name, text, maxDepth); err != nil {
		return nil, err
	}
	s.Name = name
	if s.Trace.File != "" && dir != "" && !filepath.IsAbs(s.Trace.File) {
		s.Trace.File = filepath.Join(dir, s.Trace.File)
	}
	if s.Workers == 0 {
		s.Workers = 7
	}
	return s, nil
}

// fill decodes text over what it builds on.
func (s *Scenario) fill(name, text string, depth int) error {
	var base struct{ Like, Model string }
	if _, err := toml.Decode(text, &base); err != nil {
		return explain(name, err)
	}
	if base.Like != "" {
		below, err := files.ReadFile("scenarios/" + base.Like + ".toml")
		if err != nil || depth == 0 {
			return fmt.Errorf("setup: %s is like %q, which is no scenario of the lab, or too many deep", name, base.Like)
		}
		if err := s.fill(base.Like, string(below), depth-1); err != nil {
			return err
		}
	}
	if base.Model == "" && base.Like == "" {
		base.Model = "default"
	}
	if base.Model != "" {
		below, err := files.ReadFile("models/" + base.Model + ".toml")
		if err != nil {
			all, _ := fs.Glob(files, "models/*.toml")
			return fmt.Errorf("setup: %s wants the model %q; there are %s", name, base.Model, strings.Join(all, ", "))
		}
		s.Engine = Engine{}
		if err := decode(base.Model, string(below), &s.Engine); err != nil {
			return err
		}
	}
	return decode(name, text, s)
}

// decode reads TOML over a value, and takes no key that it does not know.
func decode(name, text string, to any) error {
	meta, err := toml.Decode(text, to)
	if err != nil {
		return explain(name, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("setup: %s has the key %q, which is not known; correct or remove it", name, unknown[0])
	}
	return nil
}

// explain returns an error with the place at which a file is wrong.
func explain(name string, err error) error {
	if at := (toml.ParseError{}); errors.As(err, &at) {
		return fmt.Errorf("setup: %s:%d: %s", name, at.Position.Line, at.Message)
	}
	return fmt.Errorf("setup: %s: %w", name, err)
}

// Load draws or reads the load of a seed.
func (s *Scenario) Load(seed uint64) (traffic.Load, error) {
	if s.Trace.File == "" {
		p := traffic.Plan{Classes: s.Classes, Surges: s.Surges, Seconds: s.Seconds, Requests: s.Requests, Workers: s.Workers,
			Clients: s.Clients}
		return p.Draw(seed)
	}
	f, err := os.Open(s.Trace.File)
	if err != nil {
		return traffic.Load{}, fmt.Errorf("setup: the trace of %s cannot be read; give its file by --trace: %w", s.Name, err)
	}
	defer f.Close()
	l, err := traffic.ReadTrace(f, s.Trace.File, 0)
	if err != nil {
		return traffic.Load{}, err
	}
	l = l.Part(seconds(s.Trace.From), seconds(s.Trace.Until), s.Requests)
	if len(l.Chats) == 0 {
		return traffic.Load{}, fmt.Errorf("setup: %s: no request of %s comes from %g s on until %g s; correct from and "+
			"until of [trace], where an until of 0 is the end", s.Name, s.Trace.File, s.Trace.From, s.Trace.Until)
	}
	if s.Trace.Speed > 0 {
		l = l.Faster(s.Trace.Speed)
	}
	l.Clients = s.Clients
	return l.Jitter(seed), nil
}

// World returns the run of a load, without its seed.
func (s *Scenario) World(l traffic.Load) (world.Config, error) {
	c := world.Config{Engine: s.Engine.Config(), Workers: s.Workers, GPUs: max(1, s.Engine.GPUs),
		Shared: s.Engine.SharedTokens, Load: l, Routers: s.Routers, History: seconds(s.History),
		Scrape: seconds(s.Engine.ScrapeInterval),
		Sync:   world.Sync{Every: seconds(s.Sync.Every), Takes: seconds(s.Sync.Takes)}}
	if err := s.Engine.check(); err != nil {
		return c, fmt.Errorf("setup: %s: %w", s.Name, err)
	}
	switch s.Split {
	case "", "random":
	case "session":
		c.Split = world.BySession
	default:
		return c, fmt.Errorf("setup: %s: split is %q; want random or session", s.Name, s.Split)
	}
	each := s.EachKind()
	if err := s.checkRoles(each); err != nil {
		return c, err
	}
	if s.Disaggregation.Rate > 0 {
		c.Gaps, c.Engine.RemoteSeconds = true, 1/s.Disaggregation.Rate
	}
	if len(each) > s.Workers {
		return c, fmt.Errorf("setup: %s: [[worker]] describes %d workers of %d; correct count, or workers", s.Name, len(each),
			s.Workers)
	}
	for i := range each {
		if e := each[i].Engine; e != "" && e != "vllm" && e != EngineSGLang {
			return c, fmt.Errorf("setup: %s: the engine of worker %d is %q; want vllm or %s", s.Name, i, e, EngineSGLang)
		}
		if slow := each[i].Slowness; slow != 0 && slow != 1 {
			c.Fates = append(c.Fates, world.Fate{Worker: i, Kind: world.Slows, Slowness: slow})
		}
	}
	for _, f := range s.Fates {
		kind, ok := fates[f.What]
		if !ok {
			return c, fmt.Errorf("setup: %s: what befalls worker %d is %q; want dies, comes, leaves or slows", s.Name, f.Worker,
				f.What)
		}
		c.Fates = append(c.Fates, world.Fate{At: seconds(f.At), Worker: f.Worker, Kind: kind, Slowness: f.Slowness,
			Within: seconds(f.Within), Back: seconds(f.Back)})
	}
	return c, nil
}

// checkRoles returns what is wrong with the workers' roles.
func (s *Scenario) checkRoles(each []Kind) error {
	d, prefillers := &s.Disaggregation, 0
	for i := range each {
		switch each[i].Role {
		case "":
		case RolePrefill:
			prefillers++
		default:
			return fmt.Errorf("setup: %s: the role of worker %d is %q; want %s or none", s.Name, i, each[i].Role, RolePrefill)
		}
	}
	dies := slices.ContainsFunc(s.Fates, func(f Fate) bool { return f.What != "slows" })
	switch {
	case !(d.Rate >= 0 && d.Rate <= most) || d.Threshold < 0:
		return fmt.Errorf("setup: %s: disaggregation has kv_transfer_rate %g and threshold %d; give numbers from 0 on, the "+
			"rate up to %g", s.Name, d.Rate, d.Threshold, most)
	case prefillers > 0 && d.Rate == 0:
		return fmt.Errorf("setup: %s has workers with the role %s and no disaggregation.kv_transfer_rate; give one", s.Name,
			RolePrefill)
	case d.Rate > 0 && (prefillers == 0 || prefillers >= s.Workers):
		return fmt.Errorf("setup: %s: disaggregation with %d prefillers among %d workers; give some workers the role %s, "+
			"not all", s.Name, prefillers, s.Workers, RolePrefill)
	case d.Rate > 0 && dies:
		return fmt.Errorf("setup: %s: a worker dies or comes, which the lab does not simulate with roles; remove one of them",
			s.Name)
	}
	return nil
}

// EngineSGLang is the engine of a worker that shows of itself what SGLang's metrics show.
const EngineSGLang = "sglang"

// RolePrefill is the role of a worker that computes prompts and answers no client.
const RolePrefill = "prefill"

var fates = map[string]world.FateKind{"dies": world.Dies, "comes": world.Comes, "leaves": world.Leaves,
	"slows": world.Slows}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
