package cli

import (
	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// transferFlags adds the flags of a worker that is one side of disaggregated pairs.
func transferFlags(c *cobra.Command, cfg *vllmsim.Config) {
	f := c.Flags()
	f.StringVar(&cfg.Connector, "connector", "", "serve one side of disaggregated pairs: nixl")
	f.StringVar(&cfg.Role, "role", "", "with --connector: prefill, decode or both (default both)")
	f.Float64Var(&cfg.KVRate, "kv-transfer-rate", 40_000, "tokens of KV a second that a decode worker pulls")
	f.StringVar(&cfg.LoadFailure, "kv-load-failure-policy", "",
		"fail or recompute: what a decode worker does if the prefill worker has lost the blocks (default fail)")
	f.DurationVar(&cfg.PinLife, "pin-life", 0, "of a prompt's blocks that no decode worker pulls (default 30s, as vLLM "+
		"0.32; decode workers renew it while a request waits there)")
	f.BoolVar(&cfg.PinFixed, "pin-fixed", false, "nobody renews --pin-life, as with older vLLM (its default is 8m then)")
}
