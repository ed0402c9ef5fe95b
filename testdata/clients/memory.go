package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const (
	hugePayload = 500 << 20
	maxGrowth   = 64 << 20
)

// runMemory opens a session with a payload of 500 MB: the router must pass it on, not hold it.
func runMemory(ctx context.Context, f *fleet, t *total) {
	if runtime.GOOS != "linux" {
		fmt.Println("   no /proc here: the router's memory is not looked at")
		return
	}
	runChecks(ctx, "go http", t, []check{{"500 MB payload, router's memory", func(ctx context.Context) error {
		if _, err := openHuge(ctx, f, 1<<20); err != nil { // warm: pools, buffers of the connection
			return err
		}
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", f.router), []byte("5"), 0) // resets the peak
		before, _, err := resident(f.router)
		if err != nil {
			return err
		}
		if got, err := openHuge(ctx, f, hugePayload); err != nil || got < hugePayload {
			return fmt.Errorf("the worker has got %d bytes: %w", got, err)
		}
		after, peak, err := resident(f.router)
		if err != nil {
			return err
		}
		fmt.Printf("   500 MB payload: the router had %.1f MB resident before, %.1f MB at its peak, %.1f MB after\n",
			float64(before)/(1<<20), float64(peak)/(1<<20), float64(after)/(1<<20))
		if peak-before >= maxGrowth {
			return fmt.Errorf("it grew by %d bytes, want less than %d", peak-before, maxGrowth)
		}
		return nil
	}}})
}

// openHuge opens a session with a payload of n bytes, closes it, and tells how many have come to the worker.
func openHuge(ctx context.Context, f *fleet, n int64) (int64, error) {
	const head, tail = `{"requestType":"open_session","image":"`, `"}`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(as{}, n), strings.NewReader(tail))
	req, err := http.NewRequestWithContext(ctx, "POST", f.url+"/endpoints/lasting/invocations", body)
	if err != nil {
		return 0, err
	}
	req.ContentLength = int64(len(head)) + n + int64(len(tail))
	req.Header.Set("X-Amzn-SageMaker-Session-Id", "NEW_SESSION")
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %s: %.300s (%v)", r.Status, b, err)
	}
	var told struct{ Bytes int64 }
	if err := json.Unmarshal(b, &told); err != nil {
		return 0, fmt.Errorf("%.300s: %w", b, err)
	}
	id, _, _ := strings.Cut(r.Header.Get("X-Amzn-SageMaker-New-Session-Id"), ";")
	req, err = http.NewRequestWithContext(ctx, "POST", f.url+"/endpoints/lasting/invocations",
		strings.NewReader(closing))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Amzn-SageMaker-Session-Id", id)
	r, err = http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("close of %q: %s", id, r.Status)
	}
	return told.Bytes, nil
}

// as is an endless payload.
type as struct{}

func (as) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

// resident is a process's memory, now and at its peak, in bytes.
func resident(pid int) (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			now = kb << 10
		case "VmHWM:":
			peak = kb << 10
		}
	}
	return now, peak, nil
}
