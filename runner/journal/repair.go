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

// RepairOptions are the options of Repair.
type RepairOptions struct {
	// Do makes Repair change the journal. Without it, Repair only reports the changes
	// that it would make.
	Do bool
	// AcceptLoss lets the next start adopt containers that are not in the journal.
	AcceptLoss bool
	// Version is the version of this program.
	Version string
}

// AcceptLossKey is the key in meta that lets a start adopt containers that are not in the
// journal.
const AcceptLossKey = "accept-loss"

// Repair replaces the journal in dir by a new one with its sound part, up to the last
// event that the state can be built from. The old files are kept in a folder beside it.
// It returns its findings, in lines for people. While a daemon runs, the error wraps
// [ErrLocked].
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
	db, mended, err := openDamaged(old, o.Version)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	defer db.Close()
	s := survey(db)
	if mended > 0 {
		s.drop("the database's description of itself; it is known, and was mended in %d places", mended)
	}
	if s.known.commits > 0 || s.known.features != "" {
		if err := s.known.understood(); err != nil {
			return nil, fmt.Errorf("journal %s: %w", dir, err)
		}
	}
	kept := s.best()
	h, err := s.head(kept, seen, o.Version)
	if err != nil {
		return nil, err
	}
	b := &builder{from: db, dir: filepath.Join(work, "new"), s: s, kept: kept, h: &h, acceptLoss: o.AcceptLoss, version: o.Version}
	if err := h.renew(); err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	report = b.report(seen, seenErr)
	if !o.Do {
		return append(report, "nothing was changed; to do it: "+FixCommand(dir)), nil
	}
	aside, err := install(dir, b.dir, h)
	if err != nil {
		return report, fmt.Errorf("journal %s: %w", dir, classify(dir, err))
	}
	return append(report, "what was there is kept in "+aside), nil
}

// openDamaged opens the copy of a journal that Repair reads. It repairs the database's
// description of itself in that copy, as far as that is known. mended is the number of
// places.
func openDamaged(dir, version string) (_ *sql.DB, mended int, err error) {
	path := filepath.Join(dir, dataFile)
	if errors.Is(checkHeader(path), ErrDamaged) {
		mended++
	}
	if err := mendHeader(path); err != nil {
		return nil, 0, err
	}
	db, err := connect(dir, 1, []string{"busy_timeout(10000)"})
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	v, err := schema(db)
	if errors.Is(classify(dir, err), ErrDamaged) {
		if err := db.Close(); err != nil {
			return nil, 0, err
		}
		n, _ := reshape(path) // if this fails, fewer rows can be read
		mended += n
		if db, err = connect(dir, 1, []string{"busy_timeout(10000)"}); err != nil {
			return nil, mended, err
		}
		v, err = schema(db)
	}
	switch {
	case err == nil && v < schemaVersion:
		// Only a sound journal is migrated from an earlier schema.
		if err := migrate(db, version); err != nil {
			return nil, mended, fmt.Errorf("it is of schema %d and cannot be taken over: %w; put a backup in its place: carma journal restore", v, err)
		}
	case errors.Is(err, ErrNewer):
		return nil, mended, err
	}
	return db, mended, nil
}

// takeOver locks a data folder for a command that changes it.
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

// head returns the head of a repaired journal. New tasks get numbers above all numbers
// ever used.
func (s *salvage) head(kept span, seen head, version string) (head, error) {
	h := head{
		features: s.known.features, writer: cmp.Or(version, s.known.writer),
		commits: 1, event: kept.last, chain: kept.chain, base: kept.first - 1, link: kept.link, at: kept.at,
		task: max(s.known.task, seen.task), instance: cmp.Or(s.known.instance, seen.instance),
	}
	if h.decided = s.known.decided; s.known.commits == 0 {
		_ = s.db.QueryRow("SELECT coalesce(max(seq), 0) FROM decisions").Scan(&h.decided)
	}
	h.decided = min(h.decided, h.event)
	if h.features != "" {
		return h, nil
	}
	// The features that the journal needs are unknown, so assume all features of this
	// program.
	h.features = "[]"
	err := h.add(need{Name: schemaFeature(featureSchema), Since: version, Event: h.event, Task: h.task})
	for _, f := range features {
		err = errors.Join(err, h.add(need{Name: f.Name, Since: version}))
	}
	return h, err
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

// install puts the database in from into dir, and moves the old files to the folder
// aside. At any moment either the witness is the old one, or the new journal is complete.
// So after a crash in between, the next start refuses the journal.
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
