// Package place finds the GPUs for a task: filter, score, pick.
//
// A [Placer] owns the position of round-robin, and what is derived of the GPUs and the
// waiting tasks: forecasts, scores, and which GPU has rejected which request. It answers
// which GPUs a task gets now ([Placer.Place]), why a GPU rejects it ([Placer.Reject]),
// which tasks are critical, and when a GPU is expected to have room. In a scheduling
// cycle ([Placer.BeginCycle]) it chooses the GPUs of the head reservation.
//
// It reads the ledger, the predictor, the queue and the reservations. The policy
// (package policy) adds a filter and chooses. What is derived changes no decision: a clone
// begins without it, and [Placer.DropCache] drops it at any time. Whoever changes a GPU
// calls its Changed or Settle, whoever changes a waiting task's request calls
// [Placer.Retry], and after a change of its load or run time [Placer.LoadChanged].
package place
