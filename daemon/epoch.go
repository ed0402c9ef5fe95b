package daemon

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/request/front"
)

// state is what a reload replaces.
type state struct {
	conf    *conf.Config
	inForce *conf.Config // conf, with the start's values of what needs a restart
	pools   []*pool      // in the order of the file
	epoch   *front.Epoch
}

// shown are the pools as an operator sees them.
func (s *state) shown() []*readiness.Pool {
	all := make([]*readiness.Pool, len(s.pools))
	for i, p := range s.pools {
		all[i] = p.shown()
	}
	return all
}
