// Package journal keeps the daemon's history on disk: events before they are
// applied, the decisions they led to, snapshots of the state, and a record of
// every task for listings.
//
// The events are the truth. State is the newest snapshot plus the events after
// it; decisions and task records can be derived again from those, so they may
// lag behind by one commit and must be written again after a replay. The
// package stores bodies as they are and does not know what is in them.
//
// It is one SQLite database in WAL mode, synced at every commit. Each event
// and snapshot carries a checksum of its own, as SQLite pages have none.
package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the database driver
)

// The states of a journal that callers tell apart.
var (
	// ErrLocked: another daemon has the journal open.
	ErrLocked = errors.New("in use")
	// ErrNewer: the journal was written by a newer carma.
	ErrNewer = errors.New("written by a newer version")
	// ErrFull: no room on the disk. Nothing of the call was stored; the same
	// call works once there is room again.
	ErrFull = errors.New("no space left")
	// ErrNotFound: no such task or key.
	ErrNotFound = errors.New("not found")
	// ErrDamaged: what is stored is not what was written.
	ErrDamaged = errors.New("damaged")
)

const (
	dataFile = "carma.db"
	lockFile = "lock"
	// readers is how many listings can run at once.
	readers = 4
)

// Journal is an open journal. There is one per folder, over all processes.
// The methods may be called from several goroutines; writes run one at a time.
type Journal struct {
	Reader
	lock *os.File

	mu   sync.Mutex // held by every write
	db   *sql.DB    // one connection, for writes
	stmt statements
	next int64 // number of the next event; guarded by mu
}

// Reader reads a journal. Reads see whole commits only, run beside the writer
// without waiting for it, and may be called from several goroutines.
type Reader struct {
	dir string
	ro  *sql.DB
	q   querier // ro, or a transaction of it
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
}

// Open opens the journal in dir, making both if they are missing, and takes
// it for this process: an error wraps [ErrLocked] if another one has it. A
// journal that was not closed is recovered to its last commit.
func Open(dir string) (*Journal, error) {
	j, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	return j, nil
}

func open(dir string) (_ *Journal, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	j := &Journal{Reader: Reader{dir: dir}}
	if j.lock, err = takeLock(filepath.Join(dir, lockFile)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			j.release()
		}
	}()
	if err := makeDataFile(filepath.Join(dir, dataFile)); err != nil {
		return nil, err
	}
	if j.db, err = connect(dir, 1, writerPragmas); err != nil {
		return nil, err
	}
	if err := migrate(j.db); err != nil {
		return nil, err
	}
	if err := j.stmt.prepare(j.db); err != nil {
		return nil, err
	}
	if j.ro, err = connect(dir, readers, readerPragmas); err != nil {
		return nil, err
	}
	j.q = j.ro
	_, last, err := j.Bounds()
	j.next = last + 1
	return j, err
}

// OpenReadOnly opens the journal in dir for reading, whether or not a daemon
// has it open. An error wraps [fs.ErrNotExist] if there is none. It needs
// write permission on dir, for the memory that readers and writer share.
func OpenReadOnly(dir string) (*Reader, error) {
	r := &Reader{dir: dir}
	_, err := os.Stat(filepath.Join(dir, dataFile))
	if err == nil {
		r.ro, err = connect(dir, readers, readerPragmas)
	}
	if err == nil {
		err = checkVersion(r.ro)
	}
	if err != nil {
		if r.ro != nil {
			_ = r.ro.Close()
		}
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	r.q = r.ro
	return r, nil
}

// View calls fn with a reader that sees the journal as it is at the first
// read, whatever is committed or pruned meanwhile. The reader is only valid
// during the call. The files grow as long as it lasts: minutes are fine, hours
// are not.
func (r *Reader) View(fn func(*Reader) error) error {
	tx, err := r.ro.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("journal: %w", classify(r.dir, err))
	}
	defer tx.Rollback()
	return fn(&Reader{dir: r.dir, ro: r.ro, q: tx})
}

// Close releases a journal opened with [OpenReadOnly].
func (r *Reader) Close() error { return r.ro.Close() }

// Close moves what is in the write-ahead log into the database and releases
// the journal. Nothing is lost if it fails or is never called: all that was
// committed is found by the next Open.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if err != nil {
		err = fmt.Errorf("journal %s: checkpoint: %w", j.dir, classify(j.dir, err))
	}
	return errors.Join(err, j.release())
}

func (j *Journal) release() error {
	var errs []error
	if j.ro != nil {
		errs = append(errs, j.ro.Close())
	}
	if j.db != nil {
		errs = append(errs, j.stmt.close(), j.db.Close())
	}
	return errors.Join(append(errs, j.lock.Close())...) // the lock last
}

// synchronous(full) syncs the write-ahead log at every commit; with "normal"
// the last commits would be lost with the power. journal_size_limit gives the
// room back after a reader has held up checkpoints.
var (
	writerPragmas = []string{
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)",
		"journal_size_limit(67108864)",
	}
	readerPragmas = []string{"busy_timeout(10000)", "query_only(1)"}
)

func connect(dir string, connections int, pragmas []string) (*sql.DB, error) {
	abs, err := filepath.Abs(filepath.Join(dir, dataFile))
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: abs, RawQuery: url.Values{
		"_pragma": pragmas,
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// makeDataFile makes the database file with the permissions that SQLite then
// also gives to the files beside it.
func makeDataFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return cmp.Or(f.Close(), syncDir(filepath.Dir(path)), syncDir(filepath.Dir(filepath.Dir(path))))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}
