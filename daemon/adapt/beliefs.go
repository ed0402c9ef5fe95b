package adapt

import (
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
)

// Beliefs makes the KV cache report to LMCache's controller what it has lost; nil if there is no controller.
func Beliefs(k *lmcache.Controller) kvcache.Beliefs {
	if k == nil {
		return nil
	}
	return beliefs{k}
}

// beliefs passes a controller the KV cache's losses.
type beliefs struct{ controller *lmcache.Controller }

// Forget implements kvcache.Beliefs.
func (b beliefs) Forget(lost []kvcache.Lost) {
	all := make([]lmcache.Lost, len(lost))
	for i, l := range lost {
		all[i] = lmcache.Lost(l)
	}
	b.controller.Forget(all)
}

// ForgetAll implements kvcache.Beliefs.
func (b beliefs) ForgetAll(adapters []string) { b.controller.ForgetAll(adapters) }
