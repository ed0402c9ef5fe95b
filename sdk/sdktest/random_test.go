package sdktest

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"
)

// TestLaterFieldsVary: a field behind those with a rule gets a value by its type, and no other does.
func TestLaterFieldsVary(t *testing.T) {
	var v struct {
		Old   uint32
		Count uint32
		Share float64
	}
	rng := rand.New(rand.NewPCG(1, 1))
	counts, shares := map[uint32]bool{}, map[float64]bool{}
	for range 100 {
		vary(rng, reflect.ValueOf(&v).Elem(), unsafe.Offsetof(v.Count))
		if v.Old != 0 || v.Count >= 64 || v.Share < 0 || v.Share >= 1 {
			t.Fatalf("%+v", v)
		}
		counts[v.Count], shares[v.Share] = true, true
	}
	if len(counts) < 32 || len(shares) < 32 {
		t.Errorf("%d counts and %d shares of 100", len(counts), len(shares))
	}
}
