package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Upgrade describes the changes that opening made to a journal of an earlier schema.
type Upgrade struct {
	From, To int // schemas
	// Backup is the file with the journal before the upgrade. An earlier carma can
	// restore it.
	Backup string
	// Failed is the reason why there is no backup, or nil.
	Failed error
}

// Upgraded returns the changes that opening made to a journal of an earlier schema, or
// nil if the journal had this program's schema.
func (j *Journal) Upgraded() *Upgrade { return j.upgrade }

// upgradeFile returns the name of the backup that an upgrade makes.
func upgradeFile(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("before-schema-%d.db", schemaVersion))
}

// upgradeWithBackup migrates the journal. Before, it makes a backup of a journal
// of an earlier schema. A disk without room for the backup does not keep the
// daemon from starting.
func (j *Journal) upgradeWithBackup(version string) error {
	v, err := schema(j.db)
	if err != nil {
		return err
	}
	if v > 0 && v < schemaVersion {
		u := &Upgrade{From: v, To: schemaVersion, Backup: upgradeFile(j.dir)}
		if u.Failed = keepBefore(j.dir, j.db, u.Backup); u.Failed != nil {
			u.Backup = ""
		}
		j.upgrade = u
	}
	return migrate(j.db, version)
}

// keepBefore writes a copy of the database. It replaces the copy of an earlier
// upgrade.
func keepBefore(dir string, db *sql.DB, path string) (err error) {
	part := path + ".part"
	defer os.Remove(part)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := db.Exec("VACUUM INTO ?", part); err != nil {
		return classify(dir, err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(dir)
}
