// Package models has which models a worker lists in /v1/models, how long each is, which of them are one model under
// several names, and which LoRA adapters the router's requests use there. Its types know no worker and have no lock:
// package worker guards them.
package models
