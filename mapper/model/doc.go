// Package model has the types of the scheduler: tasks, GPUs, machines, events, decisions,
// reasons and options, with their JSON forms, which the journal stores.
//
// It decides nothing. Its methods answer questions about one value, for example whether a
// task waits or how much memory of a GPU is free. Each value is used by one goroutine.
//
// A [GPU] stores sums over its residents and counts its changes. After a change of its
// fields call [GPU.Settle] or [GPU.Changed].
package model
