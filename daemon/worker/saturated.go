package worker

// Saturated reports whether every worker that is up has MaxInFlight requests, so that Snapshot would answer Full
// whatever the model. It is false if none is up.
func (p *Pool) Saturated() bool {
	limit := p.conf().MaxInFlight
	if limit == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	some := false
	for _, w := range p.workers {
		if w.health.state != up || w.draining {
			continue
		}
		if w.inFlight < limit {
			return false
		}
		some = true
	}
	return some
}
