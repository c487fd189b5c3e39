package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// OnCommit makes the journal call f with the duration of each write, including the sync
// to the disk. f must not call the journal. Call OnCommit before the first write.
func (j *Journal) OnCommit(f func(time.Duration)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written = f
}

// Size returns the size of the database and its log in bytes, without the spare room.
func (r *Reader) Size() (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(r.dir, dataFile+suffix)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// SnapshotAt returns the daemon's time of the newest snapshot, in nanoseconds since 1970,
// or 0 if there is none.
func (r *Reader) SnapshotAt() (at int64, err error) {
	if err := r.q.QueryRow("SELECT coalesce(max(at), 0) FROM snapshots").Scan(&at); err != nil {
		return 0, fmt.Errorf("journal: snapshots: %w", classify(r.dir, err))
	}
	return at, nil
}
