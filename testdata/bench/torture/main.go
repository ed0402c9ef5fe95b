package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"
)

// outcome is the line that is printed.
type outcome struct {
	OK       bool     `json:"ok"`
	Why      string   `json:"why,omitempty"`
	Seconds  float64  `json:"seconds"`
	Puts     int64    `json:"puts"`
	Gets     int64    `json:"gets"`
	Hits     int64    `json:"hits"`
	Refused  int64    `json:"refused"` // puts, as all is promised or leased, or workers may still read
	Leases   int64    `json:"leases"`
	Broken   int64    `json:"broken_off"`
	Victims  int      `json:"clients_killed"`
	Kills    int64    `json:"daemons_killed"`
	FullDisk bool     `json:"full_disk"` // a tmpfs could be mounted
	RSS      [][2]int `json:"rss_mib"`   // of each daemon: early and late in its last life
	Files    [][2]int `json:"files"`
}

// options are the flags.
type options struct {
	bin    string
	length time.Duration
	victim string // the address that a client to be killed plays at
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the program to torment")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long")
	flag.StringVar(&o.victim, "victim", "", "be a client at that address until somebody kills it")
	flag.Parse()
	if o.victim != "" {
		beVictim(o.victim)
	}
	r, err := torment(o)
	if err != nil {
		r.Why = err.Error()
	}
	r.OK = err == nil
	_ = json.NewEncoder(os.Stdout).Encode(r)
	if err != nil {
		os.Exit(1)
	}
}

// beVictim plays in a process of its own.
func beVictim(addr string) {
	g := &game{ends: time.Now().Add(time.Hour)}
	p := newPlayer(g, &site{name: "victim", resp: addr}, fmt.Sprintf("victim%d", os.Getpid()))
	p.blind = true
	if err := p.play(addr, (*player).move); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// errIdle: the machine was too busy for a test of anything.
var errIdle = errors.New("too little has happened; give it longer")

// run is one game.
type run struct {
	game  *game
	sites []*site
	open  *site // has the Redis listener alone, and is killed often
	pod   *site // has both: after a kill it takes no value for a minute, as workers may still read
	self  string
	failc chan error
}

func torment(o options) (r outcome, err error) {
	dir, err := os.MkdirTemp("", "kvtorture")
	if err != nil {
		return r, err
	}
	start := time.Now()
	x := &run{game: &game{ends: start.Add(o.length), promises: o.length > 2*time.Minute}, failc: make(chan error, 64)}
	defer func() {
		for _, s := range x.sites {
			s.close()
		}
		if err == nil {
			os.RemoveAll(dir)
		}
	}()
	x.self, err = os.Executable()
	if err != nil {
		return r, err
	}
	if err := x.openSites(o.bin, dir); err != nil {
		return r, err
	}
	r.FullDisk = x.open.mounted && x.pod.mounted
	r.Victims, err = x.play(&r)
	g := &x.game.tally
	r.Seconds = time.Since(start).Seconds()
	r.Puts, r.Gets, r.Hits, r.Refused = g.puts.Load(), g.gets.Load(), g.hits.Load(), g.refused.Load()
	r.Leases, r.Broken, r.Kills = g.leases.Load(), g.broken.Load(), x.open.life.Load()+x.pod.life.Load()
	if err == nil {
		err = x.nothingHeld()
	}
	if err == nil && (r.Puts == 0 || r.Hits == 0 || r.Leases == 0) {
		err = errIdle
	}
	return r, err
}

func (x *run) openSites(bin, dir string) (err error) {
	x.open, err = newSite(bin, dir, "open", false)
	if x.open != nil {
		x.sites = append(x.sites, x.open)
	}
	if err != nil {
		return err
	}
	x.pod, err = newSite(bin, dir, "pod", true)
	if x.pod != nil {
		x.sites = append(x.sites, x.pod)
	}
	return err
}

// play lets the players and their tormentors loose, and returns when all of them have ended.
func (x *run) play(r *outcome) (victims int, err error) {
	var all []func() error
	for i := range 4 {
		all = append(all,
			func() error {
				return newPlayer(x.game, x.open, fmt.Sprintf("open%d", i)).play(x.open.resp, (*player).move)
			},
			func() error {
				return newPlayer(x.game, x.pod, fmt.Sprintf("resp%d", i)).play(x.pod.resp, (*player).move)
			},
			func() error { return x.playPod(i) })
	}
	all = append(all, x.killDaemons, x.fillDisks, func() (err error) { victims, err = x.killClients(); return err },
		func() error { return x.watch(r) })
	for _, f := range all {
		go func() {
			err := f()
			if err != nil {
				x.game.failed.Store(true)
			}
			x.failc <- err
		}()
	}
	for range all {
		err = errors.Join(err, <-x.failc)
	}
	return victims, err
}

func (x *run) playPod(i int) error {
	w, err := openWindow(x.pod)
	if err != nil {
		return err
	}
	p := newPlayer(x.game, x.pod, fmt.Sprintf("pod%d", i))
	return p.play(x.pod.pod, func(p *player) error { return p.podMove(w) })
}

func (x *run) left() time.Duration { return x.game.left() }

// killDaemons leaves the last third of the game to one life.
func (x *run) killDaemons() error {
	length := x.left()
	podKills := 0
	for {
		time.Sleep(min(length/12, 20*time.Second))
		if x.left() < length/3 {
			return nil
		}
		if err := x.open.kill(); err != nil {
			return err
		}
		if length > 4*time.Minute && x.left() < length*time.Duration(4-podKills)/5 {
			podKills++
			if err := x.pod.kill(); err != nil {
				return err
			}
		}
	}
}

func (x *run) fillDisks() error {
	length := x.left()
	for full := true; x.left() > 0; full = !full {
		for _, s := range x.sites {
			s.fill(full)
		}
		time.Sleep(min(length/10, 15*time.Second, x.left()))
	}
	return nil
}

// killClients runs clients in processes of their own and kills them.
func (x *run) killClients() (n int, err error) {
	for x.left() > 0 {
		s := x.sites[n%2]
		cmd := exec.Command(x.self, "-victim", s.resp)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return n, err
		}
		time.Sleep(min(time.Duration(500+rand.IntN(2000))*time.Millisecond, x.left()))
		_ = cmd.Process.Kill()
		if cmd.Wait(); cmd.ProcessState.ExitCode() == 3 {
			return n, fmt.Errorf("a client at %s saw what must not be", s.name)
		}
		n++
	}
	return n, nil
}

// watch compares the memory of a daemon's last life: the middle of its first fifth with that of its last.
func (x *run) watch(r *outcome) error {
	length := x.left()
	time.Sleep(length*2/3 + min(length/30, 10*time.Second))
	rss, files := make([][]int, 2), make([][]int, 2)
	for x.left() > 0 {
		for i, s := range x.sites {
			p := s.process()
			rss[i] = append(rss[i], int(p.RSS()>>20))
			files[i] = append(files[i], p.FDs())
		}
		time.Sleep(min(length/200, time.Second))
	}
	for i, s := range x.sites {
		if len(rss[i]) == 0 {
			return nil // it ended early, and says why
		}
		early, late := ends(rss[i])
		r.RSS = append(r.RSS, [2]int{early, late})
		from, to := ends(files[i])
		r.Files = append(r.Files, [2]int{from, to})
		more := 16
		if length < time.Minute { // the last life is of seconds: on a busy machine its clients are still coming
			more = 64
		}
		if late > early+early/10+16 || to > from+more {
			return fmt.Errorf("%s grows: %d MiB, then %d; %d descriptors, then %d", s.name, early, late, from, to)
		}
	}
	return nil
}

func ends(list []int) (early, late int) {
	n := max(len(list)/5, 1)
	return slices.Sorted(slices.Values(list[:n]))[n/2], slices.Sorted(slices.Values(list[len(list)-n:]))[n/2]
}

// nothingHeld waits until the last lease and the last promise are over.
func (x *run) nothingHeld() error {
	const wait = 45 * time.Second // a promise to a client that is gone holds for 30 s
	for _, s := range x.sites {
		for end := time.Now().Add(wait); ; time.Sleep(250 * time.Millisecond) {
			pins, leases, err := s.held()
			if err == nil && pins == 0 && leases == 0 {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("%s: %d values are promised and %d leased %s after the end, %v", s.name, pins, leases, wait, err)
			}
		}
	}
	return nil
}
