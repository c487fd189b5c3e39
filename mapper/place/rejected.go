package place

import (
	"slices"

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
func (pl *Placer) requestKey(t *model.Task) (l requestKey, ok bool) {
	odd := t.GPUs != 1 || t.Phase != model.Queued || len(t.Pinned) > 0 || t.Learner || t.Estimate.Share != 0
	if odd || len(pl.GPUList()) < triesFrom || !pl.Predicts() {
		return l, false
	}
	if pl.Options().FillHeld || pl.Options().Preempts() { // whether a reserved or nominated GPU takes a task depends on the task
		return l, false
	}
	return requestKey{pl.candidatesOf(t)[0], pl.RunsAlone(t)}, true
}

// cacheRejection records that every GPU except the reserved ones rejected a task.
func (pl *Placer) cacheRejection(t *model.Task) {
	l, ok := pl.requestKey(t)
	if !ok {
		return
	}
	if pl.rejections == nil {
		pl.rejections = rejectedCache{}
	}
	all := pl.rejections[l]
	for len(all) > 0 && all[len(all)-1].need >= t.NextGrant {
		all = all[:len(all)-1]
	}
	if len(all) == mostTries {
		all = append(all[:0], all[1:]...)
	}
	pl.rejections[l] = append(all, rejectedEntry{t.NextGrant, pl.clock, pl.reserve.Head().GPUs})
}

// triesFrom is the number of GPUs below which a lookup costs more than asking them.
const triesFrom = 4

// mostTries is the largest number of entries for one key.
const mostTries = 32

// cachedRejection returns the clock when every GPU, except the returned ones, rejected an
// equal request for no more memory, or 0.
func (pl *Placer) cachedRejection(t *model.Task) (at int, but []model.GPUID) {
	l, ok := pl.requestKey(t)
	if !ok {
		return 0, nil
	}
	all := pl.rejections[l]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].need <= t.NextGrant && all[i].at > pl.dropped {
			return all[i].at, all[i].kept
		}
	}
	return 0, nil
}

// rejectedByAll returns the clock when a task was rejected by every GPU, or 0. The
// rejection still holds for the GPUs that have not changed since, except for the returned
// GPUs, which were reserved then and may not be now.
func (pl *Placer) rejectedByAll(t *model.Task) (at int, reopened []model.GPUID) {
	if pl.Predicts() {
		pl.candidatesOf(t) // the answers may have changed
	}
	tried := pl.tried(t)
	if tried.at <= pl.dropped {
		return pl.cachedRejection(t)
	}
	// Whether a reserved GPU can be backfilled depends on host memory, time and
	// residents.
	if kept := &tried.head; pl.Options().FillHeld || kept.Task != pl.reserve.Head().Task || kept.Until != pl.reserve.Head().Until || !slices.Equal(kept.GPUs, pl.reserve.Head().GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
