// Package tier keeps small values with a TTL: session bindings, and the key/value pairs of strategies.
package tier
