package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestTablesDescribed damages the description of each table and index, and the
// number of the schema. The journal is refused, and its repair loses nothing,
// because both are known.
func TestTablesDescribed(t *testing.T) {
	f := freeze(t, Options{})
	f.stopCleanly(t)
	known, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{"user_version": 60*8 + rand.IntN(4*8)}
	for _, o := range known[schemaVersion] {
		if o.sql == "" {
			continue
		}
		at := bytes.Index(f.files[dataFile], []byte(o.sql))
		if at < 0 {
			t.Fatalf("%s %s is not in the file", o.kind, o.name)
		}
		places[o.kind+" "+o.name] = 8*at + rand.IntN(8*len(o.sql))
	}
	for what, bit := range places {
		what = fmt.Sprintf("%s, bit %d", what, bit)
		if !f.harmless(t, what, flip(dataFile, bit)) {
			t.Errorf("%s: believed", what)
		}
	}
}

// TestHeaderFlips flips a bit of each byte of the database's header. The journal must open
// without a loss, or be refused and then be repaired without a loss.
func TestHeaderFlips(t *testing.T) {
	f := freeze(t, Options{})
	f.stopCleanly(t)
	for at := range headerLen {
		bit := 8*at + rand.IntN(8)
		f.harmless(t, fmt.Sprintf("header, bit %d", bit), flip(dataFile, bit))
	}
}

// harmless checks that the journal opens whole after damage, if need be after a
// repair that loses nothing. It reports whether a repair was needed.
func (f *frozen) harmless(t *testing.T, what string, damage func(map[string][]byte)) (refused bool) {
	t.Helper()
	f.thaw(t, damage)
	j, err := OpenWith(f.dir, f.o)
	if err != nil {
		refused = true
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		report, err := Repair(f.dir, RepairOptions{Do: true, AcceptLoss: true})
		if err != nil || !slices.Contains(report, "lost: no event") {
			t.Errorf("%s: repair: %v %q", what, err, report)
			return refused
		}
		if j, err = OpenWith(f.dir, f.o); err != nil {
			t.Errorf("%s: after the repair: %v", what, err)
			return refused
		}
	}
	f.whole(t, what, j)
	if err := j.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return refused
}

// TestBackupDescribed: a backup describes its tables in another order and is
// sound. Damage to these descriptions is found too.
func TestBackupDescribed(t *testing.T) {
	f := freeze(t, Options{})
	f.thaw(t, func(map[string][]byte) {})
	file := f.dir + "-backup"
	if _, _, err := Backup(f.dir, file); err != nil {
		t.Fatal(err)
	}
	if _, err := CheckFile(file); err != nil {
		t.Error(err)
	}
	if _, err := Restore(f.dir, file, false); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, f.dir)
	f.whole(t, "restored", j)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("CREATE TABLE events"))
	b[at+len("CREATE TABLE events")+rand.IntN(40)] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := CheckFile(file); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged backup: %v", err)
	}
}
