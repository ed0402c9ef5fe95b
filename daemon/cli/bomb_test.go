package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// resident returns the memory of a process in MB.
func (p *process) resident() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skip("there is no /proc here")
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		p.t.Fatalf("no VmRSS in %s", status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb / 1024
}

// TestBombsInPlaceOfTheConfiguration: a running daemon refuses such files at once, does not grow, and applies the next
// good file.
func TestBombsInPlaceOfTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	port := porttest.Row(t, 3)
	file := filepath.Join(dir, "a.toml")
	good := func(more string) string {
		return fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n%s[[pools]]\n[[pools.workers]]\nurl = \"http://127.0.0.1:%d\"\n",
			port, port+1, more, port+2)
	}
	write(t, file, good(""))
	p := warmpath(t, dir, "serve --config a.toml")
	p.says("msg=serving", 1)
	for n := range 6 { // each leaves garbage that is collected later
		write(t, file, good(fmt.Sprintf("# good %d\n", n)))
		p.says("msg=reloaded", n+1)
	}
	before := p.resident()
	for n, bomb := range []string{
		"x=" + strings.Repeat("[", 200_000),
		"x=" + strings.Repeat("{a=", 20_000) + "1" + strings.Repeat("}", 20_000),
		"x=" + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000),
		"a" + strings.Repeat(".a", 20_000) + "=1",
		strings.Repeat("a"+strings.Repeat(".b", 10_000)+"=1\n", 3),
	} {
		write(t, file, bomb)
		p.says("a.toml:1: ", n+1) // a half-written file may be refused too, and names no line
		write(t, file, good(fmt.Sprintf("# file %d\n", n)))
		p.says("msg=reloaded", n+7)
	}
	time.Sleep(time.Second)                         // for work that goes on in the background
	if grown := p.resident() - before; grown > 80 { // each of these bombs took gigabytes
		t.Errorf("%d MB before, %d MB more after five bombs", before, grown)
	} else {
		t.Logf("%d MB before, %d MB more after five bombs", before, grown)
	}
	p.stop()
}
