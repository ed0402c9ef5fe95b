package labels

import "testing"

func TestFence(t *testing.T) {
	s := (&Set{}).After([]map[string]string{{"weights": "9", "tier": "a"}, {"weights": "12", "tier": "b"}, {"weights": "new"}, {}})
	bits := func(labels map[string]string) uint64 { return s.Bits(labels) }
	f := func(want bool, labels map[string]string, fence ...string) {
		t.Helper()
		if got := s.Mask(fence).Admit(bits(labels)); got != want {
			t.Errorf("%v for a worker with %v: %v; want %v", fence, labels, got, want)
		}
		if got := Admits(fence, labels); got != want {
			t.Errorf("%v for a worker with %v, without a set: %v; want %v", fence, labels, got, want)
		}
	}
	old, young := map[string]string{"weights": "9", "tier": "a"}, map[string]string{"weights": "12", "tier": "b"}
	f(true, old)
	f(true, old, "weights>=9")
	f(false, old, "weights>=10") // as numbers
	f(true, young, "weights>=10")
	f(false, young, "weights>=13")
	f(false, map[string]string{"weights": "new"}, "weights>=0")
	f(false, nil, "weights>=0")
	f(true, young, "weights>=9", "tier=b")
	f(false, old, "weights>=9", "!tier=a")
	f(false, old, "weights>=9", "weights>=12")
	f(true, young, "weights>=9", "weights>=12")
	f(false, young, "weights>=-1")
	f(false, young, "weights>=9", "tier>=0")
}
