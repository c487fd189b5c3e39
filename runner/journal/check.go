package journal

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Check reads the whole database and reports damage to its structure and to any row. It
// takes seconds per gigabyte, and does not delay writes.
func (r *Reader) Check() error {
	return r.View(func(r *Reader) error {
		if err := r.checkSnapshots(); err != nil {
			return err
		}
		return r.check()
	})
}

// CheckBeside does what Check does while a daemon works. It reads rows for at most half
// of the time, and ends with ctx.
func (r *Reader) CheckBeside(ctx context.Context) error {
	if err := structure(r.dir, r.ro.QueryRowContext(ctx, integrityCheck)); err != nil {
		return err
	}
	return r.View(func(r *Reader) error {
		began := time.Now()
		r.pace = func() error {
			const slice = 10 * time.Millisecond
			if worked := time.Since(began); worked > slice {
				select {
				case <-time.After(worked):
				case <-ctx.Done():
				}
				began = time.Now()
			}
			return ctx.Err()
		}
		if err := r.checkSnapshots(); err != nil {
			return err
		}
		return r.checkRows()
	})
}

func (r *Reader) paced() error {
	if r.pace == nil {
		return nil
	}
	return r.pace()
}

func (r *Reader) checkSnapshots() error {
	seqs, err := r.snapshotSeqs()
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		if _, err := r.snapshot(seq); err != nil {
			return err
		}
		if err := r.paced(); err != nil {
			return err
		}
	}
	return nil
}

// check does not check the snapshots, because Load skips damaged ones.
func (r *Reader) check() error {
	if err := structure(r.dir, r.q.QueryRow(integrityCheck)); err != nil {
		return err
	}
	return r.checkRows()
}

const integrityCheck = "PRAGMA integrity_check(1)"

func structure(dir string, row *sql.Row) error {
	var found string
	if err := row.Scan(&found); err != nil {
		return fmt.Errorf("journal: check: %w", classify(dir, err))
	}
	if found != "ok" {
		return fmt.Errorf("journal: %w: %s", ErrDamaged, found)
	}
	return nil
}

func (r *Reader) checkRows() error {
	if err := r.checkEvents(); err != nil {
		return err
	}
	for _, err := range r.Decisions(0) {
		if err != nil {
			return err
		}
		if err := r.paced(); err != nil {
			return err
		}
	}
	if err := r.checkTasks(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return r.checkMeta()
}

// checkEvents follows the chain of sums from the oldest event to the last,
// which the head names.
func (r *Reader) checkEvents() error {
	h, err := r.head()
	if err != nil {
		return err
	}
	for _, err := range r.Events(h.base) {
		if err != nil {
			return err
		}
		if err := r.paced(); err != nil {
			return err
		}
	}
	switch last, err := r.before(h.event); {
	case err != nil:
		return fmt.Errorf("journal: event %d: %w", h.event, classify(r.dir, err))
	case last != h.chain:
		return fmt.Errorf("journal: %w: event %d is not the one that was last", ErrDamaged, h.event)
	}
	return nil
}

func (r *Reader) checkTasks() error {
	for before := int64(0); ; {
		page, err := r.Tasks(Filter{Before: before, Limit: pageSize})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := r.paced(); err != nil {
			return err
		}
		before = page[len(page)-1].ID
		if before <= 1 {
			return nil
		}
	}
}

func (r *Reader) checkMeta() error {
	rows, err := r.q.Query("SELECT key, value, sum FROM meta")
	if err != nil {
		return fmt.Errorf("journal: keys: %w", classify(r.dir, err))
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		var value []byte
		var want int64
		if err := rows.Scan(&key, &value, &want); err != nil {
			return fmt.Errorf("journal: keys: %w", classify(r.dir, err))
		}
		if metaSum(key, value) != want {
			return fmt.Errorf("journal: %w: key %s has a wrong checksum", ErrDamaged, key)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("journal: keys: %w", classify(r.dir, err))
	}
	return nil
}

// checkedAtOpen is the size in bytes up to which Open checks the whole journal.
// [Reader.CheckBeside] checks larger journals.
const checkedAtOpen = 16 << 20

// Small reports whether Open has checked the whole journal.
func (r *Reader) Small() bool { return small(r.dir) }

func small(dir string) bool {
	size := int64(0)
	for _, name := range []string{dataFile, dataFile + "-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	return size <= checkedAtOpen
}
