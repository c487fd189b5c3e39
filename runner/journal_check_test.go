package runner

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/journal"
)

// TestLargeJournalIsChecked: a journal that is too large to be checked before
// the start is checked beside the daemon's work. Damage in its past is
// reported.
func TestLargeJournalIsChecked(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("quick", printing(0, "done"))
	g.finished(g.run(api.Submit{Image: "quick", Mem: int64(units.GiB)}))
	g.stop()
	j := g.reopened()
	if err := j.SetMeta("ballast", make([]byte, 17<<20)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	says := func(status, text string) {
		t.Helper()
		g.eventually("doctor says of the journal: "+text, func() bool {
			return slices.ContainsFunc(g.Doctor(g.ctx()), func(c api.Check) bool {
				return c.Name == "journal" && c.Status == status && strings.Contains(c.Detail, text) && !strings.Contains(c.Detail, "being checked")
			})
		})
	}
	g.start()
	says("ok", "events 1 to")
	g.stop()

	db, err := sql.Open("sqlite", filepath.Join(g.dir, "carma.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE events SET body = x'00' WHERE seq = 2"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	g.start() // starts from the snapshot, and does not need the earlier events
	says("failure", "event 2")
	g.finished(g.run(api.Submit{Image: "quick", Mem: int64(units.GiB)}))
	if _, _, err := journal.Backup(g.dir, filepath.Join(t.TempDir(), "backup.db")); err == nil {
		t.Error("a backup of a damaged journal is called sound")
	}
}
