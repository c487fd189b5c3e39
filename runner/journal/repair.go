package journal

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// RepairOptions say what Repair may do.
type RepairOptions struct {
	// Do changes the journal; else Repair tells what it would do.
	Do bool
	// AcceptLoss lets the next start take in containers that the journal does
	// not know.
	AcceptLoss bool
}

// AcceptLossKey is the key in meta that lets a start take in what the journal
// does not know.
const AcceptLossKey = "accept-loss"

// Repair builds a journal from what is sound of the one in dir, up to the last
// event that the state can be built from, and puts it in its place. What was
// there is kept in a folder beside it. It returns what it found, in lines for
// people.
func Repair(dir string, o RepairOptions) (report []string, err error) {
	l, err := takeOver(dir)
	if err != nil {
		return nil, err
	}
	defer l.close()
	seen, _, seenErr := readWitness(filepath.Join(dir, witnessFile))
	work, err := os.MkdirTemp(dir, "repair-")
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	defer os.RemoveAll(work)
	old := filepath.Join(work, "old")
	if err := copyJournal(dir, old); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	db, err := connect(old, 1, []string{"busy_timeout(10000)"})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if v, err := version(db); err == nil && v < schemaVersion {
		// Only a sound journal is taken over from an earlier schema.
		if err := migrate(db); err != nil {
			return nil, fmt.Errorf("journal %s: it is of schema %d and cannot be taken over: %w; put a backup in its place: carma journal restore", dir, v, err)
		}
	} else if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	s := survey(db)
	kept := s.best()
	h := s.head(kept, seen)
	b := &builder{from: db, dir: filepath.Join(work, "new"), s: s, kept: kept, h: &h, acceptLoss: o.AcceptLoss}
	if err := h.renew(); err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	report = b.report(seen, seenErr)
	if !o.Do {
		return append(report, "nothing was changed; to do it: "+MendCommand(dir)), nil
	}
	aside, err := install(dir, b.dir, h)
	if err != nil {
		return report, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	return append(report, "what was there is kept in "+aside), nil
}

// takeOver takes a data folder for a command that changes it.
func takeOver(dir string) (*lock, error) {
	if err := private(dir); err != nil {
		return nil, err
	}
	l, err := takeLock(dir)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w: stop the daemon first; its tasks go on", err)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	return l, nil
}

// head is where a repaired journal stands. Numbers of tasks go on above all
// that were ever given out.
func (s *salvage) head(kept span, seen head) head {
	h := head{
		commits: 1, event: kept.last, chain: kept.chain, base: kept.first - 1, link: kept.link, at: kept.at,
		task: max(s.known.task, seen.task), instance: cmp.Or(s.known.instance, seen.instance),
	}
	if h.decided = s.known.decided; s.known.commits == 0 {
		_ = s.db.QueryRow("SELECT coalesce(max(seq), 0) FROM decisions").Scan(&h.decided)
	}
	h.decided = min(h.decided, h.event)
	return h
}

// builder writes the sound part of a journal into a new one.
type builder struct {
	from          *sql.DB
	dir           string
	s             *salvage
	kept          span
	h             *head
	acceptLoss    bool
	tasks, lostID int
}

func (b *builder) build() error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	db, err := connect(b.dir, 1, writerPragmas)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(db); err != nil {
		return err
	}
	var st statements
	if err := st.prepare(db); err != nil {
		return err
	}
	defer st.close()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := b.copy(tx, &st); err != nil {
		return err
	}
	if err := b.h.store(tx.Stmt(st.head)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	r := Reader{dir: b.dir, ro: db, q: db}
	if err := r.check(); err != nil {
		return err
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	return errors.Join(st.close(), db.Close())
}

func (b *builder) copy(tx *sql.Tx, st *statements) (err error) {
	put := func(s *sql.Stmt, args ...any) {
		if err == nil {
			_, err = s.Exec(args...)
		}
	}
	event, decision, meta := tx.Stmt(st.event), tx.Stmt(st.decision), tx.Stmt(st.meta)
	_ = both(b.from, "events", "seq", "seq, at, kind, body, sum",
		func(rows *sql.Rows) (stored[Event], int64, error) {
			var r stored[Event]
			err := rows.Scan(&r.row.Seq, &r.row.At, &r.row.Kind, &r.row.Body, &r.sum)
			return r, r.row.Seq, err
		},
		func(r stored[Event]) {
			if e := r.row; e.Seq >= b.kept.first && e.Seq <= b.kept.last {
				put(event, e.Seq, e.At, e.Kind, blob(e.Body), r.sum)
			}
		})
	_ = both(b.from, "decisions", "seq", decisionColumns, scanDecision, func(d stored[Decision]) {
		if d.row.Seq >= b.kept.first && d.row.Seq <= b.kept.last && d.row.sum() == d.sum {
			put(decision, d.row.Seq, d.row.N, d.row.Kind, blob(d.row.Body), d.sum)
		}
	})
	for _, seq := range b.s.snapshots {
		if seq >= b.kept.first-1 && seq <= b.kept.last && err == nil {
			var at, sum int64
			var body []byte
			if err = b.from.QueryRow("SELECT at, body, sum FROM snapshots WHERE seq = ?", seq).Scan(&at, &body, &sum); err == nil {
				_, err = tx.Exec("INSERT INTO snapshots (seq, at, body, sum) VALUES (?, ?, ?, ?)", seq, at, blob(body), sum)
			}
		}
	}
	_ = both(b.from, "tasks", "id", taskColumns,
		func(rows *sql.Rows) (t stored[TaskRow], id int64, err error) {
			t.row, t.sum, err = scanTask(rows)
			return t, t.row.ID, err
		},
		func(t stored[TaskRow]) {
			if t.row.sum() != t.sum {
				b.s.drop("the record of task %d has a wrong checksum", t.row.ID)
				b.lostID++
				return
			}
			b.tasks++
			b.h.task = max(b.h.task, t.row.ID)
			if err == nil {
				err = t.row.store(tx.Stmt(st.task))
			}
		})
	keys := map[string][]byte{}
	if b.h.instance != "" {
		keys[InstanceKey] = []byte(b.h.instance)
	}
	_ = each(b.from, "SELECT key, value, sum FROM meta",
		func(rows *sql.Rows) (row struct {
			key   string
			value []byte
			sum   int64
		}, _ int64, err error) {
			err = rows.Scan(&row.key, &row.value, &row.sum)
			return row, 0, err
		},
		func(row struct {
			key   string
			value []byte
			sum   int64
		}, _ int64) bool {
			if metaSum(row.key, row.value) == row.sum {
				keys[row.key] = row.value
			} else {
				b.s.drop("the value of key %s has a wrong checksum", row.key)
			}
			return true
		})
	if b.acceptLoss {
		keys[AcceptLossKey] = []byte("1")
	}
	for key, value := range keys {
		put(meta, key, blob(value), metaSum(key, value))
	}
	return err
}

func (b *builder) report(seen head, seenErr error) []string {
	lines := []string{fmt.Sprintf("kept: %s; %d task records", b.h.stand(), b.tasks)}
	if b.kept.first > 1 {
		lines = append(lines, fmt.Sprintf("      events before %d are not kept; a snapshot holds what they led to", b.kept.first))
	}
	most := max(seen.event, b.s.known.event)
	switch {
	case most > b.h.event:
		lines = append(lines, fmt.Sprintf("lost: events %d to %d of %s", b.h.event+1, most, clock(max(seen.at, b.s.known.at))))
	case seenErr != nil:
		lines = append(lines, "lost: not known, as the witness cannot be read")
	default:
		lines = append(lines, "lost: no event")
	}
	for _, d := range b.s.dropped {
		lines = append(lines, "damaged: "+d)
	}
	if b.h.instance == "" {
		lines = append(lines, "the name that containers carry is not known: those that run cannot be found")
	}
	return lines
}

// copyJournal copies the files of a journal into a new folder.
func copyJournal(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{dataFile, dataFile + "-wal"} {
		err := copyFile(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// install puts the database in from into dir. What is there is kept aside. At
// any moment the witness is of the old journal or the new one is complete: a
// crash between leaves what the next start refuses.
func install(dir, from string, h head) (aside string, err error) {
	aside = filepath.Join(dir, "replaced-"+time.Now().UTC().Format("20060102-150405.000"))
	if err := os.Mkdir(aside, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{dataFile, dataFile + "-wal", witnessFile} {
		err := os.Link(filepath.Join(dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	for _, name := range []string{dataFile + "-wal", dataFile + "-shm"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := syncDir(aside); err != nil {
		return "", err
	}
	path := filepath.Join(dir, dataFile)
	f, err := os.Open(filepath.Join(from, dataFile))
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(filepath.Join(from, dataFile), path), syncDir(dir)); err != nil {
		return "", err
	}
	return aside, replaceWitness(dir, h)
}
