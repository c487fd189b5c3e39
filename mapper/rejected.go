package mapper

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// rejectedCache caches tasks on one GPU that every GPU has rejected. A later equal
// request needs to ask only GPUs that have changed since.
type rejectedCache map[requestKey][]rejectedEntry

// requestKey is the part of a request that determines the answer of each GPU, for tasks
// that need no less memory.
type requestKey struct {
	ask   int // the candidate number, which also tells whether the load is known
	alone bool
}

// rejectedEntry is one rejected request. For one key, entries that need more memory come
// earlier: a later entry that needs less makes earlier ones with more memory redundant.
type rejectedEntry struct {
	need units.Bytes
	at   int           // the clock
	kept []model.GPUID // the GPUs of the head reservation then, which were not asked
}

// requestKey returns the cache key of a pending task, or false if its result cannot be
// shared.
func (pl *placer) requestKey(t *model.Task) (l requestKey, ok bool) {
	odd := t.GPUs != 1 || t.Phase != model.Queued || len(t.Pinned) > 0 || t.Learner || t.Estimate.Share != 0
	if odd || len(pl.GPUList()) < triesFrom || !pl.predicts() {
		return l, false
	}
	if pl.Options().FillHeld || pl.Options().Preempts() { // whether a reserved or nominated GPU takes a task depends on the task
		return l, false
	}
	return requestKey{pl.candidatesOf(t)[0], pl.RunsAlone(t)}, true
}

// cacheRejection records that every GPU except the reserved ones rejected a task.
func (pl *placer) cacheRejection(t *model.Task) {
	l, ok := pl.requestKey(t)
	if !ok {
		return
	}
	if pl.cache.rejections == nil {
		pl.cache.rejections = rejectedCache{}
	}
	all := pl.cache.rejections[l]
	for len(all) > 0 && all[len(all)-1].need >= t.NextGrant {
		all = all[:len(all)-1]
	}
	if len(all) == mostTries {
		all = append(all[:0], all[1:]...)
	}
	pl.cache.rejections[l] = append(all, rejectedEntry{t.NextGrant, pl.cache.clock, pl.reserve.Head().GPUs})
}

// triesFrom is the number of GPUs below which a lookup costs more than asking them.
const triesFrom = 4

// mostTries is the largest number of entries for one key.
const mostTries = 32

// cachedRejection returns the clock when every GPU, except the returned ones, rejected an
// equal request for no more memory, or 0.
func (pl *placer) cachedRejection(t *model.Task) (at int, but []model.GPUID) {
	l, ok := pl.requestKey(t)
	if !ok {
		return 0, nil
	}
	all := pl.cache.rejections[l]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].need <= t.NextGrant && all[i].at > pl.cache.forgotten {
			return all[i].at, all[i].kept
		}
	}
	return 0, nil
}
