// Package journal keeps the daemon's history on disk: events before they are applied, the
// decisions they led to, snapshots of the state, and a record of every task for listings.
//
// State is the newest snapshot plus the events after it with their decisions. An event is
// stored before it is applied, its decisions before they are carried out;
// [Reader.Decided] returns the last event with stored decisions. The package stores
// bodies as they are and does not interpret them.
//
// It is one SQLite database in WAL mode, synced at every commit. Each row has its own
// checksum, because SQLite pages have none. The checksum of an event covers the previous
// event. SQLite drops a damaged end of its log silently. So the last commit is also
// recorded in a small file beside the database, the witness, and a journal without that
// commit is refused.
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
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the database driver
)

// Errors that callers distinguish.
var (
	// ErrLocked means that another daemon has the journal open.
	ErrLocked error = unchanged("in use")
	// ErrNewer means that a newer carma wrote the journal.
	ErrNewer error = unchanged("written by a newer version")
	// ErrFull means that the disk is full. Nothing of the call was stored, and the same
	// call works once there is room again.
	ErrFull = errors.New("no space left")
	// ErrNotFound means that the task or key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrDamaged means that the stored data differs from the written data.
	ErrDamaged = errors.New("damaged")
	// ErrUncertain means that it is not known whether the call was stored.
	ErrUncertain = errors.New("not known to be stored")
)

// RepairRemedy is the fix if the daemon runs on a journal with damaged rows. The rows that
// it needed at its start were sound.
const RepairRemedy = "stop the daemon (tasks go on), then: carma journal repair; carma journal backup is refused until then"

const (
	dataFile = "carma.db"
	lockFile = "lock"
	// readers is the number of listings that can run at once.
	readers = 4
)

// Journal is an open journal. All processes together can have one open journal per
// folder. The methods may be called from several goroutines; writes run one at a time.
type Journal struct {
	Reader
	lock *lock

	mu   sync.Mutex // held by every write
	db   *sql.DB    // one connection, for writes
	stmt statements
	at   head // guarded by mu
	// witnesses have a copy of at outside the database; guarded by mu.
	witnesses witnesses
	spare     int64    // bytes, as in Options
	version   string   // as in Options
	upgrade   *Upgrade // upgrade made by this open, or nil
	// written gets the duration of each write, or is nil. Guarded by mu.
	written func(time.Duration)
}

// Options are the settings of a journal; the zero value sets nothing.
type Options struct {
	// Outside is the path of a second witness, on another disk than the folder, or empty
	// for none. It detects that the whole folder was replaced by an older copy. The
	// second witness may be lost, and a failure to write it is no error.
	Outside string
	// Spare is the number of bytes of the disk kept as spare room, at most a sixteenth of
	// the disk; see [Journal.GiveUpSpare].
	Spare int64
	// Version is the version of this program. The journal stores it with its rows.
	Version string
	// Readable checks for rows that this program does not understand, before the rows are
	// used. It is called if another version wrote last, or if the versions are
	// inconclusive. If it is nil, no rows are checked.
	Readable func(*Reader) error
}

// Reader reads a journal. Reads see whole commits only, run beside the writer
// without waiting for it, and may be called from several goroutines.
type Reader struct {
	dir string
	ro  *sql.DB
	q   querier // ro, or a transaction of it
	// pace is called between the rows of a check, and may wait. Nil makes no pauses.
	pace func() error
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
}

// Open opens the journal in dir and locks it for this process; it makes the folder and
// the journal if they are missing. An error wraps [ErrLocked] if another process has the
// journal. A journal that was not closed is recovered to its last commit.
//
// Open refuses a journal that differs from the last one written there with a [Refusal].
func Open(dir string) (*Journal, error) { return OpenWith(dir, Options{}) }

// OpenWith does what Open does, with options.
func OpenWith(dir string, o Options) (*Journal, error) {
	j, err := open(dir, o)
	if err != nil && errors.Is(classify(dir, err), ErrFull) && giveUpSpare(dir) {
		j, err = open(dir, o) // SQLite needs room on the disk to open the journal
	}
	if err != nil {
		return nil, refusal(dir, fmt.Errorf("journal %s: %w", dir, classify(dir, err)))
	}
	return j, nil
}

func open(dir string, o Options) (_ *Journal, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	j := &Journal{Reader: Reader{dir: dir}, spare: o.Spare, version: o.Version}
	if j.lock, err = takeLock(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = j.release()
		}
	}()
	if err := makeDataFile(dir); err != nil {
		return nil, err
	}
	if err := checkHeader(filepath.Join(dir, dataFile)); err != nil {
		return nil, err
	}
	if j.db, err = connect(dir, 1, writerPragmas); err != nil {
		return nil, err
	}
	if err := j.upgradeWithBackup(o.Version); err != nil {
		return nil, err
	}
	if err := j.stmt.prepare(j.db); err != nil {
		return nil, err
	}
	if j.ro, err = connect(dir, readers, readerPragmas); err != nil {
		return nil, err
	}
	j.q = j.ro
	if j.at, err = readHead(j.q); err != nil {
		return nil, err
	}
	if err := j.at.understood(); err != nil {
		return nil, err
	}
	if err := j.confront(o); err != nil {
		return nil, err
	}
	if small(dir) {
		err = j.check()
	} else {
		err = j.checkEnd()
	}
	if err == nil && o.Readable != nil && !sameProgram(j.at.writer, o.Version) {
		err = o.Readable(&j.Reader)
	}
	return j, err
}

// sameProgram reports whether two versions certainly belong to the same program. Several
// programs built from changed files may have the same version.
func sameProgram(a, b string) bool {
	return a == b && a != "" && !strings.Contains(a, "dev") && !strings.Contains(a, "dirty")
}

// OpenReadOnly opens the journal in dir for reading, whether or not a daemon
// has it open. An error wraps [fs.ErrNotExist] if there is none. It needs
// write permission on dir, for the memory that readers and writer share.
func OpenReadOnly(dir string) (*Reader, error) {
	r := &Reader{dir: dir}
	_, err := os.Stat(filepath.Join(dir, dataFile))
	if err == nil {
		err = checkHeader(filepath.Join(dir, dataFile))
	}
	if err == nil {
		r.ro, err = connect(dir, readers, readerPragmas)
	}
	if err == nil {
		err = checkVersion(r.ro)
	}
	if err == nil {
		err = checkFeatures(r.ro)
	}
	if err != nil {
		if r.ro != nil {
			_ = r.ro.Close()
		}
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	r.q = r.ro
	return r, nil
}

// View calls fn with a reader that sees the journal as it is at the first read, whatever
// is committed or pruned meanwhile. The reader is only valid during the call. The files
// grow during the call, so it may take minutes but not hours.
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

// Close moves the write-ahead log into the database and releases the journal. Nothing is
// lost if Close fails or is never called, because the next Open finds all commits.
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
	errs = append(errs, j.witnesses.close())
	return errors.Join(append(errs, j.lock.close())...) // the lock last
}

// synchronous(full) syncs the write-ahead log at every commit; with "normal" a
// power failure would lose the last commits. journal_size_limit gives disk
// space back after a reader has delayed checkpoints.
var (
	writerPragmas = []string{
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)",
		"journal_size_limit(67108864)",
	}
	readerPragmas = []string{"busy_timeout(10000)", "query_only(1)"}
)

func connect(dir string, connections int, pragmas []string) (*sql.DB, error) {
	return connectFile(filepath.Join(dir, dataFile), connections, pragmas)
}

func connectFile(path string, connections int, pragmas []string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
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

// makeDataFile makes the database file, with the permissions that SQLite then also gives
// to the files beside it. If there is a witness, the file existed and was lost, and is
// not made again.
func makeDataFile(dir string) error {
	path := filepath.Join(dir, dataFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if h, _, err := readWitness(filepath.Join(dir, witnessFile)); err == nil && h.commits > 0 {
			return &Refusal{
				Err: ErrDamaged, What: "the journal in " + dir + " is gone",
				Facts: []string{"last written: " + h.stand()},
				Fix:   FixCommand(dir),
			}
		}
	}
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
