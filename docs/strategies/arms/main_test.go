package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestAPartOfTheUsers(t *testing.T) {
	host := &sdktest.Host{}
	host.Use(t)
	f := sdktest.NewFrame(3).Label(host, 2, "arm=b")
	f.Rows[0].Cost = 1
	b := 0
	for user := range uint64(1000) {
		name := (user + 1) * 0x9e3779b97f4a7c15
		f.Header.Session, f.Header.Caller = name*(user%2), name // every other request opens no session
		got := f.Run(t, &arms{part: .1})
		switch got.Row {
		case 2:
			b++
		case 0:
			t.Fatal("worker 0, which costs more than 1 of the same arm")
		}
		if again := f.Run(t, &arms{part: .1}); again.Row != got.Row {
			t.Fatalf("user %d goes to %d, then to %d", user, got.Row, again.Row)
		}
	}
	if b < 70 || b > 130 {
		t.Errorf("%d of 1,000 users are in arm b; want some 100", b)
	}
}
