package journal

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// laterFeatures are features of a program after this one.
var laterFeatures = []Feature{
	{"checkpoints", []string{"event checkpointed", "decision checkpoint"}},
	{"grace", []string{"mapper.Task.grace"}},
	{"parked", []string{"mapper.Phase=parked"}},
	{"books", []string{"key books"}},
}

// withFeatures calls fn as a program with these features.
func withFeatures(of []Feature, fn func()) {
	before := features
	features = of
	defer func() { features = before }()
	fn()
}

func openAs(t *testing.T, dir, version string) *Journal {
	t.Helper()
	j, err := OpenWith(dir, Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func noted(t *testing.T, j *Journal) (names []string) {
	t.Helper()
	all, err := j.at.needs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		names = append(names, n.Name+" by "+n.Since)
	}
	return names
}

// TestFeatureNoted checks that each kind of row records its feature in its own transaction,
// once, and that a failed transaction records none.
func TestFeatureNoted(t *testing.T) {
	row := func(body string) []byte { return []byte(body) }
	for name, c := range map[string]struct {
		want  string
		write func(*Journal) error
	}{
		"event": {"checkpoints", func(j *Journal) error {
			_, err := j.Commit(Batch{Events: []Event{{Kind: "checkpointed"}}})
			return err
		}},
		"decision": {"checkpoints", func(j *Journal) error {
			_, err := j.Commit(Batch{Decisions: []Decision{{Seq: 1, Kind: "checkpoint"}}})
			return err
		}},
		"field of an event": {"grace", func(j *Journal) error {
			_, err := j.Commit(Batch{Events: []Event{{Kind: "taken-in", Body: row(`{"task":{"id":1,"grace":3}}`)}}})
			return err
		}},
		"field of a record": {"grace", func(j *Journal) error {
			_, err := j.Commit(Batch{Tasks: []TaskRow{{ID: 1, Make: func() ([]byte, error) { return row(`{"task":{"grace":3}}`), nil }}}})
			return err
		}},
		"field of a snapshot": {"grace", func(j *Journal) error { return j.Snapshot(1, 1, row(`{"tasks":[{"grace":3}]}`)) }},
		"phase":               {"parked", func(j *Journal) error { return j.Snapshot(1, 1, row(`{"tasks":[{"phase":"parked"}]}`)) }},
		"key":                 {"books", func(j *Journal) error { return j.SetMeta("books", row(`1`)) }},
		"key of a commit": {"books", func(j *Journal) error {
			_, err := j.Commit(Batch{Meta: []MetaRow{{"books", row(`1`)}}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withFeatures(laterFeatures, func() {
				dir := t.TempDir()
				j := openAs(t, dir, "0.1.0")
				mustCommit(t, j, Batch{Events: events(1, "x")})
				if _, err := j.Commit(Batch{Events: []Event{{Kind: "checkpointed"}}, Decisions: []Decision{{Seq: 99}}}); err == nil {
					t.Fatal("a decision without an event was stored")
				}
				if got := noted(t, j); len(got) != 1 || got[0] != "schema 4 by 0.1.0" {
					t.Fatalf("before: %q", got)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				for _, version := range []string{"0.2.0", "0.3.0"} { // the first writer stays
					j = openAs(t, dir, version)
					if err := c.write(j); err != nil {
						t.Fatal(err)
					}
					if err := j.Close(); err != nil {
						t.Fatal(err)
					}
				}
				j = openAs(t, dir, "0.3.0")
				if got := noted(t, j); len(got) != 2 || got[1] != c.want+" by 0.2.0" {
					t.Errorf("noted: %q", got)
				}
				if w, err := j.Writer(); w != "0.3.0" || err != nil {
					t.Errorf("written by %q, %v", w, err)
				}
				if err := errors.Join(j.Check(), j.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFeatureRefused checks that a program without a feature does nothing with a
// journal or a backup that has it, and names the feature and the version.
func TestFeatureRefused(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	withFeatures(laterFeatures, func() {
		j := openAs(t, dir, "0.2.0")
		mustCommit(t, j, Batch{Events: []Event{{Kind: "checkpointed"}}})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Backup(dir, file); err != nil {
			t.Fatal(err)
		}
	})
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	data, witness := read(dataFile), read(witnessFile)
	for name, do := range map[string]func() error{
		"open":             func() error { _, err := Open(dir); return err },
		"open for reading": func() error { _, err := OpenReadOnly(dir); return err },
		"check":            func() error { _, err := CheckFolder(dir); return err },
		"check of a file":  func() error { _, err := CheckFile(file); return err },
		"backup":           func() error { _, _, err := Backup(dir, filepath.Join(t.TempDir(), "b")); return err },
		"restore":          func() error { _, err := Restore(t.TempDir(), file, true); return err },
		"repair":           func() error { _, err := Repair(dir, RepairOptions{Do: true, AcceptLoss: true}); return err },
	} {
		err := do()
		if !errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, `does not know "checkpoints"`) || !strings.Contains(text, "carma 0.2.0 or newer") || strings.Contains(text, "\n") {
			t.Errorf("%s: %s", name, text)
		}
		usage, ok := errors.AsType[interface {
			error
			Usage() bool
		}](err)
		if !ok || !usage.Usage() {
			t.Errorf("%s: it is no error of usage", name)
		}
	}
	if read(dataFile) != data || read(witnessFile) != witness {
		t.Error("a refusal has changed the journal")
	}
	withFeatures(laterFeatures, func() { mustOpen(t, dir) })
}

// TestNewerSchemaNamesVersion checks that a journal of a later schema names the
// version that made it so.
func TestNewerSchemaNamesVersion(t *testing.T) {
	dir := t.TempDir()
	j := openAs(t, dir, "0.1.0")
	if err := j.write("upgrade", func(_ *sql.Tx, h *head) error { return h.add(need{Name: "schema 5", Since: "0.4.0"}) }); err != nil {
		t.Fatal(err)
	}
	tamper(t, j, "ALTER TABLE tasks ADD COLUMN newer INTEGER")
	tamper(t, j, "PRAGMA user_version = 5")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "carma 0.4.0 or newer") {
		t.Error(err)
	}
}

// TestUpgradeKeepsBackup checks that a journal of schema 3 is copied before it
// is migrated, and that its rows are known to be old.
func TestUpgradeKeepsBackup(t *testing.T) {
	dir := t.TempDir()
	old := oldJournal(t, dir, 2)
	fillOld(t, old, 1, 20)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	j := openAs(t, dir, "0.2.0")
	u := j.Upgraded()
	if u == nil || u.From != 2 || u.To != schemaVersion || u.Failed != nil {
		t.Fatalf("upgrade: %+v", u)
	}
	event, task, err := j.Legacy()
	if event != 20 || task != 30 || err != nil {
		t.Errorf("written before: events up to %d, tasks up to %d, %v", event, task, err)
	}
	copied, err := connectFile(u.Backup, 1, readerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if v, err := schema(copied); v != 2 || err != nil {
		t.Errorf("the backup has schema %d, %v", v, err)
	}
	var n int
	if err := copied.QueryRow("SELECT count(*) FROM events").Scan(&n); n != 20 || err != nil {
		t.Errorf("the backup has %d events, %v", n, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j = openAs(t, dir, "0.2.0"); j.Upgraded() != nil {
		t.Error("it is upgraded again")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeWithoutRoom checks that a backup that cannot be written does not
// keep a journal from being opened.
func TestUpgradeWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	old := oldJournal(t, dir, 2)
	fillOld(t, old, 1, 20)
	if err := errors.Join(old.Close(), os.Mkdir(upgradeFile(dir)+".part", 0o700)); err != nil {
		t.Fatal(err)
	}
	j := openAs(t, dir, "0.2.0")
	if u := j.Upgraded(); u == nil || u.Failed == nil || u.Backup != "" {
		t.Errorf("upgrade: %+v", u)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadableAsked checks when the rows are checked: not if this very program wrote last.
func TestReadableAsked(t *testing.T) {
	refuse := errors.New("not readable")
	for _, c := range []struct {
		writer, here string
		asked        bool
	}{
		{"0.2.0", "0.2.0", false}, {"0.2.0", "0.1.0", true}, {"0.1.0", "0.2.0", true},
		{"", "0.2.0", true}, {"", "", true}, {"dev", "dev", true}, {"0.2.0~1.gab.dirty", "0.2.0~1.gab.dirty", true},
	} {
		dir := t.TempDir()
		j := openAs(t, dir, c.writer)
		mustCommit(t, j, Batch{Events: events(1, "x")})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j, err := OpenWith(dir, Options{Version: c.here, Readable: func(*Reader) error { return refuse }})
		if errors.Is(err, refuse) != c.asked {
			t.Errorf("written by %q, opened by %q: %v", c.writer, c.here, err)
		}
		if err == nil {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
