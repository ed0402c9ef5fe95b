package kvstore

import (
	"context"
	"net/netip"
)

// View is a Store limited by a Reach.
type View struct {
	store *Store
	reach Reach
}

// NewView returns a view of a store.
func NewView(s *Store, r Reach) View { return View{store: s, reach: r} }

// Get is Store.Get.
func (v View) Get(ctx context.Context, key string, owner netip.Addr) *Lease {
	return v.store.get(ctx, flight{key: key, reach: v.reach}, owner)
}

// Has reports whether the key has a value, without a wait. It promises nothing.
func (v View) Has(key string) bool { return v.store.exists(key, pin{}, 0, v.reach) }

// Delete is Store.Delete.
func (v View) Delete(key string) bool { return v.store.delete(key, v.reach) }

// Reserve is Store.Reserve. A commit goes as far as the view.
func (v View) Reserve(key string, size int64) (*Filling, error) {
	f, err := v.store.Reserve(key, size)
	if err != nil {
		return nil, err
	}
	f.reach = v.reach
	return f, nil
}
