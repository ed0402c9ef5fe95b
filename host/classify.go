package host

import "github.com/warmpath/warmpath/sdk/abi"

// Classify asks the module how urgent a request is that is about to wait: of f it sees the header and the texts. ok is
// false if the module does not classify, or has failed, or none of its instances is idle.
func (s *Strategy) Classify(f *Frame) (class int, weight float64, ok bool) {
	if s.notices.wants&abi.WantClassify == 0 || s.quarantine.on() {
		return 0, 0, false
	}
	sl, _ := s.instances.take()
	if sl == nil {
		return 0, 0, false
	}
	v, err := sl.in.classify(f)
	if err != nil {
		s.discard(sl, sl.in.blame(), err)
		return 0, 0, false
	}
	s.give(sl)
	c, w := abi.UnpackClass(v)
	return int(c), float64(w), true
}
