package discover

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

func addresses(texts ...string) (all []netip.Addr) {
	for _, a := range texts {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// TestUsable: each address once, in order, and none that no worker can have.
func TestUsable(t *testing.T) {
	f := func(want string, found ...netip.Addr) {
		t.Helper()
		var got []string
		for _, a := range usable(found) {
			got = append(got, a.String())
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%v: %q; want %q", found, text, want)
		}
	}
	f("")
	f("10.0.0.1 10.0.0.2", addresses("10.0.0.2", "10.0.0.1", "10.0.0.2")...)
	f("10.0.0.1 fd00::1", addresses("fd00::1", "::ffff:10.0.0.1")...)
	f("10.0.0.1", addresses("0.0.0.0", "::", "224.0.0.1", "ff02::1", "10.0.0.1")...)
	f("10.0.0.1", append(addresses("10.0.0.1"), netip.Addr{})...)
	var many []netip.Addr
	for a := netip.MustParseAddr("10.1.0.0"); len(many) < maxAddresses+100; a = a.Next() {
		many = append(many, a)
	}
	if got := len(usable(many)); got != maxAddresses {
		t.Errorf("%d of %d addresses are taken; want %d", got, len(many), maxAddresses)
	}
}

// TestHalfAnAnswer: of the kind that failed what is known stays, of the other what is answered counts.
func TestHalfAnAnswer(t *testing.T) {
	var log bytes.Buffer
	var found []netip.Addr
	var fault error
	n := nameSource{log: slog.New(slog.NewTextHandler(&log, nil)),
		resolve: func(context.Context, string) ([]netip.Addr, error) { return found, fault }}
	n.follow("vllm.test:80")
	f := func(want string, err error, addrs ...string) {
		t.Helper()
		found, fault = addresses(addrs...), err
		n.ask(t.Context())
		if got := strings.ReplaceAll(strings.Join(n.urls(), " "), "http://", ""); got != want {
			t.Errorf("%v with %v: %s; want %s", addrs, err, got, want)
		}
	}
	lost := errors.New("lost")
	f("10.0.0.1:80 10.0.0.9:80 [fd00::1]:80", nil, "10.0.0.1", "10.0.0.9", "fd00::1")
	f("10.0.0.2:80 [fd00::1]:80", &half{is6: true, err: lost}, "10.0.0.2")
	f("10.0.0.2:80 [fd00::1]:80", &half{is6: true, err: lost}, "10.0.0.2")
	f("10.0.0.2:80 [fd00::2]:80", &half{is6: false, err: lost}, "fd00::2")
	f("10.0.0.2:80 [fd00::2]:80", lost)
	f("10.0.0.3:80", nil, "10.0.0.3")
	f("10.0.0.3:80", &half{is6: true, err: lost}, "10.0.0.3") // a server without IPv6
	if got := strings.Count(log.String(), "one kind of address"); got != 1 {
		t.Errorf("%d lines of halves; want one for the episode:\n%s", got, log.String())
	}
	n.follow("other.test:80")
	if got := n.urls(); len(got) != 0 {
		t.Errorf("another name has the workers of the old one: %v", got)
	}
	f("", lost)
}

// TestAskedOfAnotherName: an answer that comes when the name is another one already is dropped.
func TestAskedOfAnotherName(t *testing.T) {
	n := nameSource{log: slog.New(slog.DiscardHandler)}
	n.resolve = func(context.Context, string) ([]netip.Addr, error) {
		n.follow("new.test:80")
		return addresses("10.0.0.1"), nil
	}
	n.follow("old.test:80")
	n.ask(t.Context())
	if got := n.urls(); len(got) != 0 {
		t.Errorf("the new name has the old one's workers: %v", got)
	}
}
