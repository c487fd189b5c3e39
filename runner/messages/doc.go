// Package messages makes the messages about tasks and GPUs, and answers users about their
// channels. It owns the position up to which the journal has been read, and which GPU
// faults were reported. Package notify owns the outbox and sends.
//
// Messages are made from the journal, not by the loop, which only wakes the journal's
// reader. So neither a receiver nor a slow disk delays the loop. A killed daemon loses no
// message, because the next daemon continues where the outbox ends. See
// docs/monitoring.md.
package messages
