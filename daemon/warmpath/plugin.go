package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

func pluginCommand() *cobra.Command {
	c := &cobra.Command{Use: "plugin", Short: "Work on strategy modules", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("plugin: name what to do, as in: warmpath plugin check FILE.wasm")
		}}
	c.AddCommand(pluginCheckCommand())
	return c
}

func pluginCheckCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE.wasm",
		Short: "Load a module as the daemon would, and tell what a decision costs",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := checkPlugin(c.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: ok\n"+
				"  sha256           %s\n"+
				"  exports          %s\n"+
				"  imports          %s\n"+
				"  fuel a decision  %d (16 workers), %d (256 workers) of %d\n"+
				"  memory           %d KiB an instance, %d KiB after %d decisions, of %d KiB\n",
				args[0], r.SHA256, strings.Join(r.Exports, " "), cmp.Or(strings.Join(r.Imports, " "), "none"),
				r.Fuel16, r.Fuel256, r.FuelLimit, r.MemoryBytes>>10, r.MemoryAfter>>10, r.Decisions, r.MemoryLimit>>10)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	return c
}

// pluginReport is what a check finds out of a module.
type pluginReport struct {
	SHA256      string   `json:"sha256"`
	Exports     []string `json:"exports"`
	Imports     []string `json:"imports"`
	Fuel16      int64    `json:"fuel_16_workers"`
	Fuel256     int64    `json:"fuel_256_workers"`
	FuelLimit   int64    `json:"fuel_limit"`
	MemoryBytes uint64   `json:"memory_bytes"` // of an instance that has decided on 16 and 256 workers
	MemoryAfter uint64   `json:"memory_bytes_after"`
	Decisions   int      `json:"decisions"` // that lie between the two
	MemoryLimit int      `json:"memory_limit_bytes"`
}

// A module that keeps what it should free shows in so many decisions. The time is a bound for slow modules.
const (
	maxDecisions = 1_000_000
	maxDeciding  = 3 * time.Second
)

// checkPlugin loads the module and has it decide on made-up fleets.
func checkPlugin(ctx context.Context, file string) (pluginReport, error) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		return pluginReport{}, fmt.Errorf("plugin: the module cannot be read; give the path of a .wasm file: %w", err)
	}
	limits := conf.DefaultStrategy()
	fuel := limits.Fuel
	h, err := host.New(ctx, host.Config{Slots: 1})
	if err != nil {
		return pluginReport{}, err
	}
	defer h.Close(ctx)
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	s, err := h.Load(ctx, name, wasm, host.Options{Fuel: fuel, MemoryBytes: limits.MemoryMB << 20})
	if err != nil {
		return pluginReport{}, err
	}
	defer s.Close(ctx)
	r := pluginReport{SHA256: s.SHA256(), FuelLimit: fuel, MemoryLimit: limits.MemoryMB << 20}
	for workers, used := range map[int]*int64{16: &r.Fuel16, 256: &r.Fuel256} {
		res, err := decide(s, madeUp(workers))
		if err != nil {
			return r, fmt.Errorf("the module fails on %d workers: %w", workers, err)
		}
		*used = res.Fuel
	}
	f := s.Surface()
	r.Exports = f.Exports
	r.Imports = append([]string{}, f.Imports...)
	r.MemoryBytes = f.MemoryBytes
	frame := madeUp(16)
	end := time.Now().Add(maxDeciding)
	for ; r.Decisions < maxDecisions; r.Decisions++ {
		if r.Decisions%1000 == 0 && time.Now().After(end) {
			break
		}
		frame.Header.Seq++
		if _, err := decide(s, frame); err != nil {
			return r, fmt.Errorf("the module fails after %d decisions: %w", r.Decisions, err)
		}
	}
	r.MemoryAfter = s.Surface().MemoryBytes
	return r, nil
}

// decide lets the module decide on f. "busy" says nothing about the module: the host makes or cleans its only
// instance at that moment. decide tries again until maxDeciding.
func decide(s *host.Strategy, f *host.Frame) (host.Result, error) {
	for end := time.Now().Add(maxDeciding); ; time.Sleep(time.Millisecond) {
		res := s.Pick(f)
		switch {
		case res.Fallback == "" || res.Fallback == "decline":
			return res, nil
		case res.Fallback != "busy" || time.Now().After(end):
			return res, fmt.Errorf("%s: %s", res.Fallback, s.Stats().LastError)
		}
	}
}

// madeUp makes a frame of so many workers, none of which is like another.
func madeUp(workers int) *host.Frame {
	f := &host.Frame{}
	f.Reset()
	f.Header.PromptTokens = 8192
	f.Header.PromptBlocks = 256
	f.Header.BlockTokens = 32
	f.Header.C1 = abi.PrefillSeconds
	f.Header.C2 = abi.ContextSeconds
	for i := range workers {
		f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Key: uint64(i+1) * 0x9e3779b97f4a7c15, Slow: 1, Weight: 1,
			InFlight: uint32(i % 7), GPU: uint32(i % 256), Predicted: uint32(i % 256)})
		f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint("w", i+1))
	}
	return f
}
