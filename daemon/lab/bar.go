package lab

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar draws how far the runs are, on a terminal. Elsewhere it writes a line at each tenth. It is a Config.Progress.
type Bar struct {
	mu    sync.Mutex // guards all below
	w     io.Writer
	bar   *progressbar.ProgressBar // nil: w is no terminal
	tenth int
}

// NewBar returns a bar on w.
func NewBar(w io.Writer) *Bar {
	b := &Bar{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(), progressbar.OptionSetDescription("requests"), progressbar.OptionClearOnFinish())
	}
	return b
}

// Show draws that so many of the requests of all runs have ended. Runs that have not begun are not in total yet.
func (b *Bar) Show(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		b.bar.ChangeMax(max(1, total))
		_ = b.bar.Set(done) // a terminal that went away is no reason to fail
		return
	}
	if tenth := 10 * done / max(1, total); tenth > b.tenth {
		b.tenth = tenth
		fmt.Fprintf(b.w, "lab: %d of %d requests\n", done, total)
	}
}

// Close erases the bar.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
