package replay

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// show reports on the run from a goroutine of its own until the function that
// it returns is called, which waits for the last word.
func show(r *run, model string) (stop func()) {
	w := r.cfg.Progress
	if w == nil {
		return func() {}
	}
	every, update := lineEvery, lines(w, r, model)
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		every, update = barEvery, bar(w, r, model)
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				update(false)
			case <-quit:
				update(true)
				return
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// lines is the progress where there is no terminal.
func lines(w io.Writer, r *run, model string) func(last bool) {
	bounded := false
	return func(bool) {
		fmt.Fprintf(w, "replay: %s: %s\n", model, r.status())
		if !bounded && r.held.Load() > 0 {
			bounded = true
			fmt.Fprintf(w, "replay: %s: the bound of %d in flight is reached; requests leave late\n", model, r.cfg.MaxInFlight)
		}
	}
}

// bar is the progress on a terminal: it is erased when the run ends, as the
// table follows.
func bar(w io.Writer, r *run, model string) func(last bool) {
	b := progressbar.NewOptions(len(r.trace),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
	return func(last bool) {
		if last {
			_ = b.Finish() // a terminal that went away is no reason to fail
			return
		}
		what := fmt.Sprintf("%s, %d in flight", model, len(r.slots))
		if n := r.held.Load(); n > 0 {
			what += fmt.Sprintf(" (bound reached, %d late)", n)
		}
		if n := r.failed.Load(); n > 0 {
			what += fmt.Sprintf(", %d failed", n)
		}
		b.Describe(what)
		_ = b.Set64(r.answered.Load() + r.failed.Load())
	}
}

func (r *run) status() string {
	return fmt.Sprintf("%d of %d sent, %d answered, %d failed, %d in flight",
		r.sent.Load(), len(r.trace), r.answered.Load(), r.failed.Load(), len(r.slots))
}
