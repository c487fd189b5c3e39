package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTablesDescribed damages the description of each table and index, and the
// number of the schema: the journal is refused, and its repair loses nothing,
// as both are known.
func TestTablesDescribed(t *testing.T) {
	f := freeze(t, Options{})
	f.settle(t)
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

// TestHeaderFlips flips a bit of each byte that a database file begins with: it
// is opened whole, or refused, and then its repair loses nothing.
func TestHeaderFlips(t *testing.T) {
	f := freeze(t, Options{})
	f.settle(t)
	for at := range headerLen {
		bit := 8*at + rand.IntN(8)
		f.harmless(t, fmt.Sprintf("header, bit %d", bit), flip(dataFile, bit))
	}
}

// harmless: damage that is refused loses nothing once it is repaired.
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
