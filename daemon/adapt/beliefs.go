package adapt

import (
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/daemon/kvcache"
)

// Beliefs has the KV cache tell LMCache's controller what it has lost; nil if there is no controller.
func Beliefs(k *lmcache.Controller) kvcache.Beliefs {
	if k == nil {
		return nil
	}
	return beliefs{k}
}

// beliefs are a controller's, in the KV cache's words.
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
