package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// strangeRedis answers the scan of a router that starts with what it is given, for as long as anybody reads, and all
// else with OK.
func strangeRedis(t *testing.T, begin, more string) (url string) {
	piece := bytes.Repeat([]byte(more), 1+64<<10/max(1, len(more)))
	return "redis://" + porttest.Serve(t, func(c *net.TCPConn) {
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			var parts int
			if _, err := fmt.Fscanf(r, "*%d\r\n", &parts); err != nil {
				return
			}
			words := make([]string, parts)
			for i := range words {
				_, _ = r.ReadString('\n')
				word, _ := r.ReadString('\n')
				words[i] = strings.ToLower(strings.TrimSpace(word))
			}
			switch words[0] {
			case "scan":
				io.WriteString(c, begin)
				for more != "" {
					if _, err := c.Write(piece); err != nil {
						return
					}
				}
			case "hello", "client":
				io.WriteString(c, "-ERR unknown command\r\n")
			default:
				io.WriteString(c, "+OK\r\n")
			}
		}
	})
}

// Whatever its Redis sends, a router starts, and grows no larger for it.
func TestAStrangeRedisHoldsUpNoStart(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	worker := echoes(t, 1)
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what is read and thrown away is not what is looked for
	most := int64(100 << 20)
	if raceEnabled { // the detector's own memory is resident too
		most *= 2
	}
	f := func(name, begin, more string) {
		t.Helper()
		url := strangeRedis(t, begin, more)
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			t.Skip("the peak of resident memory cannot be reset here: ", err)
		}
		before, began := resident(t), time.Now()
		r := start(t, fmt.Sprintf("[cache]\nredis = %q\n", url)+bindAlways+settings("roundrobin", worker...), 1)
		r.at("X-Session-Id", "any")
		took, grown := time.Since(began), resident(t)-before
		if t.Logf("%s: served after %v, %d MB more", name, took.Round(time.Millisecond), grown>>20); grown > most {
			t.Errorf("%s: %d MB more", name, grown>>20)
		}
		if took > 15*time.Second { // reading ahead has 2 s
			t.Errorf("%s: served after %v", name, took)
		}
		_ = r.stop()
	}
	f("many elements announced", "*2\r\n$1\r\n0\r\n*1000000000\r\n", "")
	f("an array of arrays", "*2\r\n$1\r\n0\r\n", "*60000\r\n")
	f("a long value announced", "*2\r\n$1\r\n0\r\n*1\r\n$2000000000\r\n", "")
	f("an endless value", "*2\r\n$1\r\n0\r\n*1\r\n$60000000\r\n", "x")
	f("endless values", "*2\r\n$1\r\n0\r\n*60000\r\n", "$65536\r\n"+strings.Repeat("x", 64<<10)+"\r\n")
	f("an endless line", "+", "x")
	f("endless pages", "", "*2\r\n$1\r\n1\r\n*1\r\n$22\r\n{warmpath}:1:a:"+"1234567\r\n")
	f("no Redis", "HTTP/1.1 400 Bad Request\r\n\r\n", "")
}
