package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// lab is what one topic works with.
type lab struct {
	ctx      context.Context
	dir, bin string
	topic    string
	report   *report

	daemons []*rig.Proc
	others  []interface{ Stop() } // nginx, Redis, workers
}

// attack runs a topic, looks at its daemons afterwards, and stops all that it started.
func (l *lab) attack(t topic) {
	err := t.run(l)
	if err != nil {
		l.report.line(false, t.name, "could not be tried: "+err.Error())
	}
	if trouble := l.trouble(); trouble != "" {
		l.report.line(false, t.name+"/afterwards", trouble)
	}
	for _, d := range l.daemons {
		d.Stop()
	}
	for _, o := range l.others {
		o.Stop()
	}
}

// way runs one attack, unless -run leaves it out, and prints what came of it.
func (l *lab) way(name string, try func() (ok bool, seen string)) {
	name = l.topic + "/" + name
	if l.ctx.Err() != nil || !l.report.want.MatchString(name) {
		return
	}
	ok, seen := try()
	l.report.line(ok, name, seen)
}

// wants tells whether -run asks for any of these ways, so that nothing is started for none.
func (l *lab) wants(names ...string) bool {
	for _, n := range names {
		if l.report.want.MatchString(l.topic + "/" + n) {
			return true
		}
	}
	return false
}

// serve starts a daemon.
func (l *lab) serve(r rig.Router) (*rig.Proc, error) {
	d, err := r.Start(l.dir, l.bin)
	if err == nil {
		l.daemons = append(l.daemons, d)
	}
	return d, err
}

// end stops a daemon that the topic needs no more, and keeps it for trouble.
func (l *lab) end(d *rig.Proc) string {
	trouble := look(d)
	d.Stop()
	for i, other := range l.daemons {
		if other == d {
			l.daemons = append(l.daemons[:i], l.daemons[i+1:]...)
			break
		}
	}
	return trouble
}

// trouble says what is wrong with the daemons of a topic; "" if nothing is.
func (l *lab) trouble() string {
	var all []string
	for _, d := range l.daemons {
		if t := look(d); t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "; ")
}

// look says what is wrong with a daemon.
func look(d *rig.Proc) string {
	for _, word := range []string{"panic: ", "goroutine ", "fatal error: ", "BUG:"} {
		if d.Logged(word) {
			return fmt.Sprintf("the log tells of %q: %.300s", word, d.Log(300))
		}
	}
	if d.Exited() {
		return fmt.Sprintf("the daemon has ended: %s", d.Log(300))
	}
	return ""
}

// jsonType is the field that most requests have.
const jsonType = "Content-Type: application/json"

const chatPath = "/v1/chat/completions"

// chat is the body of a short chat.
func chat(model string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":8,"messages":[{"role":"user","content":"hello there"}]}`, model)
}

// answers tells whether the daemon answers a chat with 200.
func answers(addr string) bool {
	return wire.Once(addr, wire.Request("POST", chatPath, chat("sim"), jsonType)).Status == 200
}

// mb prints bytes.
func mb(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20)) }

// inOrder walks a table by name, so that two runs print alike.
func inOrder[T any](table map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if !yield(name, table[name]) {
				return
			}
		}
	}
}
