package host

// Fallback chooses a row without a module. The bound row comes first. Next comes the longest match, of the rows whose
// requests in flight are at most twice the mean. If none of those holds any of the prompt, the row with the fewest in
// flight is taken. Ties go to fewer in flight, then to fewer ever sent, then to the lower index. While some row has
// room in its KV cache, those that have none are left out. It returns -1 for a frame without rows.
func Fallback(f *Frame) int {
	rows := f.Rows[:f.Choices()]
	if b := int(f.Header.Bound); b >= 0 && b < len(rows) {
		return b
	}
	var total uint64
	for i := range rows {
		total += uint64(rows[i].InFlight)
	}
	edge := f.Header.Edge(rows)
	best, match := -1, uint64(0)
	for i := range rows {
		r := &rows[i]
		m := uint64(r.GPU) + uint64(r.L1) + uint64(r.L2)
		if m == 0 || r.Room() < edge || uint64(r.InFlight)*uint64(len(rows)) > 2*total {
			continue
		}
		if m > match || m == match && lighter(f, i, best) {
			best, match = i, m
		}
	}
	if best >= 0 {
		return best
	}
	for i := range rows {
		if rows[i].Room() >= edge && (best < 0 || lighter(f, i, best)) {
			best = i
		}
	}
	return best
}

func lighter(f *Frame, a, b int) bool {
	x, y := &f.Rows[a], &f.Rows[b]
	return x.InFlight < y.InFlight || x.InFlight == y.InFlight && x.Sent < y.Sent
}
