package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func newWatcher() (watcher, error) { return newEpoll() }

// epoll watches by one epoll descriptor.
type epoll struct {
	file *os.File // the epoll descriptor, which Go's own poller waits for
	raw  syscall.RawConn

	mu    sync.Mutex // guards the rest
	slots []watchSlot
	free  []uint32 // indexes into slots
}

// watchSlot is a connection's place in the table that events point into. An event's data is the slot's number in the
// upper and its generation in the lower 32 bits. A generation that has come round once (4 G connections in one slot)
// would have to do so between an epoll_wait and the look into the table.
type watchSlot struct {
	gen  uint32
	peer *presence
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that os.NewFile gives it to Go's poller
		unix.Close(fd)
		return nil, err
	}
	e := &epoll{file: os.NewFile(uintptr(fd), "epoll"), slots: make([]watchSlot, 1)} // number 0 is never used
	e.raw, err = e.file.SyscallConn()
	if err != nil {
		e.file.Close()
		return nil, err
	}
	go e.run()
	return e, nil
}

// run passes events to their connections until close.
func (e *epoll) run() {
	events := make([]unix.EpollEvent, 128)
	for {
		n := 0
		err := e.raw.Read(func(fd uintptr) bool {
			for interrupted := true; interrupted; {
				var err error
				n, err = unix.EpollWait(int(fd), events, 0)
				interrupted = err == unix.EINTR
			}
			return n > 0 // else wait until there is more
		})
		if err != nil {
			return // closed
		}
		for _, ev := range events[:n] {
			p := e.at(uint32(ev.Pad), uint32(ev.Fd))
			if p == nil {
				continue
			}
			if ev.Events&^unix.EPOLLIN != 0 {
				p.peerLeft()
			}
			p.stir()
		}
	}
}

// at returns the presence that the event is for, nil if the connection is closed by now.
func (e *epoll) at(number, gen uint32) *presence {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.slots[number]; s.gen == gen {
		return s.peer
	}
	return nil
}

// add enters a connection. If it is down already there is an event at once: epoll looks when it gets a descriptor.
func (e *epoll) add(p *presence, raw net.Conn) error {
	sc, ok := raw.(syscall.Conn)
	if !ok {
		return errors.New("the connection has no descriptor")
	}
	number, gen := e.enter(p)
	p.key = number
	return e.control(sc, unix.EPOLL_CTL_ADD, event(number, gen, 0))
}

// event returns the events that the kernel is to report for a connection: those of leaving, and others.
func event(number, gen, beside uint32) *unix.EpollEvent {
	return &unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLET | beside,
		Fd:     int32(gen),
		Pad:    int32(number),
	}
}

// await asks for data too, or no more. Data that is there already makes an event at once, as with add.
func (e *epoll) await(p *presence, raw net.Conn, on bool) error {
	if p.key == 0 {
		return errors.New("the connection is not watched")
	}
	beside := uint32(0)
	if on {
		beside = unix.EPOLLIN
	}
	e.mu.Lock()
	gen := e.slots[p.key].gen // another connection's if ours is closed: the kernel does not know ours then
	e.mu.Unlock()
	return e.control(raw.(syscall.Conn), unix.EPOLL_CTL_MOD, event(p.key, gen, beside))
}

// enter gives p a slot.
func (e *epoll) enter(p *presence) (number, gen uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.free); n > 0 {
		number = e.free[n-1]
		e.free = e.free[:n-1]
	} else {
		number = uint32(len(e.slots))
		e.slots = append(e.slots, watchSlot{})
	}
	s := &e.slots[number]
	s.gen++
	s.peer = p
	return number, s.gen
}

// remove takes a connection out. The table comes last: a number must not be reused while the kernel knows it.
func (e *epoll) remove(p *presence, raw net.Conn) {
	if p.key == 0 {
		return
	}
	// An error means that the descriptor is closed already, and with it the kernel's entry gone.
	_ = e.control(raw.(syscall.Conn), unix.EPOLL_CTL_DEL, nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slots[p.key].peer = nil
	e.free = append(e.free, p.key)
}

// control runs epoll_ctl while the descriptor cannot be closed.
func (e *epoll) control(sc syscall.Conn, op int, ev *unix.EpollEvent) error {
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		err := e.raw.Control(func(epfd uintptr) { failed = unix.EpollCtl(int(epfd), op, int(fd), ev) })
		if err != nil {
			failed = err
		}
	})
	return errors.Join(err, failed)
}

func (e *epoll) close() { e.file.Close() }
