package daemon

// maxListed bounds the lists in log lines.
const maxListed = 32

// modules lists which module serves which pool, for the log.
func modules(pools []*pool) (list []string) {
	for _, p := range pools {
		if s := p.route.Strategy.Strategy(); s != nil && len(list) < maxListed {
			list = append(list, p.name+": "+s.Name()+" "+s.SHA256()[:12])
		}
	}
	return list
}
