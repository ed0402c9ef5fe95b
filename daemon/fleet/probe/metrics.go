package probe

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// metricsPage is a page of metrics in the making.
type metricsPage struct {
	all     sums
	engines []engine // in the order in which the page names them
	crowded bool     // it names more than maxEngines
	known   bool     // it has a series of an engine's
}

// engine is a page's figures of one engine.
type engine struct {
	sums
	number int
}

// sums adds up series.
type sums struct {
	worker.Metrics
	usages int     // added up in Usage
	tokens float64 // of the KV cache, and
	blocks float64 // blocks of it, where the page has these
	levels bool    // the page says how deep the engine sleeps, and
	deep   bool    // at one of the levels its weights or all go, and the KV cache with them
	ranks  []byte  // labels of the process of SGLang whose series count
}

// maxEngines bounds the engines of a worker. Those of a page that names more are not believed.
const maxEngines = 256

// errUnknownPage is the error of a page that none of the engines wrote. TensorRT-LLM's under /metrics is JSON.
var errUnknownPage = errors.New("/metrics: the page has no metrics of vLLM, SGLang or TensorRT-LLM; run vLLM without " +
	"--disable-log-stats, SGLang with --enable-metrics, and for trtllm-serve set metrics_url of the worker to its " +
	"/prometheus/metrics and return_perf_metrics and enable_iter_perf_stats in its configuration")

// parseMetrics reads a page in Prometheus' text format. Lines that it does not know or cannot read are skipped, as each
// release of an engine adds some: its error is errUnknownPage. Engines behind a port need not begin with 0: with
// --data-parallel-hybrid-lb they have the numbers of the whole deployment.
func parseMetrics(text []byte) (worker.Page, error) {
	var p metricsPage
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if i := bytes.IndexAny(line, "{ "); i > 0 && line[0] != '#' {
			p.add(line[:i], line[i:])
		}
	}
	if !p.known {
		return p.finish(), errUnknownPage
	}
	return p.finish(), nil
}

// add takes up one line, cut behind the metric's name.
func (p *metricsPage) add(name, rest []byte) {
	take := readings[string(name)]
	if take == nil {
		return
	}
	p.known = p.known || !bytes.HasPrefix(name, []byte("process_")) && !bytes.HasPrefix(name, []byte("lmcache:"))
	l := readLabels(rest)
	e := &p.all
	if l.engine >= 0 {
		e = p.engine(l.engine)
	}
	if e.isTwin(&l) {
		return
	}
	take(&p.all, rest)
	if l.engine >= 0 {
		take(e, rest)
	}
}

// labels are those that any series may have.
type labels struct {
	engine   int    // its number; -1 = none
	ranks    []byte // tp_rank and pp_rank of SGLang, as they stand on the line
	priority bool   // it counts the requests of one priority
}

// readLabels returns the labels of a line.
func readLabels(rest []byte) (l labels) {
	l.engine = -1
	end := skipLabels(rest, func(name, value []byte) {
		switch string(name) {
		case "engine", "dp_rank":
			if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 {
				l.engine = n
			}
		case "tp_rank", "pp_rank":
			l.ranks = append(append(l.ranks, value...), ',')
		case "priority":
			l.priority = len(value) > 0
		}
	})
	if end == nil {
		return labels{engine: -1}
	}
	return l
}

// isTwin reports whether what a series counts is counted by another one too: SGLang counts by priority besides, and
// with --enable-metrics-for-all-schedulers in each process of an engine. The first of these counts.
func (s *sums) isTwin(l *labels) bool {
	if l.ranks != nil && s.ranks == nil {
		s.ranks = l.ranks
	}
	return l.priority || l.ranks != nil && !bytes.Equal(l.ranks, s.ranks)
}

// engine returns the sums of the engine of that number.
func (p *metricsPage) engine(number int) *sums {
	for i := range p.engines {
		if p.engines[i].number == number {
			return &p.engines[i].sums
		}
	}
	if len(p.engines) == maxEngines {
		p.crowded = true
		return new(sums)
	}
	p.engines = append(p.engines, engine{number: number})
	return &p.engines[len(p.engines)-1].sums
}

// finish returns what was read.
func (p *metricsPage) finish() worker.Page {
	out := worker.Page{Metrics: p.all.finish()}
	if p.crowded || len(p.engines) == 0 {
		return out
	}
	slices.SortFunc(p.engines, func(a, b engine) int { return cmp.Compare(a.number, b.number) })
	out.Engines = make([]worker.Metrics, len(p.engines))
	for i := range p.engines {
		p.engines[i].Block = cmp.Or(p.engines[i].Block, p.all.Block)
		out.Engines[i] = p.engines[i].finish()
	}
	return out
}

// finish returns the sums.
func (s *sums) finish() worker.Metrics {
	if s.Asleep && s.levels && !s.deep {
		s.Asleep, s.Paused, s.Keeps = false, true, true
	}
	if s.usages > 0 {
		s.Usage /= float64(s.usages)
	}
	s.Capacity = int(min(math.MaxInt32, s.tokens+s.blocks*float64(s.Block)))
	return s.Metrics
}

// labelOf returns a label's value, nil without it.
func labelOf(rest []byte, label string) (found []byte) {
	skipLabels(rest, func(name, value []byte) {
		if string(name) == label {
			found = value
		}
	})
	return found
}

// number returns the value after the labels, and 0 for a value that is missing, negative or absurd.
func number(rest []byte) float64 {
	if rest[0] == '{' {
		rest = skipLabels(rest, nil)
		if rest == nil {
			return 0
		}
	}
	rest = bytes.TrimLeft(rest, " \t")
	if i := bytes.IndexAny(rest, " \t\r"); i >= 0 { // a timestamp follows
		rest = rest[:i]
	}
	v, err := strconv.ParseFloat(string(rest), 64)
	if err != nil || !(v >= 0 && v < 1e15) {
		return 0
	}
	return v
}

// skipLabels calls each for the labels at the start of rest and returns what follows them, nil if they do not end.
// Values stay escaped: those that matter are numbers.
func skipLabels(rest []byte, each func(name, value []byte)) []byte {
	if len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:]
		}
		name, tail, ok := bytes.Cut(rest, []byte("="))
		tail = bytes.TrimLeft(tail, " ")
		if !ok || len(tail) == 0 || tail[0] != '"' {
			return nil
		}
		end := 1
		for end < len(tail) && tail[end] != '"' {
			if tail[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(tail) {
			return nil
		}
		if each != nil {
			each(bytes.TrimSpace(name), tail[1:end])
		}
		rest = tail[end+1:]
	}
}
