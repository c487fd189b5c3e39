// Package query answers what users ask about tasks (Tasks) and about the daemon, its GPUs and its
// machine (Server): a task with its attempts, progress, slowdown and expected start, the reason
// why it waits, listings and groups by page, timelines, the scores of estimates, the GPUs with
// their tasks, and the daemon's figures. An answer has what the caller may see. It combines the
// records with the scheduler's state, which it reads in the loop, and caches what is expensive:
// expected starts and timelines. It changes nothing.
package query
