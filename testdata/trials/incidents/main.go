package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// incident is a row of the table.
type incident struct {
	name, what string
	workers    []string           // "NAME FLAGS OF warmpath sim"
	conf       string             // @NAME is the address of a worker; see scene.text
	before     func(*scene) error // the daemon starts; nil = nothing
	play       func(*scene) error
	says       string // lines of SURFACE REGEXP, as package main says
}

// line is a line of the output.
type line struct {
	Incident string   `json:"incident"`
	What     string   `json:"what"`
	OK       bool     `json:"ok"`
	Wrong    []string `json:"wrong,omitempty"`
	Took     string   `json:"took"`
}

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	only := flag.String("run", "", "only the incidents whose name fits this expression")
	dir := flag.String("dir", "", "folder for logs and what was read, which stay there; default: a temporary one")
	side := flag.Int("side", 4, "incidents that are played at a time")
	flag.Parse()
	rig.Main("incidents", *dir, func(ctx context.Context, dir string) (bool, error) {
		want, err := regexp.Compile(*only)
		if err != nil {
			return false, err
		}
		path, err := filepath.Abs(*bin)
		if err != nil {
			return false, err
		}
		return playAll(ctx, dir, path, want, *side)
	})
}

func playAll(ctx context.Context, dir, bin string, want *regexp.Regexp, side int) (ok bool, err error) {
	w, err := startWatch(dir)
	if err != nil {
		return false, err
	}
	defer w.prometheus.Stop()
	var mu sync.Mutex // guards ok and the output
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	ok = true
	var all sync.WaitGroup
	places := make(chan struct{}, side)
	for i := range table {
		if !want.MatchString(table[i].name) {
			continue
		}
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			l := playOne(ctx, w, dir, bin, &table[i])
			mu.Lock()
			defer mu.Unlock()
			ok = ok && l.OK
			out.Encode(l)
		})
	}
	all.Wait()
	return ok, ctx.Err()
}

func playOne(ctx context.Context, w *watch, dir, bin string, i *incident) line {
	began := time.Now()
	s := &scene{ctx: ctx, watch: w, dir: filepath.Join(dir, i.name), bin: bin, conf: i.conf, addrs: map[string]string{},
		args: map[string][]string{}, procs: map[string]*rig.Proc{}}
	defer s.close()
	l := line{Incident: i.name, What: i.what}
	err := os.Mkdir(s.dir, 0o700)
	if err == nil && i.before != nil {
		err = i.before(s)
	}
	if err == nil {
		err = s.begin(i.workers)
	}
	if err == nil {
		err = i.play(s)
	}
	if err != nil {
		l.Wrong = append(l.Wrong, "could not be tried: "+err.Error())
	} else {
		l.Wrong = judge(i.says, s.read())
	}
	l.OK, l.Took = len(l.Wrong) == 0, time.Since(began).Round(100*time.Millisecond).String()
	return l
}

// judge returns the lines of says that do not hold of what was read, by surface.
func judge(says string, read map[string]string) (wrong []string) {
	alerts := strings.Fields(read["alert"])
	var may []string
	for rule := range strings.Lines(says) {
		surface, text, _ := strings.Cut(strings.TrimSpace(rule), " ")
		text = strings.TrimSpace(text)
		surface, not := strings.CutSuffix(surface, "!")
		switch _, known := read[surface]; {
		case surface == "":
		case surface == "alert?":
			may = append(may, text)
		case !known:
			wrong = append(wrong, "no such surface: "+rule)
		case surface == "alert":
			may = append(may, text)
			if !slices.Contains(alerts, text) {
				wrong = append(wrong, "no alert "+text)
			}
		default:
			re, err := regexp.Compile(text)
			if err != nil {
				wrong = append(wrong, err.Error())
				continue
			}
			if found := re.FindString(read[surface]); (found != "") == not {
				wrong = append(wrong, fmt.Sprintf("%s: found %.200q", strings.TrimSpace(rule), found))
			}
		}
	}
	for _, a := range alerts {
		if !slices.Contains(may, a) {
			wrong = append(wrong, "alert "+a)
		}
	}
	return wrong
}
