package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestPinRank: the header has the rank of the worker at hand and of no other, attempt after attempt.
func TestPinRank(t *testing.T) {
	header := []upstream.Field{{Name: "Accept", Value: "a"}, {Name: "X-Request-Id", Value: "i"}}
	for _, rank := range []string{"2", "0", "", "", "7"} {
		want := "[{Accept a} {X-Request-Id i}]"
		if rank != "" {
			want = "[{Accept a} {X-Request-Id i} {X-data-parallel-rank " + rank + "}]"
		}
		if header = PinRank(header, rank); fmt.Sprint(header) != want {
			t.Errorf("rank %q: %v; want %s", rank, header, want)
		}
	}
	if got := PinRank(nil, ""); len(got) != 0 {
		t.Errorf("no rank in no header: %v", got)
	}
}

// TestClientsRank: it counts only where the pool allows it, and only as a number.
func TestClientsRank(t *testing.T) {
	f := func(allowed bool, client, want string, asked int) {
		t.Helper()
		in := inbound("POST", "/v1/chat/completions", "", "x-data-parallel-RANK", client)
		in.Epoch = &epoch.Epoch{}
		got := ClientRank(in, &epoch.Pool{ClientRank: allowed})
		if got != want || AskedRank(got) != asked {
			t.Errorf("%q, allowed %v: %q, asked %d; want %q, %d", client, allowed, got, AskedRank(got), want, asked)
		}
		if sent := lines(WorkerHeader(nil, in, in.ID, &epoch.Pool{ClientRank: allowed}, nil)); strings.Contains(strings.ToLower(sent), "rank") {
			t.Errorf("%q, allowed %v: it is passed on as it stands: %s", client, allowed, sent)
		}
	}
	f(false, "2", "", 0)
	f(true, "2", "2", 3)
	f(true, "0", "0", 1)
	f(true, "-1", "-1", 0)
	f(true, "x", "x", 0)
	f(true, "99999999999999999999", "99999999999999999999", 0)
	f(true, "65537", "65537", 0)
}
