package host

import (
	"math"
	"sync"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Own holds a strategy's own number for each worker of a pool: Row.Own. All instances of the module share it. A worker
// is its Row.Key; the slot, Row.Worker, only finds it quickly. Safe for concurrent use.
type Own struct {
	mu    sync.RWMutex
	cells []ownCell         // by slot
	slots map[uint64]uint32 // of the cells that are in use, by key
}

type ownCell struct {
	key   uint64 // 0 = not in use
	value float64
}

// maxOwn bounds the slots that have a number: as many as a frame of the SDK has rows.
const maxOwn = 64 << 10

// importsOwn reports whether an import is one of the two.
func importsOwn(f api.FunctionDefinition) bool {
	module, name, _ := f.Import()
	return module == abi.Module && (name == "own" || name == "own_of")
}

// Copy returns the same numbers, which change apart from those of o.
func (o *Own) Copy() *Own {
	o.mu.RLock()
	defer o.mu.RUnlock()
	c := &Own{cells: append([]ownCell(nil), o.cells...), slots: make(map[uint64]uint32, len(o.slots))}
	for key, slot := range o.slots {
		c.slots[key] = slot
	}
	return c
}

// Keep forgets the workers whose keys are not among these.
func (o *Own) Keep(keys map[uint64]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, slot := range o.slots {
		if !keys[key] {
			delete(o.slots, key)
			o.cells[slot] = ownCell{}
		}
	}
}

// fill writes the number of each row's worker.
func (o *Own) fill(rows []abi.Row) {
	o.mu.RLock()
	cells, known := o.cells, true
	for i := range rows {
		r := &rows[i]
		r.Own = 0
		if int(r.Worker) < len(cells) && cells[r.Worker].key == r.Key {
			r.Own = cells[r.Worker].value
		} else {
			known = false
		}
	}
	o.mu.RUnlock()
	if !known {
		o.meet(rows)
	}
}

// meet gives the workers of these rows a cell, and writes the numbers that moved to another slot with their workers.
func (o *Own) meet(rows []abi.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.slots == nil {
		o.slots = map[uint64]uint32{}
	}
	for i := range rows {
		r := &rows[i]
		if r.Key == 0 || r.Worker >= maxOwn {
			continue
		}
		for int(r.Worker) >= len(o.cells) {
			o.cells = append(o.cells, ownCell{})
		}
		c := &o.cells[r.Worker]
		if c.key == r.Key {
			continue
		}
		delete(o.slots, c.key)
		*c = ownCell{key: r.Key}
		if before, ok := o.slots[r.Key]; ok {
			c.value = o.cells[before].value
			o.cells[before] = ownCell{}
		}
		o.slots[r.Key], r.Own = r.Worker, c.value
	}
}

// set makes value the number of a worker. Its answer is an errno. nil knows no worker.
func (o *Own) set(key uint64, value float64) int32 {
	if o == nil {
		return abi.ErrNotFound
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return abi.ErrInvalid
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	slot, ok := o.slots[key]
	if !ok {
		return abi.ErrNotFound
	}
	o.cells[slot].value = value
	return 0
}

// of returns the number of a worker, 0 if it has none.
func (o *Own) of(key uint64) float64 {
	if o == nil {
		return 0
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if slot, ok := o.slots[key]; ok {
		return o.cells[slot].value
	}
	return 0
}

func importOwn(in *instance, _ api.Memory, st []uint64) {
	in.pay(lockedFuel)
	st[0] = errno(in.program.own.Load().set(st[0], math.Float64frombits(st[1])))
}

func importOwnOf(in *instance, _ api.Memory, st []uint64) {
	in.pay(lockedFuel)
	st[0] = math.Float64bits(in.program.own.Load().of(st[0]))
}
