package message

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// rankHeader pins a request to one of the data-parallel engines behind a worker's port (vLLM 0.11.1 and later). Without
// it the worker balances among them by itself, and a request meets another cache than the chosen one. A worker answers
// 400 to a rank that it does not have.
const rankHeader = "X-data-parallel-rank"

// maxRank bounds what a client can ask for.
const maxRank = 1 << 16

// ClientRank returns the rank that a client asks for, where the pool allows that; else "".
func ClientRank(in *Inbound, p *epoch.Pool) string {
	if !p.ClientRank {
		return ""
	}
	return in.Get(rankHeader)
}

// AskedRank returns 1 + the rank that a client asks for; 0 if it asks for none, or for one that the worker will
// refuse.
func AskedRank(client string) int {
	if client == "" { // nearly always, and Atoi would make an error of it
		return 0
	}
	rank, err := strconv.Atoi(client)
	if err != nil || rank < 0 || rank > maxRank {
		return 0
	}
	return 1 + rank
}

// PinRank sets the rank header of a request to a worker; "" takes it away. The only such field that header can have is
// that of the last attempt, as the last field.
func PinRank(header []upstream.Field, rank string) []upstream.Field {
	if n := len(header); n > 0 && header[n-1].Name == rankHeader {
		header = header[:n-1]
	}
	if rank == "" {
		return header
	}
	return append(header, upstream.Field{Name: rankHeader, Value: rank})
}
