package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Backup writes a copy of the journal in dir and checks it; a daemon may be running. to
// is a file that does not exist yet, or a folder, in which the file's name contains the
// time. It returns the file, and its content in words.
func Backup(dir, to string) (file, stand string, err error) {
	if _, err := CheckFolder(dir); err != nil {
		return "", "", err
	}
	file = to
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		file = filepath.Join(to, "carma-"+time.Now().UTC().Format("20060102-150405")+".db")
	}
	if _, err := os.Lstat(file); err == nil {
		return "", "", fmt.Errorf("backup %s: %w; name another file, or a folder", file, os.ErrExist)
	}
	part := file + ".part"
	defer os.Remove(part)
	h, err := vacuumInto(dir, part)
	if err == nil {
		err = os.Rename(part, file)
	}
	if err == nil {
		err = syncDir(filepath.Dir(file))
	}
	if err != nil {
		return "", "", fmt.Errorf("backup %s: %w", file, classify(filepath.Dir(file), err))
	}
	return file, h.stand(), nil
}

func vacuumInto(dir, path string) (head, error) {
	// The file is made first, for its permissions; SQLite fills an empty one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	db, err := connect(dir, 1, []string{"busy_timeout(10000)"})
	if err != nil {
		return head{}, err
	}
	defer db.Close()
	if _, err := db.Exec("VACUUM INTO ?", path); err != nil {
		return head{}, err
	}
	if err := f.Sync(); err != nil {
		return head{}, err
	}
	return checkFile(path)
}

// CheckFile checks a backup and describes its content in words.
func CheckFile(path string) (stand string, err error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	h, err := checkFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, classify(filepath.Dir(path), err))
	}
	return h.stand(), nil
}

func checkFile(path string) (head, error) {
	if err := checkHeader(path); err != nil {
		return head{}, err
	}
	db, err := connectFile(path, 1, readerPragmas)
	if err != nil {
		return head{}, err
	}
	defer db.Close()
	v, err := schema(db)
	if err == nil && v < schemaVersion {
		err = fmt.Errorf("schema %d is older than %d: only the daemon takes it over", v, schemaVersion)
	}
	if err != nil {
		return head{}, err
	}
	r := Reader{dir: filepath.Dir(path), ro: db, q: db}
	h, err := r.head()
	if err == nil {
		err = h.understood()
	}
	if err == nil {
		err = r.check()
	}
	return h, err
}

// CheckFolder checks the journal in dir and compares it with its witness; a daemon may be
// running. It describes the content in words. If the journal is damaged, the error is a
// [Refusal].
func CheckFolder(dir string) (stand string, err error) {
	// The witness is read first, because it may be older than the database but must never
	// be newer.
	seen, file, seenErr := readWitness(filepath.Join(dir, witnessFile))
	r, err := OpenReadOnly(dir)
	if err != nil {
		return "", refusal(dir, err)
	}
	defer r.Close()
	h, err := r.head()
	if err == nil {
		j := &Journal{Reader: *r, at: h}
		now, statErr := inode(filepath.Join(dir, dataFile))
		switch {
		case seenErr == nil && statErr == nil:
			err = j.compare(seen, file, now)
		case h.commits > 0:
			err = j.lost("the journal's witness cannot be read", errors.Join(seenErr, statErr).Error(), h)
		}
	}
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return "", refusal(dir, err)
	}
	return h.stand(), nil
}

// Restore puts a backup in place of the journal in dir. The old files are kept in a
// folder of their own. acceptLoss lets the next start adopt the containers that are not
// in the backup. It returns a report in lines for people. While a daemon runs, the error
// wraps [ErrLocked].
func Restore(dir, file string, acceptLoss bool) (report []string, err error) {
	stand, err := CheckFile(file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l, err := takeOver(dir)
	if err != nil {
		return nil, err
	}
	defer l.close()
	seen, _, _ := readWitness(filepath.Join(dir, witnessFile))
	work, err := os.MkdirTemp(dir, "restore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	h, err := adopt(file, work, seen, acceptLoss)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", file, classify(dir, err))
	}
	aside, err := install(dir, work, h)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", file, classify(dir, err))
	}
	report = []string{"restored: " + stand, "what was there is kept in " + aside}
	if seen.instance != "" && seen.instance != h.instance {
		report = append(report, "this backup is of another data folder: containers of the old folder's tasks are not found any more")
	}
	if seen.event > h.event {
		report = append(report, fmt.Sprintf("events %d to %d, of %s to %s, are not in it", h.event+1, seen.event, clock(h.at), clock(seen.at)))
	}
	return report, nil
}

// adopt copies a backup into work and makes it the journal of this machine.
func adopt(file, work string, seen head, acceptLoss bool) (h head, err error) {
	if err := copyFile(file, filepath.Join(work, dataFile)); err != nil {
		return head{}, err
	}
	j := &Journal{Reader: Reader{dir: work}}
	if j.db, err = connect(work, 1, writerPragmas); err != nil {
		return head{}, err
	}
	defer j.db.Close()
	if err := j.stmt.prepare(j.db); err != nil {
		return head{}, err
	}
	defer j.stmt.close()
	if j.at, err = readHead(j.db); err != nil {
		return head{}, err
	}
	if err := j.at.renew(); err != nil {
		return head{}, err
	}
	j.at.task = max(j.at.task, seen.task)
	if acceptLoss {
		err = j.SetMeta(AcceptLossKey, []byte("1"))
	} else {
		err = j.DropMeta(AcceptLossKey)
	}
	if err != nil {
		return head{}, err
	}
	if _, err := j.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return head{}, err
	}
	return j.at, nil
}
