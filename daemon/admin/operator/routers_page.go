package operator

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/peers"
)

// RoutersState is the answer of /api/v1/routers: the routers that share the history.
type RoutersState struct {
	On        bool          `json:"on"`
	Connected bool          `json:"connected"` // to the Redis that carries the messages
	Losses    uint64        `json:"losses"`    // of that connection
	LostSince *time.Time    `json:"lost_since,omitempty"`
	Error     string        `json:"error,omitempty"` // why it is lost
	Pools     []PoolRouters `json:"pools"`
}

// PoolRouters counts the messages between the routers of a pool.
type PoolRouters struct {
	Pool    string            `json:"pool"`
	Routers []RouterState     `json:"routers"`
	Told    RouterTraffic     `json:"told"`
	Heard   RouterTraffic     `json:"heard"`
	Replay  RouterReplay      `json:"replay"`
	Dropped map[string]uint64 `json:"dropped"` // by reason
	Waiting int               `json:"waiting"` // to be sent
}

// RouterState is another router.
type RouterState struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Alive       bool      `json:"alive"`
	Heard       time.Time `json:"heard"` // when its newest message was sent
	Lag         float64   `json:"lag_seconds"`
	Messages    uint64    `json:"messages"`
	Bytes       uint64    `json:"bytes"`
	InFlight    int       `json:"in_flight"`
	Workers     int       `json:"workers"`
	Version     int       `json:"version"`      // of its messages
	TextVersion int       `json:"text_version"` // of its hashes
	OtherSecret bool      `json:"other_secret"`

	At map[string]int `json:"in_flight_by_worker"` // workers without any are left out
}

// RouterTraffic counts the messages in one direction.
type RouterTraffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	Events   uint64 `json:"events"`
}

// RouterReplay describes the replay of messages from before the start.
type RouterReplay struct {
	Messages int     `json:"messages"` // read so far
	Done     int     `json:"done"`
	Over     bool    `json:"over"`
	Seconds  float64 `json:"seconds"`
}

// routersPage answers with the state of the routers that share the history.
func routersPage(c *fiber.Ctx, s peers.Stats) error {
	page := RoutersState{On: s.On, Connected: s.Connected, Losses: s.Losses, Pools: []PoolRouters{}}
	if s.On && !s.Connected {
		page.LostSince, page.Error = &s.Since, s.Err
	}
	for i := range s.Pools {
		page.Pools = append(page.Pools, describeRouters(&s.Pools[i]))
	}
	return c.JSON(page)
}

func describeRouters(p *peers.PoolStats) PoolRouters {
	out := PoolRouters{
		Pool:    p.Name,
		Routers: []RouterState{},
		Told:    RouterTraffic{Messages: p.Sent.Frames, Bytes: p.Sent.Bytes, Events: p.Sent.Records},
		Heard:   RouterTraffic{Messages: p.Received.Frames, Bytes: p.Received.Bytes, Events: p.Received.Records},
		Replay: RouterReplay{Messages: p.Replay.Messages, Done: p.Replay.Done, Over: p.Replay.Live,
			Seconds: p.Replay.Took.Seconds()},
		Dropped: dropped(p),
		Waiting: p.Sent.Waiting,
	}
	for _, r := range p.Routers {
		at := map[string]int{}
		for _, w := range r.Workers {
			if n := r.At[w.Key]; n > 0 {
				at[w.ID] = n
			}
		}
		out.Routers = append(out.Routers, RouterState{ID: r.ID, Name: r.Name, Alive: r.Alive, Heard: r.LastSent,
			Lag: r.Lag.Seconds(), Messages: r.Frames, Bytes: r.Bytes, InFlight: r.InFlight, Workers: len(r.Workers),
			Version: r.Version, TextVersion: r.Text, OtherSecret: r.OtherSecret, At: at})
	}
	return out
}
