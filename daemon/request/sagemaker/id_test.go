package sagemaker

import (
	"strings"
	"testing"
	"time"
)

var end = time.Date(2026, 11, 21, 8, 30, 33, 0, time.UTC)

func TestParseNew(t *testing.T) {
	f := func(value, id string, expires time.Time, ok bool) {
		t.Helper()
		if i, e, k := ParseNew(value); i != id || !e.Equal(expires) || k != ok {
			t.Errorf("%q: %q, %v, %v; want %q, %v, %v", value, i, e, k, id, expires, ok)
		}
	}
	const id = "5693c464-e905-4cb9-b9c7-67397aeb9186"
	never := time.Time{}
	f(id+"; Expires=2026-11-21T08:30:33Z", id, end, true)
	f(id+";Expires=2026-11-21T08:30:33Z", id, end, true)
	f("  "+id+" ;  expires = 2026-11-21T08:30:33Z ; Path=/", id, end, true)
	f(id+`; EXPIRES="2026-11-21T09:30:33+01:00"`, id, end, true)
	f(id+"; Expires=2026-11-21T08:30:33", id, end, true)
	f(id+"; Expires=2026-11-21 08:30:33", id, end, true)
	f(id+"; Expires=2026-11-21T08:30:33.5Z", id, end.Add(500*time.Millisecond), true)
	f(id, id, never, true)
	f(id+";", id, never, true)
	f(id+"; Expires=soon", id, never, true)
	f(id+"; Max-Age=1200", id, never, true)
	f("", "", never, false)
	f("; Expires=2026-11-21T08:30:33Z", "", never, false)
	f("NEW_SESSION", "", never, false)
	f("a b; Expires=2026-11-21T08:30:33Z", "", never, false)
	f(strings.Repeat("x", 257), "", never, false)
}

func TestFormatNew(t *testing.T) {
	got := FormatNew("id", end.Add(999*time.Millisecond).In(time.FixedZone("", 3600)))
	if want := "id; Expires=2026-11-21T08:30:33Z"; got != want {
		t.Fatalf("%q; want %q", got, want)
	}
}

func FuzzParseNew(f *testing.F) {
	f.Add("5693c464-e905-4cb9-b9c7-67397aeb9186; Expires=2026-11-21T08:30:33Z")
	f.Add("a;;expires==;Expires=2026-11-21 08:30:33")
	f.Fuzz(func(t *testing.T, value string) {
		id, expires, ok := ParseNew(value)
		if !ok {
			if id != "" || !expires.IsZero() {
				t.Fatalf("%q is refused as %q, %v", value, id, expires)
			}
			return
		}
		if !ValidID(id) {
			t.Fatalf("%q gives the id %q", value, id)
		}
		if expires.IsZero() || expires.Year() < 0 || expires.Year() > 9999 {
			return
		}
		again, at, ok := ParseNew(FormatNew(id, expires))
		if again != id || !at.Equal(expires.Truncate(time.Second)) || !ok {
			t.Fatalf("%q: %q, %v is written and read as %q, %v", value, id, expires, again, at)
		}
	})
}

func TestOpened(t *testing.T) {
	f := func(h head, id string, expires time.Time, ok, bad bool) {
		t.Helper()
		i, e, k, err := Opened(h.get)
		if i != id || !e.Equal(expires) || k != ok || (err != nil) != bad {
			t.Errorf("%v: %q, %v, %v, %v", h, i, e, k, err)
		}
		if bad && err.Status != 424 {
			t.Errorf("%v: %d; want it to be the model's fault", h, err.Status)
		}
	}
	f(head{"x-amzn-sagemaker-new-session-id": "a; Expires=2026-11-21T08:30:33Z"}, "a", end, true, false)
	f(head{"x-amzn-sagemaker-session-id": "a; Expires=2026-11-21T08:30:33Z"}, "a", end, true, false)
	f(head{"X-Amzn-SageMaker-New-Session-Id": "new", "X-Amzn-SageMaker-Session-Id": "old"}, "new", time.Time{}, true, false)
	f(head{"Content-Type": "text/plain"}, "", time.Time{}, false, false)
	f(head{"X-Amzn-SageMaker-New-Session-Id": "a_b"}, "", time.Time{}, false, true)
}
