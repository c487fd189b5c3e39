// Package fairshare accounts for the use of each user on each account: past use, which decays,
// and the tasks, GPUs and memory that count against quotas.
//
// It answers which user is next by fair share and whether a quota is reached. The queue sorts
// its tasks by [CompareUsers]; the caller reports each placed, released, queued and dequeued
// task, and each change of a grant.
package fairshare
