package host

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// selfTestRows is the largest fleet of a self-test, selfTestBlock the tokens of a block of its prompts.
const selfTestRows, selfTestBlock = 3, 32

// selfTestTokens are the lengths of its prompts, after those of none: a module that fails on long ones alone is refused
// too.
var selfTestTokens = []int{200, 8_192, 120_000}

// selfTest lets the module judge made-up requests, without the store. A module that declines or rejects passes.
func selfTest(in *instance) error {
	kv := in.kv
	in.kv = nil
	for n := 1; n <= selfTestRows; n++ {
		if err := judgeMadeUp(in, n, 0, in.program.random()); err != nil {
			return err
		}
	}
	for i, tokens := range selfTestTokens {
		if in.program.cfg.Stepped { // each request leaves a trace in the module, and every run has the same
			break
		}
		for n := 1; n <= selfTestRows; n++ {
			if err := judgeMadeUp(in, n, tokens, uint64(i+n)*0x9e3779b97f4a7c15); err != nil {
				return err
			}
		}
	}
	if err := in.maintain(); err != nil {
		return err
	}
	in.kv = kv
	return nil
}

// judgeMadeUp lets the module judge a made-up request of so many tokens to n workers.
func judgeMadeUp(in *instance, n, tokens int, random uint64) error {
	f := &Frame{Model: "self-test", Header: abi.Header{Bound: -1, BestRow: -1, Last: -1, ParentRow: -1, Now: 1,
		C1: abi.PrefillSeconds, Random: random,
		Session: uint64(n - 1)}} // none, then some: a strategy that binds shows it
	for i := range n {
		f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Weight: 1, Slow: 1, Key: uint64(i) + 1, MetricsAge: -1})
		f.WorkerIDs = append(f.WorkerIDs, string(rune('a'+i)))
	}
	if tokens > 0 {
		blocks := uint32(tokens / selfTestBlock)
		f.Header.PromptTokens, f.Header.PromptBlocks, f.Header.BlockTokens = uint32(tokens), blocks, selfTestBlock
		for i := range f.Rows {
			held := blocks * uint32(i) / uint32(n)
			f.Rows[i].GPU, f.Rows[i].Predicted, f.Rows[i].InFlight = held, held, uint32(i%7)
		}
	}
	if in.program.wants&abi.WantPair != 0 && n > 1 {
		f.Header.Flags, f.Header.Prefillers, f.Rows[n-1].State = abi.HeaderAnswer, 1, abi.RowPrefill
	}
	if !in.program.cfg.Stepped {
		f.Header.Now = time.Now().UnixNano()
	}
	f.prepare()
	_, why, err := in.run(f, false)
	if (why == ok || why == decline) && in.program.wants&abi.WantFilter != 0 {
		_, why, err = in.run(f, true)
	}
	if why != ok && why != decline {
		of := ""
		if tokens > 0 {
			of = fmt.Sprintf(" with a prompt of %d tokens", tokens)
		}
		return fmt.Errorf("host: module %q fails its self-test on a fleet of %d%s: %s: %w%s", in.program.name, n, of,
			reasonNames[why], cause(err), in.words())
	}
	return nil
}
