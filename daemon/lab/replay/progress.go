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

// showProgress writes the progress of a run to w from a goroutine of its own. The
// function that it returns ends it and waits for the last line.
func showProgress(w io.Writer, c *counts, model string) (stop func()) {
	if w == nil {
		return func() {}
	}
	every := lineEvery
	update := lineWriter(w, c, model)
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		every = barEvery
		update = barWriter(w, c, model)
	}
	quit := make(chan struct{})
	gone := make(chan struct{})
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
	return func() {
		close(quit)
		<-gone
	}
}

// lineWriter writes the progress where there is no terminal.
func lineWriter(w io.Writer, c *counts, model string) func(last bool) {
	bounded := false
	return func(bool) {
		fmt.Fprintf(w, "replay: %s: %s\n", model, c)
		if !bounded && c.held.Load() > 0 {
			bounded = true
			fmt.Fprintf(w, "replay: %s: the bound of %d in flight is reached; requests leave late\n", model, cap(c.slots))
		}
	}
}

// barWriter draws the progress on a terminal. The bar is erased when the run
// ends, as the table follows.
func barWriter(w io.Writer, c *counts, model string) func(last bool) {
	b := progressbar.NewOptions(c.total,
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
		what := fmt.Sprintf("%s, %d in flight", model, c.inFlight())
		if n := c.held.Load(); n > 0 {
			what += fmt.Sprintf(" (bound reached, %d late)", n)
		}
		if n := c.failed.Load(); n > 0 {
			what += fmt.Sprintf(", %d failed", n)
		}
		b.Describe(what)
		_ = b.Set64(c.answered.Load() + c.failed.Load())
	}
}
