package goredis

import (
	"context"
	"errors"
	"net"
	"strings"
)

// remedies are what to do about a reply that begins so, or an error of the connection that holds it.
var remedies = []struct{ says, remedy string }{
	{"CROSSSLOT", cluster}, {"MOVED", cluster}, {"ASK ", cluster},
	{"CLUSTERDOWN", "the cluster lacks slots or nodes: see CLUSTER INFO there"},
	{"NOAUTH", login}, {"WRONGPASS", login}, {"ERR AUTH", login}, {"ERR invalid password", login},
	{"ERR Client sent AUTH", "it knows no password: leave user and password out of the URL"},
	{"ERR DB index", "correct the database at the URL's end: this Redis has not so many"},
	{"ERR SELECT is not allowed in cluster mode", "leave the database out of the URL: a cluster has one"},
	{"NOPERM", "give the URL's user the right that the error names (docs/routers.md lists all)"},
	{"WRONGTYPE", "a key of the router's is in other use: delete the key that the line names, or use another database"},
	{"MISCONF", "it cannot write its file and takes no changes: free its disk, or see its log"},
	{"LOADING", "it reads its file and is back in a while: wait"},
	{"READONLY", "it is a replica: name the primary, or Sentinels with ?master_name=NAME"},
	{"MASTERDOWN", "it is a replica without its primary: name the primary, or Sentinels with ?master_name=NAME"},
	{"OOM", "it is full: raise its maxmemory, with maxmemory-policy noeviction"},
	{"NOREPLICAS", "it has fewer replicas than min-replicas-to-write: start them"},
	{"BUSY", "a script of somebody blocks it: see SCRIPT KILL"},
	{"ERR max number of clients", "it has as many connections as it may: raise its maxclients"},
	{"DENIED", "its protected-mode refuses other hosts: give it a password, or bind"},
	{"unknown command", "it lacks the command, or renames it: use Redis or Valkey 6 or later, with scripts"},
	{"redis: all sentinels", "no Sentinel of the URL answers, or none knows master_name: correct the URL"},
	{"cluster support disabled", "it is no cluster: leave cluster=true out of the URL"},
	{"x509: ", "its certificate is not signed by who tls_ca_file says, or is for another name"},
	{"first record does not look like a TLS", "it speaks no TLS: write redis:// in place of rediss://"},
	{"tls: ", "the TLS handshake fails: see tls_ca_file, tls_cert_file and the Redis's settings"},
	{"no such host", "correct the host of the URL: no name server knows it"},
	{"connection refused", "start it, or correct host and port of the URL"},
	{"EOF", "it closes the connection: it may want TLS (rediss://), or be no Redis"},
	{"connection reset", "it closes the connection: it may want TLS (rediss://), or be no Redis"},
}

const (
	cluster = "it is a cluster: add ?cluster=true to the URL"
	login   = "correct the user and the password in the URL, or the Redis's ACL"
)

// Remedy returns, in a line, the remedy for an error of a Redis.
func Remedy(err error) string {
	text := err.Error()
	for _, r := range remedies {
		if strings.Contains(text, r.says) {
			return r.remedy
		}
	}
	var n net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout() {
		return "see whether it runs and is reached from here, and whether rediss:// or redis:// fits it"
	}
	return "see the error, and the Redis's log"
}
