package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// schemaVersion is the newest schema that this code supports, stored in the database as
// user_version. A change adds a step to migrations and never edits one. Each step changes
// the description of a table, which distinguishes a damaged version number from a newer
// schema.
const schemaVersion = 4

// featureSchema is the first schema with a list of features in the head.
const featureSchema = 4

// migrations[i] takes a journal from version i to i+1.
var migrations = [schemaVersion]string{`
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
	seq  INTEGER PRIMARY KEY,
	at   INTEGER NOT NULL,
	kind TEXT NOT NULL,
	body BLOB NOT NULL,
	sum  INTEGER NOT NULL
) STRICT;

CREATE TABLE decisions (
	seq  INTEGER NOT NULL,
	n    INTEGER NOT NULL,
	kind TEXT NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (seq, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
	seq  INTEGER PRIMARY KEY,
	at   INTEGER NOT NULL,
	body BLOB NOT NULL,
	sum  INTEGER NOT NULL
) STRICT;

CREATE TABLE tasks (
	id        INTEGER PRIMARY KEY,
	name      TEXT NOT NULL,
	user      TEXT NOT NULL,
	phase     TEXT NOT NULL,
	finished  INTEGER NOT NULL,
	submitted INTEGER NOT NULL,
	ended     INTEGER NOT NULL,
	body      BLOB NOT NULL
) STRICT;

CREATE INDEX tasks_name ON tasks (name, id) WHERE name <> '';
CREATE INDEX tasks_user ON tasks (user, id);
CREATE INDEX tasks_open ON tasks (id) WHERE finished = 0;
CREATE INDEX tasks_user_open ON tasks (user, id) WHERE finished = 0;
CREATE INDEX tasks_ended ON tasks (ended) WHERE finished = 1;
`, `
ALTER TABLE tasks ADD COLUMN grp TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_group ON tasks (grp, id) WHERE grp <> '';
`, `
ALTER TABLE decisions ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
CREATE TABLE head (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	id      BLOB NOT NULL,
	commits INTEGER NOT NULL,
	event   INTEGER NOT NULL,
	chain   INTEGER NOT NULL,
	base    INTEGER NOT NULL,
	link    INTEGER NOT NULL,
	decided INTEGER NOT NULL,
	task    INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	instance TEXT NOT NULL,
	sum     INTEGER NOT NULL
) STRICT;
`, `
ALTER TABLE head ADD COLUMN features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE head ADD COLUMN writer TEXT NOT NULL DEFAULT '';
`}

// steps do the part of a migration that SQL alone cannot do, by the version
// that it leads to.
var steps = map[int]func(tx *sql.Tx, version string) error{
	3: func(tx *sql.Tx, _ string) error { return seal(tx) },
	4: listFeatures,
}

// migrate brings a journal to this program's schema. version is this program's version.
func migrate(db *sql.DB, version string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	v, err := schema(tx)
	if err != nil {
		return err
	}
	if v == schemaVersion {
		return nil
	}
	for ; v < schemaVersion; v++ {
		if _, err := tx.Exec(migrations[v]); err != nil {
			return fmt.Errorf("migrate to schema %d: %w", v+1, err)
		}
		if step := steps[v+1]; step != nil {
			if err := step(tx, version); err != nil {
				return fmt.Errorf("migrate to schema %d: %w", v+1, err)
			}
		}
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// checkVersion checks the schema for readers, which cannot migrate.
func checkVersion(db *sql.DB) error {
	v, err := schema(db)
	if err == nil && v < schemaVersion {
		err = fmt.Errorf("schema %d is older than %d: start the daemon once to migrate it", v, schemaVersion)
	}
	return err
}

// version returns the stored version, and an error if it is newer than this program's.
func version(q querier) (int, error) {
	var v int
	if err := q.QueryRow("PRAGMA user_version").Scan(&v); err != nil {
		return 0, err
	}
	if v > schemaVersion {
		return v, &Newer{What: fmt.Sprintf("schema %d, this carma knows up to %d", v, schemaVersion), Version: schemaSince(q, v)}
	}
	return max(v, 0), nil
}

// schemaSince returns the version of the program that brought a journal to a newer schema,
// or "" if that schema does not store it in the same form.
func schemaSince(q querier, v int) (since string) {
	var h head
	if q.QueryRow("SELECT features FROM head WHERE one = 1").Scan(&h.features) != nil {
		return ""
	}
	all, _ := h.needs()
	for _, n := range all {
		if since = n.Since; n.Name == schemaFeature(v) {
			break
		}
	}
	return since
}

// classify adds ErrFull or ErrDamaged to an error of SQLite or the kernel.
func classify(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		// Only a failed write of data is reported as FULL, not one that
		// makes or extends a file.
		if full(dir) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func full(dir string) bool {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return false
	}
	return s.Bavail*uint64(s.Bsize) < 64<<10 || s.Ffree == 0 && s.Files > 0
}
